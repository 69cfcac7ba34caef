//! Stores pre-images of the changes that a command may keep, so that `undo` can revert them.

use std::fs;
use std::path::Path;

use code_commit_apply::{Found, OldFile};
use code_commit_dir::Interrupt;
use code_commit_engine::Problem;
use code_commit_guard::{Difference, Seen};

use super::accounted::Accounted;
use crate::fault::Fault;
use crate::intake::untidy;
use crate::paths::named;

/// The old state of a file, if available.
pub(super) type Old<'o> = &'o dyn Fn(&Path, &Seen) -> Option<OldFile<'static>>;

pub(super) struct Places<'p> {
    pub(super) root: &'p Path,
    /// The tree, or the layer with the changes.
    pub(super) now: &'p Path,
    /// Receives the pre-images.
    pub(super) undo: &'p Path,
    pub(super) interrupt: Interrupt<'p>,
}

impl Places<'_> {
    /// Stores the pre-images, if the old content is known; warns of the others. `folders` were created,
    /// and others removed.
    pub(super) fn adopt(
        &self,
        stays: &[&Difference],
        folders: (Vec<String>, Vec<(String, u32)>),
        old: Old<'_>,
        accounted: &mut Accounted,
    ) -> Result<(), Fault> {
        let mut lost = Vec::new();
        let found: Vec<Found<'_>> = stays
            .iter()
            .filter_map(|one| self.found(one, old, &mut lost))
            .collect();
        if !lost.is_empty() {
            let message = format!(
                "{} was changed, of which no copy could be kept: undo cannot restore it",
                named(&lost)
            );
            accounted.warnings.push(Problem::new("no-copy", message));
        }
        if !found.is_empty() || !folders.0.is_empty() || !folders.1.is_empty() {
            let applied = code_commit_apply::adopt(
                self.root,
                self.now,
                self.undo,
                found,
                folders,
                self.interrupt,
            );
            let applied = applied.map_err(Fault::Apply)?;
            accounted
                .warnings
                .extend(applied.warnings.iter().map(untidy));
            accounted.changes = applied.changes;
        }
        Ok(())
    }

    fn found(
        &self,
        one: &Difference,
        old: Old<'_>,
        lost: &mut Vec<String>,
    ) -> Option<Found<'static>> {
        let path = one.path.to_str()?.to_owned();
        let was = one.before.filter(|was| was.kind().is_file());
        let before = match was {
            None => None,
            Some(was) => {
                let Some(old) = old(&one.path, &was) else {
                    lost.push(path);
                    return None;
                };
                Some(old)
            }
        };
        // Restoring something else may have removed it again.
        let is_there =
            fs::symlink_metadata(self.now.join(&path)).is_ok_and(|found| found.is_file());
        (before.is_some() || is_there).then_some(Found { path, before })
    }
}
