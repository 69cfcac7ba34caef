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

use code_commit_dir::{Folder, Interrupt};
use code_commit_engine::Problem;
use code_commit_guard::{Guard, Policy};
use code_commit_repo::WorkTree;
use rustix::fs::Stat;

use crate::backup::{BACKUP, Backup, last};
use crate::change::{ChangeSet, Seen};
use crate::copies::Copies;
use crate::fault::Fault;
use crate::judge::Judge;
use crate::layer::{Layer, stat_below};
use crate::note;
use crate::overlay::{Folders, Overlay};
use crate::repositories::Resulting;
use crate::snapshot::{Look, Snapshot, Tracked};
use crate::told::{self, Accounted};

/// What commands may change for good, and which paths to skip.
#[derive(Debug)]
pub struct ChangeEngine {
    /// Who changes the tree, as messages name it: `the build`.
    pub(crate) who: Cow<'static, str>,
    /// Changes to keep; all others are reverted.
    pub(crate) may_change: Policy,
    pub(crate) skips: Skips,
    /// What decides whether the work is done, relative to the root.
    pub(crate) sealed: Vec<PathBuf>,
    /// Where the command's changes go, if it works in an overlay.
    overlay: Option<Overlay>,
    pub(crate) copies: Copies,
    pub(crate) tracked: Tracked,
    /// What commands left at ignored paths: nothing is lost if a later one replaces it.
    pub(crate) written: BTreeMap<PathBuf, Seen>,
    /// Whether changes that the policy allows stay.
    keeps: bool,
    /// Whether products are looked at, too: they cannot be put back, but named.
    names_products: bool,
    /// The folder below the backup for what is needed while a command runs.
    before: Cow<'static, str>,
    /// The folder below the backup for what is taken out of the tree.
    left: Option<String>,
    pub(crate) state: State,
}

/// What is not looked at.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    /// What the harness itself writes meanwhile, relative to the root.
    pub(crate) own: Vec<PathBuf>,
    /// At every level.
    names: Vec<String>,
    /// Folders for products of the build, relative to the root.
    pub(crate) products: Vec<PathBuf>,
}

impl Skips {
    fn holds(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        let is_own = |own: &PathBuf| path.as_os_str() == own.as_os_str();
        self.own.iter().any(is_own) || self.names.iter().any(|one| name == &**one)
    }

    /// Whether a path is for a folder of products.
    pub(crate) fn is_product(&self, path: &Path) -> bool {
        let is = |product: &PathBuf| path.as_os_str() == product.as_os_str();
        self.products.iter().any(is)
    }
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
    Compared(Snapshot),
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
    pub fn new(who: impl Into<Cow<'static, str>>, may_change: Policy, own: Vec<PathBuf>) -> Self {
        Self {
            who: who.into(),
            may_change,
            skips: Skips {
                own,
                ..Skips::default()
            },
            sealed: Vec::new(),
            overlay: None,
            copies: Copies::default(),
            tracked: Tracked::default(),
            written: BTreeMap::new(),
            keeps: true,
            names_products: false,
            before: BEFORE.into(),
            left: None,
            state: State::Idle,
        }
    }

    /// Takes what git has from this work tree, with its configuration as it was opened.
    #[must_use]
    pub fn of(mut self, tree: &WorkTree) -> Self {
        self.copies.tree = Some(tree.clone());
        self
    }

    /// Also skips these folders, relative to the root, which are for products of the build.
    #[must_use]
    pub fn with_products(mut self, products: Vec<PathBuf>) -> Self {
        self.skips.products = products;
        self
    }

    /// From now on also leaves alone what the harness itself writes here, relative to the root.
    pub fn leave_alone(&mut self, own: impl IntoIterator<Item = PathBuf>) {
        self.skips.own.extend(own);
    }

    /// Also skips what has one of these names, at every level.
    #[must_use]
    pub fn skipping(mut self, names: Vec<String>) -> Self {
        self.skips.names = names;
        self
    }

    /// These paths, relative to the root, decide whether the work is done, so no command may change them.
    pub fn seal(&mut self, sealed: Vec<PathBuf>) {
        self.sealed = sealed;
    }

    /// Keeps what is needed while a command runs in a folder of this name below the backup.
    #[must_use]
    pub fn keeping_in(self, before: String) -> Self {
        Self {
            before: before.into(),
            ..self
        }
    }

    /// What is taken out of the tree gets a folder of this name below the backup.
    #[must_use]
    pub fn taking_to(self, left: String) -> Self {
        Self {
            left: Some(left),
            ..self
        }
    }

    /// Also says which products have changed.
    #[must_use]
    pub fn naming_products(self) -> Self {
        Self {
            names_products: true,
            ..self
        }
    }

    /// Lets nothing that a command changes stay, except ignored files.
    #[must_use]
    pub fn keeping_nothing(self) -> Self {
        Self {
            keeps: false,
            ..self
        }
    }

    /// Lets the command work in an overlay over the tree, whose layers are in this state folder.
    #[must_use]
    pub fn in_overlay(self, state: &Path) -> Self {
        Self {
            overlay: Some(Overlay::below(state)),
            ..self
        }
    }

    /// Goes on with the copies of an earlier command in the same run.
    #[must_use]
    pub fn after(mut self, earlier: ChangeEngine) -> Self {
        let tree = std::mem::replace(&mut self.copies, earlier.copies).tree;
        (self.copies.tree, self.written) = (tree, earlier.written);
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
        Ok(Some(told::exdev(&self.who)))
    }

    pub(crate) fn backup<'r>(&self, run: &'r Path) -> Backup<'r> {
        let backup = Backup::of(run);
        match &self.left {
            Some(left) => backup.named(left.clone()),
            None => backup,
        }
    }

    pub(crate) fn folder(&self, run: &Path) -> PathBuf {
        run.join(BACKUP).join(&*self.before)
    }

    /// Looks at the tree before a command and copies what could not be restored otherwise; warns the first time that
    /// this is too much.
    pub fn open(&mut self, guard: &Guard, run: &Path) -> Result<Option<Problem>, Fault> {
        let own = run.strip_prefix(guard.root()).map(Path::to_owned);
        let all = &mut self.skips.own;
        all.extend(own.ok().filter(|own| !all.contains(own)));
        self.track(guard.root())?;
        if let Some(overlay) = self.overlay.clone() {
            overlay
                .renew(run)
                .map_err(Fault::file("make", &overlay.upper()))?;
            self.state = State::Overlaid(overlay);
            return Ok(None);
        }
        let folder = self.folder(run);
        let before = self.look(guard, None)?;
        let without = self
            .copies
            .fill(guard.root(), &before, &folder, self.may_change.is_of_role())
            .map_err(Fault::file("keep copies in", &folder))?;
        note::write(&folder, &self.skips.own, &before)
            .map_err(Fault::file("note what the tree held in", &folder))?;
        self.state = State::Compared(before);
        Ok(told::too_much(&without).filter(|_| !std::mem::replace(&mut self.copies.is_told, true)))
    }

    /// Goes on with what a killed harness noted of the tree before a command; whether there is anything.
    pub fn reopen(&mut self, root: &Path, run: &Path) -> Result<bool, Fault> {
        let folder = self.folder(run);
        let noted = note::read(&folder).map_err(Fault::file("read what was noted in", &folder))?;
        let Some((own, before)) = noted.and_then(|noted| noted.snapshot) else {
            return Ok(false);
        };
        self.skips.own = own;
        self.track(root)?;
        self.go_on(root, before, run);
        Ok(true)
    }

    pub(crate) fn go_on(&mut self, root: &Path, before: Snapshot, run: &Path) {
        self.copies.reopen(root, &before, &self.folder(run));
        self.state = State::Compared(before);
    }

    fn track(&mut self, root: &Path) -> Result<(), Fault> {
        let unread = |error| Fault::file("read the index of", root)(io::Error::from(error));
        let Some(tree) = self.copies.tree(root) else {
            return Ok(());
        };
        let mut paths = tree.tracked_paths().map_err(unread)?;
        let skips = &self.skips;
        let is_skipped = |path: &PathBuf| {
            let mut all = skips.own.iter().chain(&skips.products);
            all.any(|skipped| path.starts_with(skipped))
        };
        paths.retain(|path| !is_skipped(path));
        self.tracked = Tracked::new(paths);
        Ok(())
    }

    /// `before` is what was there before the command, if it is over.
    pub(crate) fn look(&self, guard: &Guard, before: Option<&Snapshot>) -> Result<Snapshot, Fault> {
        let (skips, root) = (&self.skips, guard.root());
        let is_folder = |path: &Path| {
            root.join(path)
                .symlink_metadata()
                .is_ok_and(|found| found.is_dir())
        };
        let is_product = |path: &Path| skips.is_product(path) && is_folder(path);
        let look = Look {
            guard,
            tracked: &self.tracked,
            skipped: &|path| skips.holds(path) || is_product(path),
            policy: self.may_change.is_of_role().then_some(&self.may_change),
            products: self.names_products,
            before,
        };
        let mut snapshot = look.whole()?;
        let tree = Folder::open(guard.root()).map_err(Fault::file("open", guard.root()))?;
        for path in &self.sealed {
            let found = stat_below(&tree, path).map_err(Fault::file("look at", path))?;
            snapshot.add(path, found.as_ref().map(Seen::of));
        }
        Ok(snapshot)
    }

    pub(crate) fn layer<'l>(&'l self, guard: &'l Guard, upper: &Path) -> io::Result<Layer<'l>> {
        Layer::open(guard, upper, &self.skips, &self.tracked)
    }

    pub(crate) fn judge<'j>(&'j self, guard: &'j Guard, now: &'j Path) -> Judge<'j> {
        Judge {
            result: Resulting { now, guard },
            policy: &self.may_change,
        }
    }

    /// What stands at a path, as the commands see it.
    pub fn stat(&self, guard: &Guard, path: &Path) -> Result<Option<Stat>, Fault> {
        let found = match &self.state {
            State::Overlaid(overlay) => self
                .layer(guard, &overlay.upper())
                .and_then(|layer| layer.stat(path)),
            State::Idle | State::Compared(_) => {
                Folder::open(guard.root()).and_then(|tree| stat_below(&tree, path))
            }
        };
        found.map_err(Fault::file("look at", path))
    }

    /// Puts back what the command changed of what decides, however it ended; gives the paths, and the folder with what
    /// was there. Called before anything else is judged.
    pub fn restore_sealed(
        &mut self,
        guard: &Guard,
        run: &Path,
    ) -> Result<(Vec<String>, Option<PathBuf>), Fault> {
        match std::mem::take(&mut self.state) {
            State::Idle => Ok((Vec::new(), None)),
            State::Overlaid(overlay) => {
                let upper = overlay.upper();
                let restored = self.restore_in_layer(guard, &upper);
                self.state = State::Overlaid(overlay);
                let failed = Fault::file("restore what the command changed in", &upper);
                restored.map_err(failed).map(|restored| (restored, None))
            }
            State::Compared(before) => {
                let mut backup = self.backup(run);
                let restored = self.restore_sealed_in(&before, guard, &mut backup);
                self.state = State::Compared(before);
                restored.map(|restored| (restored, backup.folder().map(Path::to_owned)))
            }
        }
    }

    fn restore_in_layer(&self, guard: &Guard, upper: &Path) -> io::Result<Vec<String>> {
        let layer = self.layer(guard, upper)?;
        let mut broken = Vec::new();
        for path in &self.sealed {
            if layer.revert(path)? {
                broken.push(path.display().to_string());
            }
        }
        Ok(broken)
    }

    /// Judges what the command changed: restores what may not change, and stores pre-images of the rest in
    /// `set`. Does nothing if not open.
    ///
    /// Until [`recorded`](Self::recorded), a kill has the next command revert everything. Reading the changes can be
    /// interrupted, bringing them into the tree cannot.
    pub fn close(
        &mut self,
        guard: &Guard,
        run: &Path,
        set: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Accounted, Fault> {
        if !self.keeps {
            return self.forget(guard, run);
        }
        let folder = self.folder(run);
        if self.is_open() {
            note::adopting(&folder, set)
                .map_err(Fault::file("note what is adopted in", &folder))?;
        }
        match std::mem::take(&mut self.state) {
            State::Idle => Ok(Accounted::default()),
            State::Overlaid(overlay) => {
                match self.judge_layer(&overlay, guard, run, set, interrupt) {
                    Err(_) if interrupt().is_err() => self.keep_whole(&overlay, run, set),
                    judged => self.bring_in(&overlay, guard, judged?),
                }
            }
            State::Compared(before) => {
                let compared = self.compare(&before, guard, run, set, interrupt);
                self.keep_state(before, compared)
            }
        }
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

    /// The account was interrupted, and the tree is as before the command.
    pub(crate) fn interrupted(
        &self,
        kept: Option<&Path>,
        gone: &[String],
        run: &Path,
        set: &Path,
    ) -> Result<Accounted, Fault> {
        code_commit_dir::remove(set).map_err(Fault::file("remove", set))?;
        self.forget_note(run)?;
        Ok(told::no_time_left(&self.who, kept, gone))
    }

    /// Restores everything but ignored files.
    fn forget(&mut self, guard: &Guard, run: &Path) -> Result<Accounted, Fault> {
        if !matches!(self.state, State::Overlaid(_)) {
            return self.abandon(guard, run);
        }
        let warnings = self.reset(guard, run, &mut self.backup(run))?;
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
        let mut backup = self.backup(run);
        let mut warnings = self.reset(guard, run, &mut backup)?;
        warnings.extend(told::abandoned(&self.who, backup.folder()));
        Ok(Accounted {
            warnings,
            ..Accounted::default()
        })
    }

    /// Restores everything but ignored files, which an overlay brings into the tree. What was there goes to the backup.
    pub fn reset(
        &mut self,
        guard: &Guard,
        run: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let warnings = match std::mem::take(&mut self.state) {
            State::Idle => Vec::new(),
            State::Overlaid(overlay) => self.bring_in_ignored(&overlay, guard, run)?,
            State::Compared(before) => {
                let reset = self.reset_to(&before, guard, run, backup);
                self.keep_state(before, reset)?
            }
        };
        self.forget_note(run).map(|()| warnings)
    }

    /// Git does not see everything that has to go, so the snapshot is kept, here and on disk, until it is of no more use.
    pub(crate) fn keep_state<T>(
        &mut self,
        before: Snapshot,
        done: Result<T, Fault>,
    ) -> Result<T, Fault> {
        if done.is_err() {
            self.state = State::Compared(before);
        }
        done
    }

    /// New folders that are out of scope and empty by now go, innermost first.
    pub(crate) fn remove_empty(&self, tree: &Folder, made: &[PathBuf]) {
        let bytes = |folder: &Path| folder.as_os_str().as_encoded_bytes().to_vec();
        let is_out = |folder: &&PathBuf| self.may_change.refuses_bytes(&bytes(folder)).is_some();
        for folder in made.iter().rev().filter(is_out) {
            let above = tree.folder_of(folder);
            let _ = above.and_then(|above| above.remove_folder(last(folder)?));
        }
    }

    /// Leaves out the ignored files that are new, and those that an earlier command had left.
    pub(crate) fn leave_out(&mut self, changes: &mut ChangeSet) {
        changes.retain(|one| {
            if !one.is_ignored() {
                return true;
            }
            let left = match one.after {
                Some(after) => self.written.insert(one.path.clone(), after),
                None => self.written.remove(&one.path),
            };
            let left = left.map(|left| left.identity());
            one.before.is_some_and(|was| left != Some(was.identity()))
        });
    }

    pub(crate) fn forget_note(&self, run: &Path) -> Result<(), Fault> {
        let folder = self.folder(run);
        note::remove(&folder).map_err(Fault::file("remove what was noted in", &folder))
    }

    /// The run is over: its copies are not needed any more.
    pub fn end(&mut self, run: &Path) -> Result<(), Fault> {
        forget(run, &self.before)
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

#[cfg(test)]
mod tests;
