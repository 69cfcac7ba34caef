//! The run's changes, set aside for one build of the tree as it was before the run.
//!
//! Both directions are transactions, so the tree is always whole. A harness that is killed in between leaves
//! a note, and the next command brings the changes back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::{Force, Lock, UndoError};
use code_commit_dir::Folder;
use code_commit_engine::Problem;

use crate::attic::Attic;
use crate::fault::Fault;
use crate::kept::undo_folders;
use crate::restore;

/// The note in the run folder: the names of folders that were there before.
const NOTE: &str = "set-aside.json";
/// How `apply` begins the names of what an undo replaces.
const REPLACED: &str = "undone";
/// How they are named once the changes were reapplied.
const REDONE: &str = "redone";

pub(crate) struct Stash {
    /// What was in the tree, the newest last.
    replaced: Vec<PathBuf>,
    note: PathBuf,
}

impl Stash {
    /// Restores the tree from before the run; `None` if somebody has changed a file of the run since: then
    /// nothing is touched.
    pub(crate) fn put(
        lock: &Lock,
        root: &Path,
        run: &Path,
        rounds: &[PathBuf],
    ) -> Result<Option<Self>, Fault> {
        let note = run.join(NOTE);
        let there: Vec<String> = replaced_in(rounds)
            .iter()
            .map(|folder| name(folder))
            .collect();
        let there = serde_json::to_vec(&there).unwrap_or_default();
        code_commit_dir::replace(&note, &there).map_err(Fault::file("write", &note))?;
        sync_all_around(run)?;
        match code_commit_apply::undo(lock, root, rounds, Force::No) {
            Ok(undone) => Ok(Some(Self {
                replaced: undone.replaced,
                note,
            })),
            Err(UndoError::ChangedSince { .. } | UndoError::Blocked { .. }) => {
                code_commit_dir::remove(&note).map_err(Fault::file("remove", &note))?;
                Ok(None)
            }
            Err(error) => Err(Fault::Restore(error)),
        }
    }

    /// Brings the changes back. What somebody wrote meanwhile goes to the attic, as the warning says.
    pub(crate) fn bring_back(self, lock: &Lock, root: &Path) -> Result<Option<Problem>, Fault> {
        sync_all_around(&self.note)?;
        let mut attic = Attic::of(self.note.parent().unwrap_or(root)).or_in(lock.state());
        // The newest first: each reverts what one transaction of the undo did.
        for folder in self.replaced.iter().rev() {
            restore::undo(lock, root, std::slice::from_ref(folder), &mut attic)?;
        }
        for folder in &self.replaced {
            code_commit_dir::remove(folder).map_err(Fault::file("remove", folder))?;
        }
        code_commit_dir::remove(&self.note).map_err(Fault::file("remove", &self.note))?;
        Ok(attic.warning())
    }
}

/// Brings back what a killed run had set aside; `None` if there was nothing, and a warning about what somebody wrote meanwhile.
///
/// The note is trusted: the caller makes sure that the harness wrote it.
pub fn bring_back(lock: &Lock, root: &Path, run: &Path) -> Result<Option<Vec<Problem>>, Fault> {
    let note = run.join(NOTE);
    let there = match fs::read(&note) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(Fault::file("read", &note))?,
    };
    let before: Vec<String> = serde_json::from_slice(&there).unwrap_or_default();
    let mut replaced = replaced_in(&undo_folders(run)?);
    replaced.retain(|folder| !before.contains(&name(folder)));
    let is_any = !replaced.is_empty();
    let warning = Stash { replaced, note }.bring_back(lock, root)?;
    Ok(is_any.then(|| warning.into_iter().collect()))
}

/// Puts the sets of pre-images on disk where they are now: the next transaction takes the place that they were moved from.
fn sync_all_around(path: &Path) -> Result<(), Fault> {
    let above = path.parent().unwrap_or(path);
    let synced = Folder::open(above).and_then(|above| above.sync_file_system());
    synced.map_err(Fault::file("sync", above))
}

/// Whether these sets were undone, by a restore or by a person.
pub fn were_undone(rounds: &[PathBuf]) -> bool {
    !replaced_in(rounds).is_empty()
}

/// What undos of these sets have replaced, the oldest first: undoing all of it reapplies the changes.
pub fn undos(rounds: &[PathBuf]) -> Vec<PathBuf> {
    replaced_in(rounds)
}

/// After the changes were reapplied: what undos had replaced no longer counts as undone, and is kept under another name.
pub fn put_away(undos: &[PathBuf]) -> Result<(), Fault> {
    for undo in undos {
        let names =
            std::iter::once(REDONE.to_owned()).chain((2..).map(|n| format!("{REDONE}-{n}")));
        let free = names
            .map(|name| undo.with_file_name(name))
            .find(|path| path.symlink_metadata().is_err());
        let free = free.unwrap_or_default();
        fs::rename(undo, &free).map_err(Fault::file("rename", undo))?;
    }
    Ok(())
}

fn name(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The finished undos beside the newest pre-images, the oldest first.
fn replaced_in(rounds: &[PathBuf]) -> Vec<PathBuf> {
    let entries = rounds
        .last()
        .and_then(|newest| code_commit_dir::list(newest).ok())
        .into_iter()
        .flatten()
        .flatten();
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(REPLACED)?;
        if name.is_empty() {
            Some(1)
        } else {
            name.strip_prefix('-')?.parse::<u32>().ok()
        }
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((number(&entry.path())?, entry.path())))
        .filter(|(_, path)| {
            code_commit_apply::read_applied(path).is_ok_and(|applied| applied.is_some())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test changes a tree as a person does"
)]
mod tests {
    use code_commit_engine::Reply;

    use super::*;
    use crate::intake::tests::rules;
    use crate::intake::{Intake, Shown};

    #[test]
    fn what_somebody_writes_while_the_changes_are_set_aside_is_kept() {
        let top = tempfile::tempdir().unwrap();
        let (rules, run) = (rules(top.path()), top.path().join("run"));
        let undo = run.join("undo/1");
        fs::create_dir_all(&run).unwrap();
        fs::write(rules.root.join("a.txt"), "old\n").unwrap();
        let reply = Reply::of_text("^^^a.txt\nnew\n^^^end\n");
        assert!(matches!(
            rules.take_in(&reply, Shown::Tree, &undo),
            Ok(Intake::Applied { .. })
        ));
        let aside = Stash::put(&rules.lock, &rules.root, &run, &[undo])
            .unwrap()
            .unwrap();
        assert_eq!(
            fs::read_to_string(rules.root.join("a.txt")).unwrap(),
            "old\n"
        );
        fs::write(rules.root.join("a.txt"), "a person's\n").unwrap();
        let warning = aside.bring_back(&rules.lock, &rules.root).unwrap().unwrap();
        assert_eq!(
            fs::read_to_string(rules.root.join("a.txt")).unwrap(),
            "new\n"
        );
        let attic = warning.message.rsplit("is in ").next().unwrap();
        assert_eq!(
            fs::read_to_string(Path::new(attic).join("a.txt")).unwrap(),
            "a person's\n",
            "{attic}"
        );
    }
}
