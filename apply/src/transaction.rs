//! The protocol: stage, record, change, commit. After a kill at any point, the old or the new tree can be
//! restored.
//!
//! 1. Stage each new file (`N.new`); hard-link each old one (`N.old`); note the places ([`crate::location`]); write
//!    `journal.tmp`. Wait for the disk, once for all of it; rename to `journal`.
//! 2. Create folders, rename, unlink, checking each file again just before.
//! 3. Rename `journal` to `manifest.json`: this commits the new tree. Wait for the disk, once for all changes.
//! 4. Move the folder, which now holds the pre-images and their manifest, to where `undo` finds it.
//!
//! Between two waits a power cut may leave any of the renames and lose any other. So a whole `journal.tmp` counts as the
//! journal, and a manifest as the commit only if no change is missing ([`recover`]).

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Folder, link_or_copy};
use code_commit_guard::Before;
use code_commit_model::Action;
use rustix::io::Errno;

use crate::change::{Change, write_staged};
use crate::durable::sync_all;
use crate::error::{ApplyError, with_causes};
use crate::journal::{
    Entry, JOURNAL, Journal, MANIFEST, Old, Steps, TXN_FOLDER, UNSYNCED, kept_name, staged_name,
};
use crate::location::Location;
use crate::lock::Lock;
use crate::place::{Folders, Place};
use crate::report::{Applied, Warning};
use crate::{finish, recover};

/// Folders to remove if they are empty, innermost first; folders to make, outermost first, with their modes.
pub(crate) type FoldersAfter = (Vec<String>, Vec<(String, u32)>);

pub(crate) struct Site<'a> {
    pub(crate) lock: &'a Lock,
    pub(crate) root: Arc<Folder>,
    pub(crate) root_path: &'a Path,
    pub(crate) undo: &'a Path,
}

/// Applies everything or nothing. `after` holds the folders to remove after the commit if they are empty, and those to
/// restore then.
pub(crate) fn run(
    site: &Site<'_>,
    changes: &[Change<'_>],
    after: FoldersAfter,
    steps: Steps<'_>,
) -> Result<Applied, ApplyError> {
    let txn = begin(site)?;
    let mut transaction = Transaction {
        site,
        txn,
        journal: new_journal(site, after),
        steps,
    };
    if let Err(error) = transaction.prepare(changes) {
        // Only staged files remain, which the next start discards.
        let _ = finish::discard(site.lock, transaction.steps);
        return Err(error);
    }
    if let Err(cause) = transaction.change(changes) {
        let undone = recover::roll_back(
            site.lock,
            &transaction.txn,
            &transaction.journal,
            JOURNAL,
            &site.root,
            transaction.steps,
        );
        return Err(match undone {
            Ok(back) if back.left.is_empty() => cause,
            Ok(back) => ApplyError::PartlyRolledBack {
                cause: Box::new(cause),
                back,
            },
            Err(source) => ApplyError::NotRolledBack {
                cause: Box::new(cause),
                source,
            },
        });
    }
    let mut applied = transaction.journal.applied();
    let mut finish = || {
        let Transaction {
            txn,
            journal,
            steps,
            ..
        } = &mut transaction;
        finish::finish(site.lock, txn, journal, &site.root, Some(site.undo), *steps)
    };
    // What failed once may succeed the second time.
    match finish().or_else(|_| finish()) {
        Ok(finished) => applied.warnings.extend(finished.warnings),
        Err(error) => applied.warnings.push(Warning::CleanUp {
            reason: with_causes(&error),
        }),
    }
    Ok(applied)
}

fn begin(site: &Site<'_>) -> Result<Folder, ApplyError> {
    let path = site.lock.path.join(TXN_FOLDER);
    if site.lock.state.id().0 != site.root.id().0 {
        return Err(other_file_system(site));
    }
    let undo_is_taken =
        code_commit_dir::list(site.undo).is_ok_and(|mut entries| entries.next().is_some());
    if undo_is_taken || site.undo.is_file() {
        return Err(ApplyError::UndoTaken {
            path: site.undo.to_owned(),
        });
    }
    if let Some(parent) = site.undo.parent() {
        std::fs::create_dir_all(parent).map_err(ApplyError::io("make the folder", parent))?;
    }
    match site.lock.state.make_folder(TXN_FOLDER, 0o700) {
        Ok(()) => site
            .lock
            .state
            .open_in(TXN_FOLDER)
            .map_err(ApplyError::io("open", path)),
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {
            Err(ApplyError::Unrecovered { path })
        }
        Err(error) => Err(ApplyError::io("make the folder", path)(error)),
    }
}

fn new_journal(site: &Site<'_>, after: FoldersAfter) -> Journal {
    let mut journal = Journal::new(site.root.id());
    (journal.emptied_folders, journal.restored_folders) = after;
    journal
}

fn other_file_system(site: &Site<'_>) -> ApplyError {
    ApplyError::OtherFileSystem {
        state: site.lock.path.clone(),
        root: site.root_path.to_owned(),
    }
}

struct Transaction<'s, 'a> {
    site: &'s Site<'a>,
    txn: Folder,
    journal: Journal,
    steps: Steps<'s>,
}

impl Transaction<'_, '_> {
    /// Everything that happens before the tree is touched.
    fn prepare(&mut self, changes: &[Change<'_>]) -> Result<(), ApplyError> {
        for (number, change) in changes.iter().enumerate() {
            let entry = self.stage(number, change)?;
            self.journal.entries.push(entry);
        }
        self.name_missing_folders(changes);
        for (number, change) in changes.iter().enumerate() {
            self.keep(number, change)?;
        }
        self.publish()
    }

    fn stage(&mut self, number: usize, change: &Change<'_>) -> Result<Entry, ApplyError> {
        let report = change.report();
        let mut entry = Entry {
            change: report,
            old: None,
            new_id: None,
        };
        if entry.change.action != Action::Write {
            return Ok(entry);
        }
        (self.steps)("stage");
        let staged = write_staged(&self.txn, &staged_name(number), change)
            .map_err(|error| failed("stage", &change.place.path, error, self.site))?;
        entry.new_id = Some(staged.id);
        entry.change.after_mode = Some(staged.mode);
        self.journal.warnings.extend(staged.warnings);
        Ok(entry)
    }

    fn name_missing_folders(&mut self, changes: &[Change<'_>]) {
        let written = changes.iter().zip(&self.journal.entries);
        let written = written.filter(|(_, entry)| entry.change.action == Action::Write);
        let mut folders: Vec<String> = written
            .flat_map(|(change, _)| change.place.missing().to_vec())
            .collect();
        let is_missing = |path: &&String| {
            Place::find(&self.site.root, &format!("{path}/x"))
                .is_ok_and(|place| place.parent().is_none())
        };
        folders.extend(
            self.journal
                .restored_folders
                .iter()
                .map(|(path, _)| path)
                .filter(is_missing)
                .cloned(),
        );
        folders.sort_unstable();
        folders.dedup();
        self.journal.created_folders = folders;
    }

    /// Gives the old file a second name, so that replacing it does not lose it.
    fn keep(&mut self, number: usize, change: &Change<'_>) -> Result<(), ApplyError> {
        let Some(entry) = self.journal.entries.get_mut(number) else {
            return Ok(());
        };
        let (Some(before), true) = (&change.before, entry.change.action != Action::None) else {
            return Ok(());
        };
        (self.steps)("keep");
        let Some(folder) = change.place.parent() else {
            return Ok(());
        };
        let kept = link_or_copy(folder, change.place.name(), &self.txn, &kept_name(number));
        match kept {
            Ok(id) => entry.old = Some(Old::new(before, id)),
            Err(error) => {
                return Err(failed(
                    "keep the old file of",
                    &change.place.path,
                    error,
                    self.site,
                ));
            }
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), ApplyError> {
        let path = self.site.lock.path.join(TXN_FOLDER).join(JOURNAL);
        (self.steps)("note the places");
        let Site {
            lock,
            root_path,
            undo,
            ..
        } = self.site;
        Location::note(&lock.state, root_path, undo)
            .map_err(ApplyError::io("write to", &lock.path))?;
        (self.steps)("write the journal");
        self.journal
            .write(&self.txn, UNSYNCED)
            .map_err(ApplyError::io("write", &path))?;
        (self.steps)("wait for the disk");
        wait(&self.txn, &[&lock.state]).map_err(ApplyError::io("write to the disk", &lock.path))?;
        (self.steps)("publish the journal");
        self.txn
            .rename(UNSYNCED, &self.txn, JOURNAL)
            .map_err(ApplyError::io("publish", &path))
    }

    /// Changes the tree and commits.
    fn change(&mut self, changes: &[Change<'_>]) -> Result<(), ApplyError> {
        let mut folders = Folders::new(&self.site.root);
        let mut touched = HashMap::new();
        for (number, change) in changes.iter().enumerate() {
            if let Err(error) = self.change_one(number, change, &mut folders, &mut touched) {
                // Steps that were not taken are not undone: a folder that has appeared in the
                // meantime is not ours.
                self.journal.entries.truncate(number);
                self.journal.created_folders = folders.into_made();
                return Err(failed("change", &change.place.path, error, self.site));
            }
        }
        (self.steps)("commit");
        let path = self.site.lock.path.join(TXN_FOLDER);
        let committed = self.txn.rename(JOURNAL, &self.txn, MANIFEST);
        committed.map_err(ApplyError::io("commit", &path))?;
        (self.steps)("wait for the changes");
        // Too late to roll back: if this fails, the new tree is in place, and only a power cut could still
        // revert it.
        let touched: Vec<&Folder> = touched.values().map(Arc::as_ref).collect();
        if let Err(error) = wait(&self.txn, &touched) {
            self.journal.warnings.push(Warning::CleanUp {
                reason: format!("{}: {error}", path.display()),
            });
        }
        Ok(())
    }

    fn change_one(
        &mut self,
        number: usize,
        change: &Change<'_>,
        folders: &mut Folders,
        touched: &mut HashMap<(u64, u64), Arc<Folder>>,
    ) -> io::Result<()> {
        let Some(entry) = self.journal.entries.get(number) else {
            return Ok(());
        };
        let (action, created) = (entry.change.action, entry.change.created);
        if action == Action::None {
            return Ok(());
        }
        let mut folder = folders.existing(&change.place)?;
        for path in change.place.missing() {
            folder = if let Some(known) = folders.known(path) {
                known
            } else {
                (self.steps)("make a folder");
                touched.insert(folder.id(), Arc::clone(&folder));
                folders.make(path, &folder)?
            };
        }
        touched.insert(folder.id(), Arc::clone(&folder));
        let name = change.place.name();
        (self.steps)("change a file");
        if let Some(before) = &change.before {
            check_unchanged(&folder, name, before)?;
        }
        match action {
            Action::Write if created => self.txn.place_new(staged_name(number), &folder, name),
            Action::Write => self.txn.rename(staged_name(number), &folder, name),
            Action::Delete => folder.remove_file(name),
            Action::None => Ok(()),
        }
    }
}

/// Syncs everything in the transaction's folder, and the names in other folders of the same file system, in any order.
fn wait(txn: &Folder, others: &[&Folder]) -> io::Result<()> {
    if txn.is_fuse()? {
        sync_all(others, |folder| folder.sync())?;
    }
    txn.sync_all()
}

/// Looks at inode, size, time and content again, as late as possible. Fails with `ESTALE`.
fn check_unchanged(folder: &Folder, name: &str, before: &Before) -> io::Result<()> {
    let now = Before::of(&mut folder.open_file(name)?)?;
    // The second name in the transaction folder counts as a link.
    let unchanged = (now.id, now.len, now.mtime, now.mode, now.sha256)
        == (
            before.id,
            before.len,
            before.mtime,
            before.mode,
            before.sha256,
        );
    if unchanged {
        Ok(())
    } else {
        Err(Errno::STALE.into())
    }
}

/// Distinguishes a concurrent change, and the wrong disk, from other failures.
fn failed(doing: &'static str, path: &str, error: io::Error, site: &Site<'_>) -> ApplyError {
    match Errno::from_io_error(&error) {
        Some(
            Errno::STALE | Errno::EXIST | Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ISDIR,
        ) => ApplyError::Changed {
            path: path.to_owned(),
        },
        Some(Errno::XDEV) => other_file_system(site),
        _ => ApplyError::io(doing, PathBuf::from(path))(error),
    }
}
