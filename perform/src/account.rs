//! The account: what a command changed beyond what it was asked to do.
//!
//! Where the system allows it, the command works in a view of the tree, and the layer with its changes is the
//! account. Elsewhere the tree is surveyed before and after, under the ignore rules from the start of the run. Changes that the
//! policy allows are kept and become a change set like a reply's, with pre-images, so `undo`, restore and the
//! summary know them. Everything else is restored: ignore rules, repositories, symlinks, protected files.
//! Products that git ignores are not surveyed: build caches stay. Other ignored files stay as the command leaves them,
//! and what it replaced or removed of them is kept for the user.

mod accounted;
mod adopt;
mod layer;
mod layers;
pub(crate) mod layout;
mod note;
mod put_back;
pub(crate) mod settle;
mod source;
mod surveyed;
mod triage;
mod view;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_dir::Interrupt;
use code_commit_engine::Problem;
use code_commit_guard::{Difference, Guard, Policy, Seen, Survey, Tracked};
use code_commit_logging::RunFolder;

pub use self::accounted::Accounted;
use self::accounted::not_restored;
pub(crate) use self::accounted::warning as put_back_warning;
use self::layers::Layers;
use self::note::BEFORE;
use self::source::Source;
use crate::attic::Attic;
use crate::fault::Fault;

/// What commands may change for good, and which paths to skip.
#[derive(Debug)]
pub struct Account {
    /// Who changes the tree, as messages name it: `the build`.
    who: &'static str,
    /// Changes to keep; all others are reverted.
    may_change: Policy,
    /// What the harness itself writes meanwhile, relative to the root; skipped.
    own: Vec<PathBuf>,
    /// Folders for products of the build, relative to the root; skipped, too.
    products: Vec<PathBuf>,
    /// Where the command's changes go, if it works in a view.
    layers: Option<Layers>,
    source: Source,
    /// Files that are accounted for although git's rules ignore them.
    tracked: Tracked,
    /// What commands left at ignored paths: nothing is lost if a later one replaces it.
    written: BTreeMap<PathBuf, Seen>,
    /// Whether changes that the policy allows stay.
    keeps: bool,
    state: State,
}

/// What is known of the tree from [`open`](Account::open) until the command's changes are accounted for.
#[derive(Debug, Default)]
enum State {
    /// No command is being accounted for.
    #[default]
    Idle,
    /// The tree is unchanged: the command works in a view.
    InView(Layers),
    /// The tree as it was before the command.
    Surveyed(Survey),
}

/// How programs report that a file or folder cannot be renamed or linked from one file system to another.
const EXDEV: [&str; 4] = [
    "EXDEV",
    "Invalid cross-device link",
    "os error 18",
    "Errno 18",
];

impl Account {
    /// Reads nothing from disk yet.
    pub fn new(who: &'static str, may_change: Policy, own: Vec<PathBuf>) -> Self {
        let (source, products, state) = (Source::default(), Vec::new(), State::Idle);
        let (layers, tracked) = (None, Tracked::default());
        Self {
            who,
            may_change,
            own,
            products,
            layers,
            source,
            tracked,
            written: BTreeMap::new(),
            keeps: true,
            state,
        }
    }

    /// Also skips these folders, relative to the root, which are for products of the build.
    #[must_use]
    pub fn with_products(self, products: Vec<PathBuf>) -> Self {
        Self { products, ..self }
    }

    /// Lets the command work in a view of the tree, whose layers are in this state folder.
    #[must_use]
    pub fn in_view(self, state: &Path) -> Self {
        Self {
            layers: Some(Layers::below(state)),
            ..self
        }
    }

    /// The view for the next command, if it works in one.
    pub fn view(&self) -> Result<Option<code_commit_runner::View>, Fault> {
        let State::InView(layers) = &self.state else {
            return Ok(None);
        };
        layers
            .view()
            .map(Some)
            .map_err(Fault::file("make", &layers.upper()))
    }

    /// Whether commands work in a view, so that whatever changes in it is theirs.
    pub(crate) fn has_view(&self) -> bool {
        self.layers.is_some()
    }

    /// From now on commands work in the tree itself.
    pub(crate) fn leave_view(&mut self) {
        self.layers = None;
    }

    /// Whether no command has changed anything in the view yet.
    pub(crate) fn is_fresh(&self) -> bool {
        match &self.state {
            State::Idle => true,
            State::InView(layers) => code_commit_dir::list(layers.upper())
                .is_ok_and(|mut changed| changed.next().is_none()),
            State::Surveyed(_) => false,
        }
    }

    /// What a view cannot do is not the fault of a command that failed with this output: if it says `EXDEV`, its
    /// changes are dropped, and from now on commands work in the tree. Then it has to run again, as the warning says.
    pub(crate) fn leave_view_after(
        &mut self,
        output: &str,
        guard: &Guard,
        run: &RunFolder,
    ) -> Result<Option<Problem>, Fault> {
        let is_exdev = EXDEV.iter().any(|sign| output.contains(sign));
        if !is_exdev || !matches!(self.state, State::InView(_)) {
            return Ok(None);
        }
        self.abandon(guard, run)?;
        self.leave_view();
        let message = format!(
            "{} failed with EXDEV, since an overlay cannot rename a folder of the tree: it runs again in the tree itself, \
             and so does everything later in this run",
            self.who
        );
        Ok(Some(Problem::new("exdev", message)))
    }

    /// Lets nothing that a command changes stay, except ignored files.
    #[must_use]
    pub fn keeping_nothing(self) -> Self {
        Self {
            keeps: false,
            ..self
        }
    }

    /// Surveys the tree before a command and copies what could not be restored otherwise; warns if that is
    /// too much.
    pub fn open(&mut self, guard: &Guard, run: &RunFolder) -> Result<Option<Problem>, Fault> {
        let folder = run.path().join(BEFORE);
        let own = run.path().strip_prefix(guard.root()).map(Path::to_owned);
        self.own
            .extend(own.ok().filter(|own| !self.own.contains(own)));
        self.tracked = self.tracked_in(guard)?;
        if let Some(layers) = self.layers.clone() {
            layers
                .renew(run.path())
                .map_err(Fault::file("make", &layers.upper()))?;
            self.state = State::InView(layers);
            return Ok(None);
        }
        let before = self.look(guard)?;
        let without = self
            .source
            .fill(guard.root(), &before, &folder)
            .map_err(Fault::file("keep copies in", &folder))?;
        note::write(&folder, &self.own, &before)
            .map_err(Fault::file("note what the tree held in", &folder))?;
        self.state = State::Surveyed(before);
        Ok(without)
    }

    fn tracked_in(&mut self, guard: &Guard) -> Result<Tracked, Fault> {
        let Some(tree) = self.source.tree(guard.root()) else {
            return Ok(Tracked::default());
        };
        let unread = |error| Fault::file("read the index of", guard.root())(io::Error::from(error));
        let is_skipped = |path: &PathBuf| {
            self.own
                .iter()
                .chain(&self.products)
                .any(|own| path.starts_with(own))
        };
        let paths = tree
            .tracked_paths()
            .map_err(unread)?
            .into_iter()
            .filter(|path| !is_skipped(path));
        Ok(guard.ignored_of(paths))
    }

    /// Whether a command is being accounted for.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    fn look(&self, guard: &Guard) -> Result<Survey, Fault> {
        let is_folder = |path: &Path| guard.root().join(path).is_dir();
        let skipped = |path: &Path| {
            let is_product = self.products.iter().any(|product| path == product);
            (is_product && is_folder(path)) || self.own.iter().any(|own| path == own)
        };
        guard.survey(&self.tracked, &skipped).map_err(Fault::Judge)
    }
}

impl Account {
    /// Judges what the command changed: restores what may not change, and stores pre-images of the rest in
    /// `undo`. Does nothing if not open.
    ///
    /// Until [`recorded`](Self::recorded), a kill has the next command revert everything. Reading the changes can be
    /// interrupted, bringing them into the tree cannot.
    pub fn close(
        &mut self,
        guard: &Guard,
        run: &RunFolder,
        undo: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Accounted, Fault> {
        if !self.keeps {
            return self.forget(guard, run);
        }
        let folder = run.path().join(BEFORE);
        if self.is_open() {
            note::adopting(&folder, undo)
                .map_err(Fault::file("note what is adopted in", &folder))?;
        }
        match std::mem::take(&mut self.state) {
            State::Idle => Ok(Accounted::default()),
            State::InView(layers) => match self.judge(&layers, guard, run, undo, interrupt) {
                Err(_) if interrupt().is_err() => self.keep_whole(&layers, run, undo),
                judged => self.bring_in(&layers, guard, judged?),
            },
            State::Surveyed(before) => {
                let compared = self.compare(&before, guard, run, undo, interrupt);
                self.keep_survey(before, compared)
            }
        }
    }

    /// The answer that names the changes is in the journal: from now on they are the run's.
    pub fn recorded(&self, run: &RunFolder) -> Result<(), Fault> {
        if let Some(layers) = &self.layers {
            layers
                .remove()
                .map_err(Fault::file("remove", &layers.upper()))?;
        }
        forget_note(run)
    }

    /// The account was interrupted, and the tree is as before the command.
    fn interrupted(
        &self,
        kept: Option<&Path>,
        gone: &[String],
        run: &RunFolder,
        undo: &Path,
    ) -> Result<Accounted, Fault> {
        code_commit_dir::remove(undo).map_err(Fault::file("remove", undo))?;
        forget_note(run)?;
        let kept = kept.map_or_else(String::new, |kept| {
            format!("; they are whole in {}", kept.display())
        });
        let message = format!(
            "there was no time left to take account of what {} changed: its changes are not in the tree{kept}",
            self.who
        );
        let warnings = [Problem::new("no-time-left", message)]
            .into_iter()
            .chain(not_restored(self.who, gone));
        Ok(Accounted {
            warnings: warnings.collect(),
            is_interrupted: true,
            ..Accounted::default()
        })
    }

    /// Restores everything but ignored files.
    fn forget(&mut self, guard: &Guard, run: &RunFolder) -> Result<Accounted, Fault> {
        if !matches!(self.state, State::InView(_)) {
            return self.abandon(guard, run);
        }
        let warnings = self.reset(guard, run, &mut Attic::of(run.path()))?;
        Ok(Accounted {
            warnings,
            ..Accounted::default()
        })
    }

    /// Restores everything: the command did not finish, or its changes are not wanted.
    pub(crate) fn abandon(&mut self, guard: &Guard, run: &RunFolder) -> Result<Accounted, Fault> {
        if let State::InView(layers) = &self.state {
            layers
                .remove()
                .map_err(Fault::file("remove", &layers.upper()))?;
            self.state = State::Idle;
        }
        let mut attic = Attic::of(run.path());
        let mut warnings = self.reset(guard, run, &mut attic)?;
        if let Some(attic) = attic.folder() {
            let message = format!(
                "restored what {} had changed; what was there is in {}",
                self.who,
                attic.display()
            );
            warnings.push(Problem::new("put-back", message));
        }
        Ok(Accounted {
            warnings,
            ..Accounted::default()
        })
    }

    /// Restores everything but ignored files, which a view brings into the tree. What was there goes to the attic.
    pub(crate) fn reset(
        &mut self,
        guard: &Guard,
        run: &RunFolder,
        attic: &mut Attic<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let warnings = match std::mem::take(&mut self.state) {
            State::Idle => Vec::new(),
            State::InView(layers) => self.bring_in_ignored(&layers, guard, run)?,
            State::Surveyed(before) => {
                let reset = self.reset_to(&before, guard, run, attic);
                self.keep_survey(before, reset)?
            }
        };
        forget_note(run).map(|()| warnings)
    }

    /// New folders that are out of scope and empty by now go, innermost first.
    fn remove_empty(&self, root: &Path, made: &[String]) {
        for folder in made
            .iter()
            .rev()
            .filter(|folder| self.may_change.refuses(folder).is_some())
        {
            let _ = std::fs::remove_dir(root.join(folder));
        }
    }

    /// The run is over: its copies are not needed any more.
    pub fn end(&mut self, run: &RunFolder) -> Result<(), Fault> {
        let folder = run.path().join(BEFORE);
        code_commit_dir::remove(&folder).map_err(Fault::file("remove the copies in", &folder))
    }
}

/// Leaves out the ignored files that are new, and those that an earlier command had left.
fn leave_out(written: &mut BTreeMap<PathBuf, Seen>, differences: &mut Vec<Difference>) {
    differences.retain(|one| {
        if !one.is_ignored() {
            return true;
        }
        let left = match one.after {
            Some(after) => written.insert(one.path.clone(), after),
            None => written.remove(&one.path),
        };
        let left = left.map(|left| left.identity());
        one.before.is_some_and(|was| left != Some(was.identity()))
    });
}

fn forget_note(run: &RunFolder) -> Result<(), Fault> {
    let folder = run.path().join(BEFORE);
    note::remove(&folder).map_err(Fault::file("remove what was noted in", &folder))
}

#[cfg(test)]
mod tests;
