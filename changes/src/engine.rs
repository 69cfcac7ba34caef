//! The change engine: what a command changed beyond what it was asked to do, what of it stays, and how the rest is put
//! back.
//!
//! Where the system allows it, the command works in an overlay, and the layer with its changes is the set. Elsewhere two
//! snapshots of the tree are compared, under the ignore rules from before. Changes that the policy allows are kept, with
//! pre-images, so `undo`, restore and the summary know them. Everything else is put back: ignore rules, repositories,
//! symlinks, protected files. Products that git ignores are not looked at: build caches stay. Other ignored files stay
//! as the command leaves them, and what it replaced or removed of them goes to the backup.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_engine::Problem;
use code_commit_guard::{Guard, Policy};
use code_commit_repo::{Git, WorkTree};
use rustix::fs::{FileType, Stat};

use crate::backup::{BACKUP, Backup};
use crate::change::Seen;
use crate::copies::Copies;
use crate::fault::Fault;
use crate::judge::Judge;
use crate::layer::{stat_below, stat_through};
use crate::note;
use crate::overlay::{Folders, Overlay};
use crate::repositories::Resulting;
use crate::snapshot::{Snapshot, When};
use crate::told::{self, Accounted};
use crate::tracked::Tracked;

/// What commands may change for good, and what of the tree is not looked at.
#[derive(Debug, Default)]
pub struct Scope {
    /// Who changes the tree, as messages name it: `the build`.
    pub who: Cow<'static, str>,
    /// Changes to keep; all others are put back.
    pub may_change: Policy,
    /// Not looked at: what the harness itself writes meanwhile, relative to the root.
    pub own: Vec<PathBuf>,
    /// Not looked at, at every level.
    pub skipped_names: Vec<String>,
    /// Not looked at: folders for products of the build, relative to the root.
    pub products: Vec<PathBuf>,
    /// Whether nothing stays that a command changes, except ignored files.
    pub keeps_nothing: bool,
    /// Whether products are looked at, too: they cannot be put back, but named.
    pub names_products: bool,
    /// The folder below the backup for what is needed while a command runs, if it is not `before`.
    pub before: Option<&'static str>,
    /// The folder below the backup for what is taken out of the tree, if it is not the next free one.
    pub left: Option<String>,
}

impl Scope {
    pub(crate) fn skips(&self, path: &Path, kind: FileType) -> bool {
        let name = path.file_name().unwrap_or_default();
        let is_it = |one: &PathBuf| path.as_os_str() == one.as_os_str();
        self.own.iter().any(is_it)
            || self.skipped_names.iter().any(|one| name == &**one)
            || (kind.is_dir() && self.products.iter().any(is_it))
    }
}

/// Takes account of one command after the other in a run.
#[derive(Debug, Default)]
pub struct ChangeEngine {
    /// What the next command may change.
    pub scope: Scope,
    /// What decides whether the work is done, relative to the root: no command may change it.
    pub sealed: Vec<PathBuf>,
    /// Where the command's changes go, if it works in an overlay.
    overlay: Option<Overlay>,
    pub(crate) copies: Copies,
    pub(crate) tracked: Tracked,
    /// What commands left at ignored paths: nothing is lost if a later one replaces it.
    pub(crate) written: BTreeMap<PathBuf, Seen>,
    pub(crate) state: State,
}

/// What is known of the tree from [`open`](ChangeEngine::open) until the command's changes are accounted for.
#[derive(Debug, Default)]
pub(crate) enum State {
    /// No command is being accounted for.
    #[default]
    Idle,
    /// The tree is unchanged: the command works in an overlay.
    Overlaid(Overlay),
    /// The tree as it was before the command.
    Compared(Arc<Snapshot>),
}

/// How programs report that a file or folder cannot be renamed or linked from one file system to another.
const EXDEV: [&str; 4] = [
    "EXDEV",
    "Invalid cross-device link",
    "os error 18",
    "Errno 18",
];

/// For what is needed while a command runs.
pub(crate) const BEFORE: &str = "before";

impl ChangeEngine {
    /// Reads nothing from disk yet.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            ..Self::default()
        }
    }

    /// Takes what git has from this work tree, with its configuration as it was opened.
    #[must_use]
    pub fn of(mut self, tree: &WorkTree) -> Self {
        self.copies.tree = Some(tree.clone());
        self
    }

    /// Asks this git for what it has. Without one, the files that it has are copied, too.
    #[must_use]
    pub fn asking(mut self, git: Option<Git>) -> Self {
        self.copies.git = git;
        self
    }

    /// Lets the command work in an overlay over the tree, whose layers are in this state folder.
    #[must_use]
    pub fn in_overlay(mut self, state: &Path) -> Self {
        self.overlay = Some(Overlay::below(state));
        self
    }

    /// Goes on with the copies of an earlier command in the same run.
    #[must_use]
    pub fn after(mut self, earlier: ChangeEngine) -> Self {
        let Copies { tree, git, .. } = std::mem::replace(&mut self.copies, earlier.copies);
        (self.copies.tree, self.copies.git, self.written) = (tree, git, earlier.written);
        self
    }

    /// The overlay for the next command, if it works in one.
    pub fn overlay(&self) -> Result<Option<Folders>, Fault> {
        let State::Overlaid(overlay) = &self.state else {
            return Ok(None);
        };
        overlay
            .folders()
            .map(Some)
            .map_err(Fault::file("make", &overlay.upper()))
    }

    /// Whether commands work in an overlay, so that whatever changes in it is theirs.
    pub fn has_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    /// From now on commands work in the tree itself.
    pub fn leave_overlay(&mut self) {
        self.overlay = None;
    }

    /// Whether a command is being accounted for.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Whether no command has changed anything in the overlay yet.
    pub fn is_fresh(&self) -> bool {
        match &self.state {
            State::Idle => true,
            State::Overlaid(overlay) => code_commit_dir::list(overlay.upper())
                .is_ok_and(|mut changed| changed.next().is_none()),
            State::Compared(_) => false,
        }
    }

    /// What an overlay cannot do is not the fault of a command that failed with this output: if it says `EXDEV`, its
    /// changes are dropped, and from now on commands work in the tree. Then it has to run again, as the warning says.
    pub fn leave_overlay_after(
        &mut self,
        output: &str,
        guard: &Guard,
        run: &Path,
    ) -> Result<Option<Problem>, Fault> {
        let is_exdev = EXDEV.iter().any(|sign| output.contains(sign));
        if !is_exdev || !matches!(self.state, State::Overlaid(_)) {
            return Ok(None);
        }
        self.abandon(guard, run)?;
        self.leave_overlay();
        Ok(Some(told::exdev(&self.scope.who)))
    }

    pub(crate) fn backup<'r>(&self, run: &'r Path) -> Backup<'r> {
        let backup = Backup::of(run);
        match &self.scope.left {
            Some(left) => backup.named(left.clone()),
            None => backup,
        }
    }

    pub(crate) fn folder(&self, run: &Path) -> PathBuf {
        run.join(BACKUP).join(self.scope.before.unwrap_or(BEFORE))
    }

    /// Looks at the tree before a command and copies what could not be restored otherwise; warns the first time that
    /// this is too much.
    pub fn open(&mut self, guard: &Guard, run: &Path) -> Result<Option<Problem>, Fault> {
        let root = guard.root();
        let own = run.strip_prefix(root).map(Path::to_owned);
        let all = &mut self.scope.own;
        all.extend(own.ok().filter(|own| !all.contains(own)));
        self.track(root)?;
        self.copies.unchanged = None;
        if let Some(overlay) = self.overlay.clone() {
            let made = overlay.renew(run);
            made.map_err(Fault::file("make", &overlay.upper()))?;
            self.copies.unchanged = Some(folder(root)?);
            self.state = State::Overlaid(overlay);
            return Ok(None);
        }
        let folder = self.folder(run);
        let before = self.look(guard, When::Before, None)?;
        let without = self
            .copies
            .fill(root, &before, &folder, self.scope.may_change.is_of_role())
            .map_err(Fault::file("keep copies in", &folder))?;
        note::write(&folder, &self.scope.own, &before)
            .map_err(Fault::file("note what the tree held in", &folder))?;
        self.state = State::Compared(Arc::new(before));
        Ok(told::too_much(&without).filter(|_| !std::mem::replace(&mut self.copies.is_told, true)))
    }

    /// Goes on with what a killed harness noted of the tree before a command; whether there is anything.
    pub fn reopen(&mut self, root: &Path, run: &Path) -> Result<bool, Fault> {
        let folder = self.folder(run);
        let noted = note::read(&folder).map_err(Fault::file("read what was noted in", &folder))?;
        let Some((own, before)) = noted.and_then(|noted| noted.snapshot) else {
            return Ok(false);
        };
        self.scope.own = own;
        self.go_on(root, before, run)?;
        Ok(true)
    }

    pub(crate) fn go_on(&mut self, root: &Path, before: Snapshot, run: &Path) -> Result<(), Fault> {
        self.track(root)?;
        self.copies.reopen(root, &before, &self.folder(run));
        self.state = State::Compared(Arc::new(before));
        Ok(())
    }

    fn track(&mut self, root: &Path) -> Result<(), Fault> {
        let committed = self.copies.committed(root).map_err(io::Error::from);
        let committed = committed.map_err(Fault::file("read the index of", root))?;
        self.tracked = committed.map_or(Tracked::None, Tracked::Index);
        Ok(())
    }

    pub(crate) fn judge<'j>(&'j self, guard: &'j Guard, now: &'j Path) -> Judge<'j> {
        Judge {
            result: Resulting { now, guard },
            policy: &self.scope.may_change,
        }
    }

    /// What stands at a path, as the commands see it.
    pub fn stat(&self, guard: &Guard, path: &Path) -> Result<Option<Stat>, Fault> {
        let tree = folder(guard.root())?;
        let found = match &self.state {
            State::Overlaid(overlay) => stat_through(&folder(&overlay.upper())?, &tree, path),
            State::Idle | State::Compared(_) => stat_below(&tree, path),
        };
        found.map_err(Fault::file("look at", path))
    }

    /// Judges what the command changed: restores what may not change, and stores pre-images of the rest in
    /// `set`. Does nothing if not open.
    ///
    /// Until [`recorded`](Self::recorded), a kill has the next command revert everything.
    pub fn close(&mut self, guard: &Guard, run: &Path, set: &Path) -> Result<Accounted, Fault> {
        if self.scope.keeps_nothing {
            return self.forget(guard, run);
        }
        let noted = self.folder(run);
        if self.is_open() {
            note::adopting(&noted, set).map_err(Fault::file("note what is adopted in", &noted))?;
        }
        let state = std::mem::take(&mut self.state);
        let accounted = self.account(&state, guard, run, set);
        let accounted = self.keep_state(state, accounted)?;
        if accounted.changes.is_empty() {
            // There is nothing to revert.
            self.recorded(run)?;
        }
        Ok(accounted)
    }

    /// The answer that names the changes is in the journal: from now on they are the run's.
    pub fn recorded(&self, run: &Path) -> Result<(), Fault> {
        if let Some(overlay) = &self.overlay {
            overlay
                .remove()
                .map_err(Fault::file("remove", &overlay.upper()))?;
        }
        self.forget_note(run)
    }

    /// Restores everything but ignored files.
    fn forget(&mut self, guard: &Guard, run: &Path) -> Result<Accounted, Fault> {
        let mut backup = self.backup(run);
        let mut warnings = self.reset(guard, run, &mut backup)?;
        warnings.extend(told::abandoned(&self.scope.who, backup.folder()));
        Ok(Accounted {
            warnings,
            ..Accounted::default()
        })
    }

    /// Restores everything: the command did not finish, or its changes are not wanted.
    pub fn abandon(&mut self, guard: &Guard, run: &Path) -> Result<Accounted, Fault> {
        if let State::Overlaid(overlay) = &self.state {
            overlay
                .remove()
                .map_err(Fault::file("remove", &overlay.upper()))?;
            self.state = State::Idle;
        }
        self.forget(guard, run)
    }

    /// Restores everything but ignored files, which an overlay brings into the tree. What was there goes to the backup.
    pub fn reset(
        &mut self,
        guard: &Guard,
        run: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let state = std::mem::take(&mut self.state);
        let reset = self.reset_to(&state, guard, run, backup);
        let warnings = self.keep_state(state, reset)?;
        self.forget_note(run).map(|()| warnings)
    }

    /// Git does not see everything that has to go, so the snapshot is kept, here and on disk, until it is of no more use.
    pub(crate) fn keep_state<T>(
        &mut self,
        state: State,
        done: Result<T, Fault>,
    ) -> Result<T, Fault> {
        if done.is_err() && matches!(state, State::Compared(_)) {
            self.state = state;
        }
        done
    }

    pub(crate) fn forget_note(&self, run: &Path) -> Result<(), Fault> {
        let folder = self.folder(run);
        note::remove(&folder).map_err(Fault::file("remove what was noted in", &folder))
    }

    /// The run is over: its copies are not needed any more.
    pub fn end(&mut self, run: &Path) -> Result<(), Fault> {
        forget(run, self.scope.before.unwrap_or(BEFORE))
    }
}

/// Whether a run keeps copies of its tree: a command may have been under way when it ended.
pub fn has_copies(run: &Path) -> bool {
    run.join(BACKUP).join(BEFORE).is_dir()
}

/// Removes the copies of a tree that are needed while a command runs, and what was noted of it.
pub fn forget_copies(run: &Path) -> Result<(), Fault> {
    forget(run, BEFORE)
}

fn forget(run: &Path, before: &str) -> Result<(), Fault> {
    let base = run.join(BACKUP);
    let remove = || match Folder::open(&base) {
        Err(gone) if code_commit_dir::reach::is_gone(&gone) => Ok(()),
        folder => code_commit_dir::reach::remove(folder?, before.as_ref()),
    };
    remove().map_err(Fault::file("remove the copies in", &base))
}

pub(crate) fn folder(path: &Path) -> Result<Folder, Fault> {
    Folder::open(path).map_err(Fault::file("open", path))
}

#[cfg(test)]
mod tests;
