//! Where the pre-images of a run are.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_changes::BACKUP;
use code_commit_engine::Action;
use code_commit_logging::RunFolder;
use code_commit_timeline::{RunView, Step, What};

use crate::fault::Fault;
use crate::record::{JOURNAL, Past};

/// The folders with pre-images of the run in `folder`, the oldest first. A round whose reply was rejected has none.
///
/// # Errors
///
/// Fails if they cannot be listed: ignoring that would leave their files unrestored.
pub fn undo_folders(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    Ok(rounds_on_disk(folder)?
        .into_iter()
        .map(|(_, path)| path)
        .collect())
}

/// Those of replies, without those of builds.
pub(crate) fn folders_of_replies(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let is_reply = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| !name.to_string_lossy().ends_with(AFTER_BUILD))
    };
    Ok(undo_folders(folder)?.into_iter().filter(is_reply).collect())
}

/// As [`undo_folders`], including the folders that should exist because an answer of the run reports changes in that
/// round: without one of them the others do not restore a consistent tree. A run without a journal names none.
///
/// # Errors
///
/// As [`undo_folders`], and if the journal cannot be read or names another manifest.
pub fn folders_to_undo(run: &RunFolder) -> Result<Vec<PathBuf>, Fault> {
    let past = checked(run.path())?;
    let mut rounds = rounds_on_disk(run.path())?;
    let folder = |(round, name): (u32, String)| (round, run.path().join(BACKUP).join(name));
    rounds.extend(rounds_written(&past.steps_held()).into_iter().map(folder));
    Ok(rounds.into_iter().map(|(_, path)| path).collect())
}

/// The record of a run whose manifests are those that its journal names: they say what an undo writes where.
pub(crate) fn checked(run: &Path) -> Result<Past, Fault> {
    if !run.join(JOURNAL).exists() {
        return Ok(Past::default());
    }
    let past = Past::read(run)?;
    past.sets_are_its_own(run)?;
    Ok(past)
}

fn rounds_on_disk(folder: &Path) -> Result<BTreeSet<(u32, PathBuf)>, Fault> {
    let all = folder.join(BACKUP);
    let entries = match code_commit_dir::list(&all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries.map_err(Fault::file("list", &all))?,
    };
    let mut rounds = BTreeSet::new();
    for entry in entries {
        let path = entry.map_err(Fault::file("list", &all))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number =
            name.and_then(|name| name.strip_suffix(AFTER_BUILD).unwrap_or(name).parse().ok());
        // A run killed before the manifest is written has changed nothing.
        let is_set = !matches!(code_commit_apply::read_applied(&path), Ok(None));
        rounds.extend(number.filter(|_| is_set).map(|number| (number, path)));
    }
    Ok(rounds)
}

/// Removes all sets of pre-images, whole or not, since they were undone.
pub(crate) fn forget_sets(run: &Path) -> Result<(), Fault> {
    let all = run.join(BACKUP);
    for entry in code_commit_dir::list(&all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name
            .as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit)
        {
            let set = entry.path();
            code_commit_dir::remove(&set).map_err(Fault::file("remove", &set))?;
        }
    }
    Ok(())
}

/// The hash of a regular file; a command may have replaced it with a FIFO or a symlink.
pub fn sha256_on_disk(path: &Path) -> Option<String> {
    let file = code_commit_dir::open_regular(path).ok().flatten();
    file.and_then(|mut file| code_commit_logging::sha256_of(&mut file).ok())
}

/// Suffix of a build's folder of pre-images: it sorts after that of the round's reply.
const AFTER_BUILD: &str = "-build";

/// The name of the folder with the pre-images of a round's build.
pub(crate) fn after_build(round: u32) -> String {
    format!("{round}{AFTER_BUILD}")
}

/// Whether the answer of the command with this set of pre-images is in the journal. A journal that cannot be read
/// holds none.
pub fn is_recorded(run: &Path, set: &str) -> bool {
    let past = Past::read(run).unwrap_or_default();
    let is_its = |step: &Step| {
        matches!(&step.what, What::Command(command) if command.is_build)
            && after_build(step.round) == set
    };
    past.steps_held().all.iter().any(is_its)
}

/// The rounds whose changes are in the tree, with their folder names.
fn rounds_written(steps: &RunView) -> BTreeSet<(u32, String)> {
    let mut rounds = BTreeSet::new();
    for step in &steps.all {
        let name = match &step.what {
            What::Remark(remark) if remark.is_restore => {
                rounds.clear();
                continue;
            }
            What::Change(_) => step.round.to_string(),
            What::Command(command) if command.is_build => after_build(step.round),
            What::Call(_) | What::Command(_) | What::Remark(_) => continue,
        };
        if step
            .changes()
            .iter()
            .any(|change| change.action != Action::None)
        {
            rounds.insert((step.round, name));
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Changed, Event, Measured, RolledBack, Written};

    use super::*;

    #[test]
    fn a_round_that_was_killed_before_it_changed_anything_is_not_asked_for() {
        let run = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(run.path().join(BACKUP).join("1")).unwrap();
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
        let written = |attempt, action| {
            let (touched, changes, warnings) = (Vec::new(), vec![change(action)], Vec::new());
            Event::Written(Written {
                attempt,
                touched,
                changes,
                warnings,
                verify_script: false,
            })
        };
        let (first, second) = (written(1, Action::Write), written(2, Action::Write));
        let rounds = |answers: &[Event]| -> Vec<u32> {
            let written = rounds_written(&RunView::untimed(answers));
            written.into_iter().map(|(round, _)| round).collect()
        };
        assert_eq!(rounds(&[first.clone(), second.clone()]), [1, 2]);
        let measured = Event::Measured(Measured {
            tree_sha256: String::new(),
            changes: vec![change(Action::Write)],
            put_back: Vec::new(),
        });
        assert_eq!(rounds(&[first.clone(), measured]), [1]);
        let rolled_back = Event::RolledBack(RolledBack {
            warnings: Vec::new(),
        });
        assert_eq!(rounds(&[first, rolled_back, second]), [2]);
        assert_eq!(rounds(&[written(3, Action::None)]), [0; 0]);
    }
}
