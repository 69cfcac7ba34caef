//! The account: what a command has changed, apart from what was asked for.
//!
//! The tree is looked at before and after, by the ignore rules of the run's start. What the policy lets a command change stays and becomes
//! a set of changes like a reply's, with pre-images: `undo`, a restore and the summary know it. Everything else is put back: ignore rules,
//! repositories, links, what is protected. What the rules ignore is neither looked at nor accounted for: build caches stay.

mod note;
mod put_back;
mod source;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use engine::Problem;
use guard::{Difference, Guard, Policy, Seen, Survey};
use logging::RunFolder;

use self::put_back::PutBack;
use self::source::Source;
use crate::fault::Fault;
use crate::seal::Attic;

/// What commands may change for good, and what is no concern of theirs.
#[derive(Debug)]
pub struct Account {
    /// Who changes the tree, in the words of messages: `the build`.
    pub who: &'static str,
    /// What stays; anything else is put back.
    pub may_change: Policy,
    /// What the harness itself writes meanwhile, relative to the root.
    pub own: Vec<PathBuf>,
    source: Source,
    /// Whether what was there is noted on disk, for [`settle`]. A loop that rolls back by git needs no note.
    is_noted: bool,
    /// The tree as it was, between [`open`](Self::open) and the end of it.
    before: Option<Survey>,
}

/// The folder of a run with what was before a command, as long as the command runs.
const BEFORE: &str = "before";

/// What a command has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// It stays, and `undo` takes it back.
    pub changes: Vec<engine::Changed>,
    /// It was put back.
    pub put_back: Vec<String>,
    /// For a person.
    pub warnings: Vec<Problem>,
}

impl Account {
    /// Nothing is looked up yet.
    pub fn new(who: &'static str, may_change: Policy, own: Vec<PathBuf>) -> Self {
        Self { who, may_change, own, source: Source::default(), is_noted: true, before: None }
    }

    /// The same for a loop that has another way back after a kill.
    #[must_use]
    pub fn unnoted(self) -> Self {
        Self { is_noted: false, ..self }
    }

    /// Looks at the tree before a command, and copies what could not be brought back otherwise; a warning where that is too much.
    pub fn open(&mut self, guard: &Guard, run: &RunFolder) -> Result<Option<Problem>, Fault> {
        let folder = run.path().join(BEFORE);
        let own = run.path().strip_prefix(guard.root()).map(Path::to_owned);
        self.own.extend(own.ok().filter(|own| !self.own.contains(own)));
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

    /// Whether it waits for a command to end.
    pub fn is_open(&self) -> bool {
        self.before.is_some()
    }

    fn look(&self, guard: &Guard) -> Result<Survey, Fault> {
        guard.survey(&|path| self.own.iter().any(|own| path == own)).map_err(Fault::Judge)
    }
}

/// Puts back everything that a command has changed during which the harness was killed: the command is run again, or never was. Gives the
/// paths; what was there instead is in the run folder.
///
/// The note that tells what was there before is believed: the caller makes sure that it is the harness's own.
pub fn settle(root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let folder = run.join(BEFORE);
    let failed = |source| Fault::file("read what was noted in", &folder)(source);
    let Some((own, before)) = note::read(&folder).map_err(failed)? else { return Ok(Vec::new()) };
    let mut account = Account::new("a command", Policy::new(), own);
    account.source.reopen(root, &before, &folder);
    let mut restored = BTreeSet::new();
    loop {
        let guard = Guard::open(root, Policy::new()).map_err(|error| failed(io::Error::other(error)))?;
        let mut differences = account.differences(&before, &guard)?;
        // Ignore rules that the command has made hide what they name: they go first.
        let is_rule = |one: &Difference| one.path.file_name() == Some(OsStr::new(".gitignore"));
        let has_rules = differences.iter().any(|one| is_rule(one) && !restored.contains(&one.path));
        differences.retain(|one| !has_rules || is_rule(one));
        let gone =
            account.put_back(root, &before, &differences.iter().collect::<Vec<_>>(), &mut Attic::of(run))?;
        restored.extend(differences.into_iter().map(|one| one.path));
        if !has_rules {
            note::remove(&folder).map_err(failed)?;
            let shown = restored.iter().map(|path| path.display().to_string());
            return Ok(shown.filter(|path| !gone.contains(path)).collect());
        }
    }
}

/// The command is over and accounted for.
fn forget(run: &RunFolder) -> Result<(), Fault> {
    let folder = run.path().join(BEFORE);
    note::remove(&folder).map_err(Fault::file("remove what was noted in", &folder))
}

/// What becomes of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// A folder that the command has made, or was changed around: of no account by itself.
    Follows,
    PutBack,
    /// A tool's cache, which says of itself that nobody need know of it.
    Dropped,
}

impl Account {
    /// Looks at the tree again, puts back what may not change, and takes what may into `undo`. Nothing where it is not open.
    pub fn close(&mut self, guard: &Guard, run: &RunFolder, undo: &Path) -> Result<Accounted, Fault> {
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
        let made = differences.iter().filter(|one| is_made(one) && root.join(&one.path).is_dir());
        let folders: Vec<String> = made.filter_map(|one| Some(one.path.to_str()?.to_owned())).collect();
        let put_back = back.iter().map(|one| one.path.display().to_string());
        let put_back = put_back.filter(|path| !gone.contains(path)).collect();
        let mut accounted = Accounted { put_back, ..Accounted::default() };
        self.source.adopt(root, undo, &stays, folders, &mut accounted)?;
        accounted.warnings.extend(not_restored(self.who, &gone));
        accounted.warnings.extend(warning(self.who, &accounted.put_back, attic.folder()));
        forget(run)?;
        Ok(accounted)
    }

    /// Puts back everything: the command came to no end.
    pub fn abandon(&mut self, guard: &Guard, run: &RunFolder) -> Result<Accounted, Fault> {
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

    /// The run is over: nothing of what was before has to be brought back from the copies any more.
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
        // Times say that a file may have changed, its content whether it has.
        differences.retain(|one| !self.source.is_same(guard.root(), one));
        Ok(differences)
    }

    fn fates(&self, root: &Path, differences: &[Difference]) -> Vec<Fate> {
        let mut whole: Vec<(&Path, Fate)> = Vec::new();
        let mut fates = Vec::new();
        for one in differences {
            // Sorted: what lies in a folder comes after it.
            let above = whole.iter().rev().find(|(folder, _)| one.path.starts_with(folder));
            let fate = match above {
                // It goes with the folder.
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
        if path.file_name() == Some(OsStr::new(".git")) || self.may_change.refuses(text).is_some() {
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
            // What it held is in the account; a folder that is left empty is nothing to git.
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

/// Whether there is a folder where none was.
fn is_made(one: &Difference) -> bool {
    is_folder(one.after.as_ref()) && !is_folder(one.before.as_ref())
}

fn is_folder(seen: Option<&Seen>) -> bool {
    seen.is_some_and(|seen| seen.kind().is_dir())
}

/// A repository does not stay, with a work tree or without: git runs what its configuration names. A folder whose own ignore rules
/// name everything in it is a tool's cache.
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

/// For a person, who may have written it at the same time.
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

/// What nobody has a copy of, or a copy could not stand for: a FIFO, a socket, a file too large.
fn not_restored(who: &str, gone: &[String]) -> Option<Problem> {
    let message = format!("{who} changed or removed {}, which could not be restored", named(gone));
    (!gone.is_empty()).then(|| Problem::new("not-restored", message))
}

/// So many are named in a message.
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
