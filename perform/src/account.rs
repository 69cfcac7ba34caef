//! The account: what a command changed beyond what it was asked to do.
//!
//! Where the system allows it, the command works in a view of the tree, and the layer with its changes is the
//! account. Elsewhere the tree is surveyed before and after, under the ignore rules from the start of the run. Changes that the
//! policy allows are kept and become a change set like a reply's, with pre-images, so `undo`, restore and the
//! summary know them. Everything else is restored: ignore rules, repositories, symlinks, protected files.
//! Ignored files are not surveyed: build caches stay.

mod adopt;
mod layer;
mod note;
mod put_back;
mod source;
mod view;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use apply::Lock;
use engine::Problem;
use guard::{Difference, Guard, Policy, Seen, Survey};
use logging::RunFolder;

use self::adopt::Places;
use self::put_back::PutBack;
use self::source::Source;
use self::view::Layers;
use crate::fault::Fault;
use crate::seal::Attic;

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
    /// Whether the survey is saved to disk, for [`settle`]. A loop that rolls back with git needs none.
    is_noted: bool,
    /// The tree before the command, between [`open`](Self::open) and the end of the command.
    before: Option<Survey>,
}

/// Folder in the run folder that holds the state before a command while the command runs.
const BEFORE: &str = "before";

/// What a command changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// Kept; `undo` reverts it.
    pub changes: Vec<engine::Changed>,
    /// Paths that were restored.
    pub put_back: Vec<String>,
    /// The size of new and changed files that are not accounted for, if it is known.
    pub unaccounted_bytes: u64,
    /// For the user.
    pub warnings: Vec<Problem>,
}

impl Account {
    /// Reads nothing from disk yet.
    pub fn new(who: &'static str, may_change: Policy, own: Vec<PathBuf>) -> Self {
        let (source, products) = (Source::default(), Vec::new());
        Self { who, may_change, own, products, layers: None, source, is_noted: true, before: None }
    }

    /// Also skips these folders, relative to the root, which are for products of the build.
    #[must_use]
    pub fn with_products(self, products: Vec<PathBuf>) -> Self {
        Self { products, ..self }
    }

    /// Lets the command work in a view of the tree, whose layers are in this state folder.
    #[must_use]
    pub fn in_view(self, state: &Path) -> Self {
        Self { layers: Some(Layers::below(state)), ..self }
    }

    /// A new view for the command, if it works in one.
    pub(crate) fn view(&self) -> Result<Option<runner::View>, Fault> {
        let renew = |layers: &Layers| layers.renew().map_err(Fault::file("make", &layers.upper()));
        self.layers.as_ref().map(renew).transpose()
    }

    /// From now on commands work in the tree itself.
    pub(crate) fn leave_view(&mut self) {
        self.layers = None;
    }

    /// The same for a loop that can recover from a kill by other means.
    #[must_use]
    pub fn unnoted(self) -> Self {
        Self { is_noted: false, ..self }
    }

    /// Surveys the tree before a command and copies what could not be restored otherwise; warns if that is
    /// too much.
    pub fn open(&mut self, guard: &Guard, run: &RunFolder) -> Result<Option<Problem>, Fault> {
        let folder = run.path().join(BEFORE);
        let own = run.path().strip_prefix(guard.root()).map(Path::to_owned);
        self.own.extend(own.ok().filter(|own| !self.own.contains(own)));
        view::forget(run.path()).map_err(Fault::file("remove what was noted in", run.path()))?;
        if let Some(layers) = &mut self.layers {
            layers.open();
            return Ok(None);
        }
        let before = self.look(guard)?;
        let without = self
            .source
            .fill(guard.root(), &before, &folder)
            .map_err(Fault::file("keep copies in", &folder))?;
        if self.is_noted {
            note::write(&folder, &self.own, &before)
                .map_err(Fault::file("note what the tree held in", &folder))?;
        }
        self.before = Some(before);
        Ok(without)
    }

    /// Whether a command is being accounted for.
    pub fn is_open(&self) -> bool {
        self.before.is_some()
    }

    fn look(&self, guard: &Guard) -> Result<Survey, Fault> {
        let skipped = |path: &Path| self.own.iter().chain(&self.products).any(|own| path == own);
        guard.survey(&skipped).map_err(Fault::Judge)
    }
}

/// Restores everything changed by a command during which the harness was killed; the command is run again if
/// needed. Gives the paths; what replaced them is in the run folder.
///
/// What was saved is trusted: the caller makes sure that the harness wrote it.
pub fn settle(lock: &Lock, state: &Path, root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let mut reverted = view::settle(lock, state, root, run)?;
    let folder = run.join(BEFORE);
    let failed = |source| Fault::file("read what was noted in", &folder)(source);
    let Some((own, before)) = note::read(&folder).map_err(failed)? else { return Ok(reverted) };
    let mut account = Account::new("a command", Policy::new(), own);
    account.source.reopen(root, &before, &folder);
    let mut restored = BTreeSet::new();
    loop {
        let guard = Guard::open(root, Policy::new()).map_err(|error| failed(io::Error::other(error)))?;
        let mut differences = account.differences(&before, &guard)?;
        // Ignore rules made by the command hide the files that they name, so remove them first.
        let is_rule = |one: &Difference| one.path.file_name() == Some(OsStr::new(".gitignore"));
        let has_rules = differences.iter().any(|one| is_rule(one) && !restored.contains(&one.path));
        differences.retain(|one| !has_rules || is_rule(one));
        let gone =
            account.put_back(root, &before, &differences.iter().collect::<Vec<_>>(), &mut Attic::of(run))?;
        restored.extend(differences.into_iter().map(|one| one.path));
        if !has_rules {
            note::remove(&folder).map_err(failed)?;
            let shown = restored.iter().map(|path| path.display().to_string());
            reverted.extend(shown.filter(|path| !gone.contains(path)));
            return Ok(reverted);
        }
    }
}

fn forget(run: &RunFolder) -> Result<(), Fault> {
    let folder = run.path().join(BEFORE);
    note::remove(&folder).map_err(Fault::file("remove what was noted in", &folder))
}

/// What to do with a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// A new folder, or one whose content changed: its entries are decided separately.
    Follows,
    PutBack,
    /// A tool's cache that ignores itself.
    Dropped,
}

impl Account {
    /// Surveys the tree again, restores what may not change, and stores pre-images of the rest in `undo`.
    /// Does nothing if not open.
    pub fn close(&mut self, guard: &Guard, run: &RunFolder, undo: &Path) -> Result<Accounted, Fault> {
        if self.layers.as_mut().is_some_and(Layers::close)
            && let Some(layers) = &self.layers
        {
            return self.bring_in(layers, guard, run, undo);
        }
        let Some(before) = self.before.take() else { return Ok(Accounted::default()) };
        let root = guard.root();
        let differences = self.differences(&before, guard)?;
        let fates = self.fates(root, &differences);
        let of = |wanted: Fate| {
            let found = differences.iter().zip(&fates).filter(move |(_, fate)| **fate == wanted);
            found.map(|(one, _)| one).collect::<Vec<&Difference>>()
        };
        let (back, stays) = (of(Fate::PutBack), of(Fate::Stays));
        let mut attic = Attic::of(run.path());
        let gone = self.put_back(root, &before, &[of(Fate::Dropped), back.clone()].concat(), &mut attic)?;
        let made = differences.iter().filter(|one| is_made(one)).filter_map(|one| one.path.to_str());
        // What is out of scope and empty by now goes, innermost first.
        for folder in made.clone().rev().filter(|folder| self.may_change.refuses(folder).is_some()) {
            let _ = std::fs::remove_dir(root.join(folder));
        }
        let folders = made.filter(|folder| root.join(folder).is_dir()).map(str::to_owned).collect();
        let put_back = back.iter().map(|one| one.path.display().to_string());
        let put_back = put_back.filter(|path| !gone.contains(path)).collect();
        let mut accounted = Accounted { put_back, ..Accounted::default() };
        let places = Places { root, now: root, undo };
        places.adopt(&stays, folders, &|path, seen| self.source.read(path, seen), &mut accounted)?;
        accounted.warnings.extend(not_restored(self.who, &gone));
        accounted.warnings.extend(warning(self.who, &accounted.put_back, attic.folder()));
        forget(run)?;
        Ok(accounted)
    }

    /// Restores everything: the command did not finish.
    pub fn abandon(&mut self, guard: &Guard, run: &RunFolder) -> Result<Accounted, Fault> {
        if self.layers.as_mut().is_some_and(Layers::close)
            && let Some(layers) = &self.layers
        {
            layers.remove().map_err(Fault::file("remove", &layers.upper()))?;
            return Ok(Accounted::default());
        }
        let Some(before) = self.before.take() else { return Ok(Accounted::default()) };
        let differences = self.differences(&before, guard)?;
        let mut attic = Attic::of(run.path());
        let gone =
            self.put_back(guard.root(), &before, &differences.iter().collect::<Vec<_>>(), &mut attic)?;
        forget(run)?;
        let mut accounted = Accounted::default();
        accounted.warnings.extend(not_restored(self.who, &gone));
        if let Some(attic) = attic.folder() {
            let message = format!(
                "{} was ended, and what it had changed was restored; what was there is in {}",
                self.who,
                attic.display()
            );
            accounted.warnings.push(Problem::new("put-back", message));
        }
        Ok(accounted)
    }

    fn put_back(
        &self,
        root: &Path,
        before: &Survey,
        differences: &[&Difference],
        attic: &mut Attic<'_>,
    ) -> Result<Vec<String>, Fault> {
        let mut put_back =
            PutBack::new(root, before, &self.source, attic).map_err(Fault::file("open", root))?;
        differences.iter().for_each(|one| put_back.restore(one));
        put_back.finish()
    }

    /// The tree was restored by other means.
    pub fn reset(&mut self, run: &RunFolder) -> Result<(), Fault> {
        self.before = None;
        forget(run)
    }

    /// The run is over: its copies are not needed any more.
    pub fn end(&mut self, run: &RunFolder) -> Result<(), Fault> {
        let folder = run.path().join(BEFORE);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Fault::file("remove the copies in", &folder)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn differences(&self, before: &Survey, guard: &Guard) -> Result<Vec<Difference>, Fault> {
        let mut differences = before.differences(&self.look(guard)?);
        // A new time only suggests a change; compare the content.
        differences.retain(|one| !self.source.is_same(guard.root(), one));
        Ok(differences)
    }

    fn fates(&self, root: &Path, differences: &[Difference]) -> Vec<Fate> {
        let mut whole: Vec<(&Path, Fate)> = Vec::new();
        let mut fates = Vec::new();
        for one in differences {
            // Sorted: a folder comes before its content.
            let above = whole.iter().rev().find(|(folder, _)| one.path.starts_with(folder));
            let fate = match above {
                // Restored with the folder.
                Some(_) => Fate::Follows,
                None => self.fate(root, one),
            };
            if above.is_none() && is_made(one) && matches!(fate, Fate::PutBack | Fate::Dropped) {
                whole.push((&one.path, fate));
            }
            fates.push(fate);
        }
        fates
    }

    fn fate(&self, root: &Path, one: &Difference) -> Fate {
        let Difference { path, before, after } = one;
        let Some(text) = path.to_str() else { return Fate::PutBack };
        // A folder that is not in scope itself may hold a file that is.
        let refusal = self.may_change.refuses(text);
        let refusal = refusal.filter(|refusal| !(is_made(one) && refusal.code() == guard::Code::OutOfScope));
        if path.file_name() == Some(OsStr::new(".git")) || refusal.is_some() {
            return Fate::PutBack;
        }
        if is_made(one) {
            return match (new_folder(&root.join(path)), before) {
                (Fate::Follows, Some(before)) if before.kind().is_file() => Fate::Stays,
                (_, Some(_)) => Fate::PutBack,
                (fate, None) => fate,
            };
        }
        match (before, after) {
            // Its files have differences of their own; git does not track an empty folder.
            (Some(before), _) if is_folder(Some(before)) && !is_folder(after.as_ref()) => match after {
                Some(after) if !after.kind().is_file() => Fate::PutBack,
                Some(_) => Fate::Stays,
                None => Fate::Follows,
            },
            _ => {
                let is_ordinary = |seen: &Seen| seen.kind().is_file() || is_folder(Some(seen));
                let both = before.iter().chain(after);
                let is_mode_of_folder = is_folder(before.as_ref()) && is_folder(after.as_ref());
                if both.into_iter().all(is_ordinary) && !is_mode_of_folder {
                    Fate::Stays
                } else {
                    Fate::PutBack
                }
            }
        }
    }
}

fn is_made(one: &Difference) -> bool {
    is_folder(one.after.as_ref()) && !is_folder(one.before.as_ref())
}

fn is_folder(seen: Option<&Seen>) -> bool {
    seen.is_some_and(|seen| seen.kind().is_dir())
}

/// A repository is not kept, with a work tree or without: git runs programs named in its configuration. A
/// folder whose own ignore rules cover everything in it is a tool's cache.
fn new_folder(folder: &Path) -> Fate {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let rules = dir::read(&folder.join(".gitignore"), 4 << 10, dir::Links::Refused).ok().flatten();
    let rules = rules.map(|rules| String::from_utf8_lossy(&rules).into_owned()).unwrap_or_default();
    if has(".git") || (has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))) {
        Fate::PutBack
    } else if rules.lines().any(|line| line.trim_end() == "*") {
        Fate::Dropped
    } else {
        Fate::Follows
    }
}

/// For the user, who may have made the change at the same time.
fn warning(who: &str, put_back: &[String], attic: Option<&Path>) -> Option<Problem> {
    if put_back.is_empty() {
        return None;
    }
    let mut message = format!("{who} changed {}, which it may not; it was restored", named(put_back));
    if let Some(attic) = attic {
        message += &format!("; what was there is in {}", attic.display());
    }
    Some(Problem::new("put-back", message))
}

/// What has no usable copy: a socket, a file that is too large.
fn not_restored(who: &str, gone: &[String]) -> Option<Problem> {
    let message = format!("{who} changed or removed {}, which could not be restored", named(gone));
    (!gone.is_empty()).then(|| Problem::new("not-restored", message))
}

/// Paths named in a message.
const NAMED: usize = 10;

fn named(paths: &[String]) -> String {
    let mut text = paths.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}

#[cfg(test)]
mod tests;
