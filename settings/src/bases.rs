//! What the places that a file names are relative to.

use std::path::{Path, PathBuf};

use crate::Place;

/// What relative paths and `~` stand for.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'b> {
    /// The project's root.
    pub root: &'b Path,
    /// The user's home.
    pub home: Option<&'b Path>,
}

impl Bases<'_> {
    /// `~` and `~/x` are the home and below it, `x` is below the root.
    pub fn find(&self, place: &Place) -> PathBuf {
        let below_home = if place.0 == "~" { Some("") } else { place.0.strip_prefix("~/") };
        match (below_home, self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.root.join(&place.0),
        }
    }
}
