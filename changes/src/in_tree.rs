//! A command that worked in the tree: snapshots of it before and after.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::{Found, PreImageOf};
use code_commit_dir::{Folder, Interrupt, NEVER, reach};
use code_commit_engine::Problem;
use code_commit_guard::{Guard, Policy};
use code_commit_logging::name_as_text;

use crate::adopt::{adopt, texts};
use crate::backup::Backup;
use crate::change::{Change, ChangeSet, Seen};
use crate::engine::{ChangeEngine, State};
use crate::fault::Fault;
use crate::layer::stat_below;
use crate::restore::{Unrestored, put_back};
use crate::snapshot::{Snapshot, Tracked};
use crate::told::{self, Accounted, shown};

/// What a role of agents changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// Files that stay changed, as text.
    pub allowed: Vec<PathBuf>,
    /// Those of them that it removed.
    pub gone: Vec<PathBuf>,
    /// What was put back.
    pub put_back: Vec<String>,
    /// For the user.
    pub warnings: Vec<Problem>,
}

/// Whether a turn is over, or was cut off and is recorded later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsOver {
    /// Its copies are of no more use.
    Yes,
    /// It may have to be put back again.
    NotYet,
}

impl ChangeEngine {
    /// Looks at the tree again.
    pub(crate) fn compare(
        &mut self,
        before: &Snapshot,
        guard: &Guard,
        run: &Path,
        set: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Accounted, Fault> {
        let root = guard.root();
        let changes = self.changes(before, guard)?;
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        let decisions = self.judge(guard, root).decisions(&changes, NEVER);
        let decisions = decisions.map_err(Fault::file("look at", root))?;
        let mut backup = self.backup(run);
        let put_all_back = |backup: &mut Backup<'_>| {
            let gone = put_back(&tree, before, &self.copies, changes.iter(), backup).none_lost()?;
            self.interrupted(backup.folder(), &gone, run, set)
        };
        if interrupt().is_err() {
            return put_all_back(&mut backup);
        }
        let leave = decisions.leave();
        let gone = put_back(&tree, before, &self.copies, leave, &mut backup).none_lost()?;
        self.remove_empty(&tree, &decisions.made);
        let is_there = |folder: &&PathBuf| root.join(folder).is_dir();
        let folders = texts(decisions.made.iter().filter(is_there));
        let mut back = shown(&decisions.back);
        back.retain(|path| !gone.contains(path));
        let mut lost = Vec::new();
        let stays = decisions.stays.iter();
        let found = stays
            .filter_map(|one| self.found(one, root, &mut lost))
            .collect();
        let adopted = adopt(
            (root, root, set),
            found,
            (folders, decisions.gone.clone()),
            interrupt,
        );
        let (changes_kept, mut warnings) = match adopted {
            Err(_) if interrupt().is_err() => return put_all_back(&mut backup),
            adopted => adopted?,
        };
        warnings.extend(told::no_copy(&lost));
        warnings.extend(told::not_restored(&self.who, &gone));
        warnings.extend(self.set_aside(&decisions.set_aside, &mut backup));
        warnings.extend(told::put_back(&self.who, &back, backup.folder()));
        Ok(Accounted {
            changes: changes_kept,
            put_back: back,
            warnings,
            ..Accounted::default()
        })
    }

    /// A file that stays changed, with what was there; none if there is and was no file, or if the old one is lost.
    fn found(&self, one: &Change, root: &Path, lost: &mut Vec<String>) -> Option<Found<'static>> {
        let path = one.path.to_str()?.to_owned();
        let Some(was) = one.before.filter(|was| was.kind().is_file()) else {
            // Restoring something else may have removed it again.
            let there = root.join(&path).symlink_metadata();
            let is_file = there.is_ok_and(|found| found.is_file());
            return is_file.then_some(Found { path, before: None });
        };
        let Some(content) = self.copies.read(&one.path, &was) else {
            lost.push(path);
            return None;
        };
        let before = PreImageOf {
            content: Box::new(content),
            mode: was.mode,
            owner: was.owner,
            model: self.copies.copy(&one.path),
        };
        let before = Some(code_commit_apply::OldFile::Copy(before));
        Some(Found { path, before })
    }

    /// Judges what a role of agents changed: restores what it may not touch. Its changes are git's to keep.
    pub fn close_turn(&mut self, guard: &Guard, run: &Path) -> Result<Turned, Fault> {
        let turned = self.put_back_turn(guard, run, IsOver::Yes)?;
        self.forget_note(run).map(|()| turned)
    }

    /// As [`close_turn`](Self::close_turn), but if the turn is not over, note and copies stay, so that it can be done
    /// again.
    pub fn put_back_turn(
        &mut self,
        guard: &Guard,
        run: &Path,
        is_over: IsOver,
    ) -> Result<Turned, Fault> {
        let State::Compared(before) = std::mem::take(&mut self.state) else {
            return Ok(Turned::default());
        };
        let turned = self.turned(&before, guard, run, is_over);
        self.keep_state(before, turned)
    }

    fn turned(
        &mut self,
        before: &Snapshot,
        guard: &Guard,
        run: &Path,
        is_over: IsOver,
    ) -> Result<Turned, Fault> {
        let root = guard.root();
        let changes = self.changes(before, guard)?;
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        let decisions = self.judge(guard, root).decisions(&changes, NEVER);
        let decisions = decisions.map_err(Fault::file("look at", root))?;
        let mut backup = self.backup(run);
        let Unrestored { gone, mut lost } =
            put_back(&tree, before, &self.copies, decisions.leave(), &mut backup);
        lost.extend(gone);
        Unrestored {
            gone: Vec::new(),
            lost,
        }
        .none_lost()?;
        self.remove_empty(&tree, &decisions.made);
        let mut warnings = Vec::new();
        if is_over == IsOver::Yes {
            warnings = self.set_aside(&decisions.set_aside, &mut backup);
            warnings.extend(self.keep_uncommitted(&decisions.stays, &mut backup));
        }
        let paths =
            |changes: Vec<&&Change>| changes.into_iter().map(|one| one.path.clone()).collect();
        let is_gone = |one: &&&Change| one.after.is_none();
        Ok(Turned {
            gone: paths(decisions.stays.iter().filter(is_gone).collect()),
            allowed: paths(decisions.stays.iter().collect()),
            put_back: shown(&decisions.back),
            warnings,
        })
    }

    /// Keeps the copies of what a role changed or removed, where neither git has it nor the role had written it.
    fn keep_uncommitted(&mut self, stays: &[&Change], backup: &mut Backup<'_>) -> Option<Problem> {
        let mut kept = Vec::new();
        for one in stays {
            let left = match one.after {
                Some(after) => self.written.insert(one.path.clone(), after),
                None => self.written.remove(&one.path),
            };
            let is_its = left.map(|left| left.identity()) == one.before.map(|was| was.identity());
            if !is_its && self.copies.set_aside(one, backup) {
                kept.push(name_as_text(&one.path).into_owned());
            }
        }
        told::uncommitted(&self.who, &kept, backup)
    }

    /// Restores everything but ignored files; warns of what it could not restore.
    pub(crate) fn reset_to(
        &mut self,
        before: &Snapshot,
        guard: &Guard,
        run: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let root = guard.root();
        let changes = self.changes(before, guard)?;
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        let judge = self.judge(guard, root);
        let (aside, others): (Vec<_>, Vec<_>) =
            changes.iter().partition(|one| judge.sets_aside(one));
        let gone = put_back(&tree, before, &self.copies, others, backup).none_lost()?;
        let mut warnings = self.set_aside(&aside, &mut self.backup(run));
        warnings.extend(told::not_restored(&self.who, &gone));
        Ok(warnings)
    }

    /// Restores everything, ignored files too, under the rules of that tree; can be repeated. Gives what was restored,
    /// and what has no copy.
    pub fn restore_all(
        &mut self,
        root: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<(Vec<String>, Vec<String>), Fault> {
        let State::Compared(before) = std::mem::take(&mut self.state) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let before = before.with_ignored();
        let files = before.iter().filter(|(_, was)| !was.is_product);
        self.tracked = Tracked::new(files.map(|(path, _)| path.clone()).collect());
        let restored = self.restore_to(&before, root, backup);
        self.state = State::Compared(before);
        restored
    }

    fn restore_to(
        &mut self,
        before: &Snapshot,
        root: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<(Vec<String>, Vec<String>), Fault> {
        let failed = |error| Fault::file("look at", root)(error);
        let mut restored = BTreeSet::new();
        loop {
            let guard = Guard::open(root, Policy::new())
                .map_err(|error| failed(io::Error::other(error)))?;
            let changes = self.changes(before, &guard)?;
            // Ignore rules made by the command hide the files that they name, so remove them first.
            let is_rule = |one: &&Change| one.path.ends_with(".gitignore");
            let has_rules = changes
                .iter()
                .any(|one| is_rule(&one) && !restored.contains(&one.path));
            let now: Vec<&Change> = changes
                .iter()
                .filter(|one| !has_rules || is_rule(one))
                .collect();
            let tree = Folder::open(root).map_err(failed)?;
            let gone = put_back(&tree, before, &self.copies, now.iter().copied(), backup);
            let gone = gone.none_lost()?;
            restored.extend(now.into_iter().map(|one| one.path.clone()));
            if !has_rules {
                let shown = restored.iter().map(|path| name_as_text(path).into_owned());
                return Ok((shown.filter(|path| !gone.contains(path)).collect(), gone));
            }
        }
    }

    /// Keeps what a command replaced or removed of ignored files.
    fn set_aside(&self, ignored: &[&Change], backup: &mut Backup<'_>) -> Vec<Problem> {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for one in ignored {
            let is_kept = self.copies.set_aside(one, backup);
            let list = if is_kept { &mut kept } else { &mut gone };
            list.push(name_as_text(&one.path).into_owned());
        }
        let warnings = told::set_aside(&self.who, &kept, backup).into_iter();
        warnings
            .chain(told::not_restored(&self.who, &gone))
            .collect()
    }

    pub(crate) fn changes(&mut self, before: &Snapshot, guard: &Guard) -> Result<ChangeSet, Fault> {
        let root = guard.root();
        // The command may have closed it.
        drop(reach::root(root, reach::CHANGE).map_err(Fault::file("open", root))?);
        let mut changes = before.differences(&self.look(guard, Some(before))?);
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        for one in changes.iter_mut().filter(|one| one.after.is_none()) {
            one.after = one.before.and_then(|was| unlisted(&tree, &one.path, was));
        }
        // A new time only suggests a change; compare the content.
        let judge = self.judge(guard, root);
        changes.retain(|one| judge.counts(one) && !self.copies.is_same(&tree, one));
        self.leave_out(&mut changes);
        Ok(changes)
    }

    /// What the command changed of what decides.
    pub(crate) fn restore_sealed_in(
        &self,
        before: &Snapshot,
        guard: &Guard,
        backup: &mut Backup<'_>,
    ) -> Result<Vec<String>, Fault> {
        let root = guard.root();
        drop(reach::root(root, reach::CHANGE).map_err(Fault::file("open", root))?);
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        let mut broken = Vec::new();
        for path in &self.sealed {
            let now = match stat_below(&tree, path) {
                // The command has closed a folder above it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
                now => now.map_err(Fault::file("look at", path))?,
            };
            let one = Change {
                path: path.clone(),
                before: before.get(path).copied(),
                after: now.as_ref().map(Seen::of),
            };
            let is_same = match (&one.before, &one.after) {
                (None, None) => true,
                (Some(was), Some(is)) => was.is_untouched(is) || self.copies.is_same(&tree, &one),
                _ => false,
            };
            broken.extend((!is_same).then_some(one));
        }
        let unrestored = put_back(&tree, before, &self.copies, &broken, backup);
        Unrestored {
            lost: [unrestored.gone, unrestored.lost].concat(),
            gone: Vec::new(),
        }
        .none_lost()?;
        Ok(shown(&broken.iter().collect::<Vec<_>>()))
    }
}

impl Unrestored {
    /// What has no copy; an error if anything else could not be restored.
    pub(crate) fn none_lost(self) -> Result<Vec<String>, Fault> {
        if self.lost.is_empty() {
            Ok(self.gone)
        } else {
            Err(Fault::NotPutBack {
                paths: self.lost.join(", "),
            })
        }
    }
}

/// What a snapshot does not list any more: the folder that git ignores in the place of a file, and an ignored file in what
/// is a cache now.
fn unlisted(tree: &Folder, path: &Path, was: Seen) -> Option<Seen> {
    let found = Seen::of(&stat_below(tree, path).ok().flatten()?);
    let is_new_folder = found.kind().is_dir() && !was.kind().is_dir();
    (is_new_folder || was.is_ignored).then_some(Seen {
        is_ignored: true,
        ..found
    })
}
