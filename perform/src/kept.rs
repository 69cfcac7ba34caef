//! Where the pre-images of a run are.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use apply::{Action, Changed};
use logging::RunFolder;

use crate::executor::Fault;
use crate::{Facts, outline_of};

/// Folder for pre-images in a run folder, one subfolder for each round.
pub const UNDO: &str = "undo";

/// What a fact says of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTree {
    /// Nothing.
    Untouched,
    /// This round has changed files.
    Written {
        /// Which one, or which attempt.
        round: u32,
    },
    /// It is as it was before the run.
    Restored,
}

impl OnTree {
    /// What a round with these changes has done.
    pub(crate) fn of_changes(round: u32, changes: &[Changed]) -> Self {
        let is_written = changes.iter().any(|change| change.action != Action::None);
        if is_written { Self::Written { round } } else { Self::Untouched }
    }
}

/// The folders with pre-images of the run in `folder`, the oldest first. A round whose reply was rejected has none.
///
/// # Errors
///
/// Fails where they cannot be listed: whoever took that for none would not put back what they hold.
pub fn undo_folders(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    Ok(rounds_on_disk(folder)?.into_iter().map(|(_, path)| path).collect())
}

/// The same and those that should be there, since a fact of the run tells of files that the round has changed: without one of them the
/// others make neither the old tree nor the new one. A record that cannot be read, or that was never begun, names none.
///
/// # Errors
///
/// As [`undo_folders`].
pub fn folders_to_undo<F: Facts>(run: &RunFolder) -> Result<Vec<PathBuf>, Fault> {
    let mut rounds = rounds_on_disk(run.path())?;
    let folder = |round: u32| (round, run.path().join(UNDO).join(round.to_string()));
    rounds.extend(rounds_written(&outline_of::<F>(run).unwrap_or_default()).into_iter().map(folder));
    Ok(rounds.into_iter().map(|(_, path)| path).collect())
}

fn rounds_on_disk(folder: &Path) -> Result<BTreeSet<(u32, PathBuf)>, Fault> {
    let all = folder.join(UNDO);
    let entries = match std::fs::read_dir(&all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries.map_err(Fault::file("list", &all))?,
    };
    let mut rounds = BTreeSet::new();
    for entry in entries {
        let path = entry.map_err(Fault::file("list", &all))?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        // Who is killed before the manifest is written has changed nothing yet.
        let is_set = !matches!(apply::read_applied(&path), Ok(None));
        rounds.extend(number.filter(|_| is_set).map(|number| (number, path)));
    }
    Ok(rounds)
}

fn rounds_written<F: Facts>(facts: &[F]) -> BTreeSet<u32> {
    let mut rounds = BTreeSet::new();
    for fact in facts {
        match fact.on_tree() {
            OnTree::Untouched => {}
            OnTree::Written { round } => drop(rounds.insert(round)),
            OnTree::Restored => rounds.clear(),
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OrderFact;

    #[test]
    fn a_round_that_was_killed_before_it_changed_anything_is_not_asked_for() {
        let run = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(run.path().join(UNDO).join("1")).unwrap();
        assert!(undo_folders(run.path()).unwrap().is_empty());
    }

    #[test]
    fn nothing_is_asked_for_of_what_was_put_back() {
        let change = |action| Changed {
            path: "a".to_owned(),
            action,
            before_sha256: None,
            after_sha256: None,
            created: false,
            before_mode: None,
            after_mode: None,
        };
        let written = |attempt, action| OrderFact::Written {
            attempt,
            touched: Vec::new(),
            changes: vec![change(action)],
            warnings: Vec::new(),
            verify_script: false,
        };
        let (first, second) = (written(1, Action::Write), written(2, Action::Write));
        let rounds = |facts: &[OrderFact]| rounds_written(facts).into_iter().collect::<Vec<_>>();
        assert_eq!(rounds(&[first.clone(), second.clone()]), [1, 2]);
        assert_eq!(
            rounds(&[first.clone(), OrderFact::RolledBack { warnings: Vec::new() }, second.clone()]),
            [2]
        );
        assert_eq!(rounds(&[first, OrderFact::Resumed, second]), [2]);
        assert_eq!(rounds(&[written(3, Action::None)]), [0; 0]);
    }
}
