//! The folders that paths in settings are relative to.

use std::path::{Path, PathBuf};

use crate::Place;

/// What relative paths and `~` refer to.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'b> {
    /// The project's root.
    pub root: &'b Path,
    /// The user's home.
    pub home: Option<&'b Path>,
}

impl Bases<'_> {
    /// Resolves `~` and `~/x` against the home, and `x` against the root.
    pub fn find(&self, place: &Place) -> PathBuf {
        let below_home = if place.0 == "~" { Some("") } else { place.0.strip_prefix("~/") };
        match (below_home, self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.root.join(&place.0),
        }
    }
}
