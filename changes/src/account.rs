//! The changes of a command are found, judged, and kept or restored in the same way whether it worked in the tree or in an
//! overlay over it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_apply::{Found, OldFile};
use code_commit_dir::{Folder, reach};
use code_commit_engine::{Changed, Problem};
use code_commit_guard::{Guard, Policy};
use code_commit_logging::name_as_text;
use rustix::fs::FileType;

use crate::backup::{Backup, last};
use crate::change::{Change, ChangeSet, Seen, Tops};
use crate::engine::{ChangeEngine, State, folder};
use crate::fault::Fault;
use crate::judge::Decisions;
use crate::layer::{BroughtIn, Incoming, stat_below, stat_through};
use crate::overlay::{Overlay, is_whiteout};
use crate::restore::{Unrestored, Was, put_back};
use crate::snapshot::{Look, Snapshot, When};
use crate::told::{self, Accounted, shown};
use crate::tracked::Tracked;

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

/// The changes of a command, and where it made them.
pub(crate) struct Done {
    overlay: Option<Overlay>,
    /// Where the command worked: the tree, or the layer over it.
    path: PathBuf,
    now: Folder,
    tree: Folder,
    before: Arc<Snapshot>,
    changes: ChangeSet,
    /// Paths that it touched, but that are the same.
    unchanged: BTreeSet<PathBuf>,
}

impl ChangeEngine {
    pub(crate) fn look(
        &self,
        guard: &Guard,
        when: When<'_>,
        layer: Option<&Path>,
    ) -> Result<Snapshot, Fault> {
        let scope = &self.scope;
        let is_skipped = |path: &Path, kind: FileType| scope.skips(path, kind);
        let look = Look {
            policy: scope.may_change.is_of_role().then_some(&scope.may_change),
            products: scope.names_products,
            when,
            layer,
            ..Look::at(guard, &self.tracked, &is_skipped)
        };
        let mut snapshot = look.whole()?;
        if layer.is_none() {
            let tree = folder(guard.root())?;
            self.add_sealed(&tree, &mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// The sealed paths and the folders above them count, whatever git ignores.
    fn add_sealed(&self, tree: &Folder, snapshot: &mut Snapshot) -> Result<(), Fault> {
        for path in self.sealed.iter().flat_map(|path| path.ancestors()) {
            if path != Path::new("") {
                let found = stat_below(tree, path).map_err(Fault::file("look at", path))?;
                snapshot.add(path, found.as_ref().map(Seen::of));
            }
        }
        Ok(())
    }

    fn done(&mut self, state: &State, guard: &Guard) -> Result<Option<Done>, Fault> {
        let (overlay, path) = match state {
            State::Idle => return Ok(None),
            State::Overlaid(overlay) => (Some(overlay.clone()), overlay.upper()),
            State::Compared(_) => (None, guard.root().to_owned()),
        };
        let now = reopened(&path)?;
        let (before, after) = if let State::Compared(before) = state {
            let after = self.look(guard, When::After(Some(before)), None)?;
            (Arc::clone(before), after)
        } else {
            // First: it opens what the command has closed.
            let after = self.look(guard, When::After(None), Some(&path))?;
            (
                Arc::new(self.look(guard, When::Before, Some(&path))?),
                after,
            )
        };
        let mut changes = before.differences(&after);
        for one in changes.iter_mut().filter(|one| one.after.is_none()) {
            one.after = one.before.and_then(|was| unlisted(&now, &one.path, was));
        }
        // A new time only suggests a change; compare the content.
        let (judge, mut unchanged) = (self.judge(guard, &path), BTreeSet::new());
        changes.retain(|one| {
            let is_same = self.copies.is_same(&now, one);
            unchanged.extend(is_same.then(|| one.path.clone()));
            !is_same && judge.counts(one)
        });
        self.leave_out(&mut changes);
        let tree = folder(guard.root())?;
        Ok(Some(Done {
            overlay,
            path,
            now,
            tree,
            before,
            changes,
            unchanged,
        }))
    }

    /// Leaves out the ignored files that are new, and those that an earlier command had left.
    fn leave_out(&mut self, changes: &mut ChangeSet) {
        changes.retain(|one| !one.is_ignored() || (!self.was_left(one) && one.before.is_some()));
    }

    /// Whether an earlier command had left what was there; from now on this one has.
    fn was_left(&mut self, one: &Change) -> bool {
        let left = match one.after {
            Some(after) => self.written.insert(one.path.clone(), after),
            None => self.written.remove(&one.path),
        };
        left.map(|left| left.identity()) == one.before.map(|was| was.identity())
    }

    /// Judges what the command did: what may stay is kept, with pre-images in `set`.
    pub(crate) fn account(
        &mut self,
        state: &State,
        guard: &Guard,
        run: &Path,
        set: &Path,
    ) -> Result<Accounted, Fault> {
        let Some(done) = self.done(state, guard)? else {
            return Ok(Accounted::default());
        };
        let decisions = self.judge(guard, &done.path).decisions(&done.changes);
        let mut backup = self.backup(run);
        let mut gone = self.leave(&done, &decisions.dropped, &mut backup, Keeps::Nothing)?;
        gone.extend(self.leave(&done, &decisions.back, &mut backup, Keeps::Everything)?);
        self.remove_empty(&done.now, &decisions.made);
        let mut back = shown(&decisions.back);
        back.retain(|path| !gone.contains(path));
        let (changes, mut warnings) = self.adopt(&done, &decisions, guard.root(), set)?;
        warnings.extend(told::not_restored(&self.scope.who, &gone));
        let mut accounted = Accounted {
            changes,
            put_back: back,
            unaccounted_bytes: 0,
            warnings,
        };
        if done.overlay.is_some() {
            let brought = self.bring_in(&done, decisions.leave(), guard, &mut backup)?;
            accounted.unaccounted_bytes = brought.unaccounted_bytes;
            // A person's now.
            let is_others = |path: &str| {
                brought
                    .others
                    .iter()
                    .any(|other| Path::new(path).starts_with(other))
            };
            if accounted.changes.iter().any(|one| is_others(&one.path)) {
                code_commit_apply::disown(set, is_others).map_err(Fault::Apply)?;
                accounted.changes.retain(|one| !is_others(&one.path));
            }
            let warnings = brought.warnings(&self.scope.who, &backup);
            accounted.warnings.extend(warnings);
        } else {
            let aside = self.set_aside(&decisions.set_aside, &mut backup);
            accounted.warnings.extend(aside);
        }
        let told = told::put_back(&self.scope.who, &accounted.put_back, backup.folder());
        accounted.warnings.extend(told);
        Ok(accounted)
    }

    /// Puts back what does not stay; gives what has no copy. In a layer only what is new has to go: the tree has the rest.
    fn leave(
        &self,
        done: &Done,
        changes: &[&Change],
        backup: &mut Backup<'_>,
        keeps: Keeps,
    ) -> Result<Vec<String>, Fault> {
        if done.overlay.is_none() {
            let changes = changes.iter().copied();
            return put_back(&done.now, &done.before, &self.copies, changes, backup).none_lost();
        }
        let is_there = |one: &&&Change| one.after.is_some() && !one.has_content();
        for one in changes.iter().filter(is_there) {
            let above = match done.now.folder_of(&one.path) {
                // It went with its folder.
                Err(gone) if reach::is_gone(&gone) => continue,
                above => above.map_err(Fault::file("open", &one.path))?,
            };
            let name = last(&one.path).map_err(Fault::file("open", &one.path))?;
            // The tree is right even if there is no room for a copy.
            let is_kept =
                keeps == Keeps::Everything && backup.clear(&above, name, &one.path).is_ok();
            if !is_kept {
                reach::remove(above.as_fd(), name).map_err(Fault::file("remove", &one.path))?;
            }
        }
        Ok(Vec::new())
    }

    /// Stores pre-images of what stays; gives the changes and warnings.
    fn adopt(
        &self,
        done: &Done,
        decisions: &Decisions<'_>,
        root: &Path,
        set: &Path,
    ) -> Result<(Vec<Changed>, Vec<Problem>), Fault> {
        let mut lost = Vec::new();
        let stays = decisions.stays.iter();
        let found: Vec<_> = stays
            .filter_map(|one| self.found(one, done, &mut lost).transpose())
            .collect::<Result<_, _>>()?;
        let is_there = |folder: &&PathBuf| done.path.join(folder).is_dir();
        let made = decisions.made.iter().filter(is_there);
        let made: Vec<_> = made
            .filter_map(|folder| folder.to_str())
            .map(str::to_owned)
            .collect();
        let gone = decisions.gone.clone();
        if found.is_empty() && made.is_empty() && gone.is_empty() {
            return Ok((Vec::new(), told::no_copy(&lost).into_iter().collect()));
        }
        let applied = code_commit_apply::adopt(root, &done.path, set, found, (made, gone));
        let applied = applied.map_err(Fault::Apply)?;
        let untidy = applied.warnings.iter().map(untidy);
        Ok((
            applied.changes,
            untidy.chain(told::no_copy(&lost)).collect(),
        ))
    }

    /// A file that stays changed, with what was there; none if there is and was no file, or if the old one is lost.
    fn found(
        &self,
        one: &Change,
        done: &Done,
        lost: &mut Vec<String>,
    ) -> Result<Option<Found<'static>>, Fault> {
        let Some(path) = one.path.to_str().map(str::to_owned) else {
            return Ok(None);
        };
        if !one.before.is_some_and(|was| was.kind().is_file()) {
            // Restoring something else may have removed it again.
            let there = stat_below(&done.now, &one.path).ok().flatten();
            let is_file = there.is_some_and(|there| Seen::of(&there).kind().is_file());
            return Ok(is_file.then_some(Found { path, before: None }));
        }
        let before = if done.overlay.is_some() {
            let is_file = matches!(done.tree.open_file_below(&one.path), Ok(Some(_)));
            is_file.then_some(OldFile::InTree)
        } else {
            let was = self.copies.was(one);
            match was.map_err(Fault::file("read the copy of", &one.path))? {
                Some(Was::File(content, inode)) => Some(OldFile::Copy(content, inode)),
                Some(Was::Nothing | Was::Folder(_) | Was::Fifo(_) | Was::Link(_)) | None => None,
            }
        };
        if before.is_none() {
            lost.push(path);
            return Ok(None);
        }
        Ok(Some(Found { path, before }))
    }

    /// Brings into the tree what is left in the layer.
    fn bring_in<'c>(
        &self,
        done: &Done,
        refused: impl IntoIterator<Item = &'c Change>,
        guard: &Guard,
        backup: &mut Backup<'_>,
    ) -> Result<BroughtIn, Fault> {
        let Some(overlay) = &done.overlay else {
            return Ok(BroughtIn::default());
        };
        let failed = |source| Fault::file("bring in what was changed, from", &done.path)(source);
        let refused: Tops = refused
            .into_iter()
            .filter(|one| !one.has_content())
            .map(|one| &*one.path)
            .collect();
        let mut incoming = Incoming {
            guard,
            upper: &done.now,
            tree: &done.tree,
            own: &self.scope.own,
            copies: &self.copies,
            changes: &done.changes,
            unchanged: &done.unchanged,
            refused: &refused,
            since: overlay.since().map_err(failed)?,
            out: overlay.out(),
            backup,
        };
        incoming.bring_in().map_err(failed)
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
        let state = std::mem::take(&mut self.state);
        let turned = self.turned(&state, guard, run, is_over);
        self.keep_state(state, turned)
    }

    fn turned(
        &mut self,
        state: &State,
        guard: &Guard,
        run: &Path,
        is_over: IsOver,
    ) -> Result<Turned, Fault> {
        let Some(done) = self.done(state, guard)? else {
            return Ok(Turned::default());
        };
        let decisions = self.judge(guard, &done.path).decisions(&done.changes);
        let mut backup = self.backup(run);
        let leave = decisions.leave();
        put_back(&done.now, &done.before, &self.copies, leave, &mut backup).all_restored()?;
        self.remove_empty(&done.now, &decisions.made);
        let mut warnings = Vec::new();
        if is_over == IsOver::Yes {
            warnings = self.set_aside(&decisions.set_aside, &mut backup);
            warnings.extend(self.keep_uncommitted(&decisions.stays, &mut backup));
        }
        let stays = decisions.stays.iter();
        let gone = stays.clone().filter(|one| one.after.is_none());
        Ok(Turned {
            gone: gone.map(|one| one.path.clone()).collect(),
            allowed: stays.map(|one| one.path.clone()).collect(),
            put_back: shown(&decisions.back),
            warnings,
        })
    }

    /// Keeps the copies of what a role changed or removed, where neither git has it nor the role had written it.
    fn keep_uncommitted(&mut self, stays: &[&Change], backup: &mut Backup<'_>) -> Option<Problem> {
        let mut kept = stays.to_vec();
        kept.retain(|one| !self.was_left(one) && self.copies.set_aside(one, backup));
        told::uncommitted(&self.scope.who, &shown(&kept), backup)
    }

    /// Restores everything but ignored files; warns of what it could not restore.
    pub(crate) fn reset_to(
        &mut self,
        state: &State,
        guard: &Guard,
        run: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let Some(done) = self.done(state, guard)? else {
            return Ok(Vec::new());
        };
        let judge = self.judge(guard, &done.path);
        let (aside, others): (Vec<_>, Vec<_>) =
            done.changes.iter().partition(|one| judge.sets_aside(one));
        let gone = self.leave(&done, &others, backup, Keeps::Nothing)?;
        let mut own = self.backup(run);
        if let Some(overlay) = &done.overlay {
            let brought = self.bring_in(&done, others, guard, &mut own)?;
            overlay
                .remove()
                .map_err(Fault::file("remove", &done.path))?;
            return Ok(brought.warnings(&self.scope.who, &own).collect());
        }
        let mut warnings = self.set_aside(&aside, &mut own);
        warnings.extend(told::not_restored(&self.scope.who, &gone));
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
        let before = Arc::unwrap_or_clone(before).with_ignored();
        // A part of a repository in an ignored folder is listed whatever the rules say, and the folder is not.
        let is_in_listed = |path: &Path| {
            let above = path.parent().unwrap_or(path);
            above == Path::new("") || before.get(above).is_some()
        };
        let files = before.iter().filter(|(_, was)| !was.is_product);
        let files = files.filter(|(path, _)| is_in_listed(path));
        self.tracked = Tracked::listed(files.map(|(path, _)| path.clone()).collect());
        let state = State::Compared(Arc::new(before));
        let restored = self.restore_to(&state, root, backup);
        self.state = state;
        restored
    }

    fn restore_to(
        &mut self,
        state: &State,
        root: &Path,
        backup: &mut Backup<'_>,
    ) -> Result<(Vec<String>, Vec<String>), Fault> {
        let mut restored = BTreeSet::new();
        loop {
            let guard = Guard::open(root, Policy::new()).map_err(io::Error::other);
            let guard = guard.map_err(Fault::file("look at", root))?;
            let Some(done) = self.done(state, &guard)? else {
                return Ok((Vec::new(), Vec::new()));
            };
            // Ignore rules made by the command hide the files that they name, so remove them first.
            let is_rule = |one: &&Change| one.path.ends_with(".gitignore");
            let mut rules = done.changes.iter().filter(is_rule);
            let has_rules = rules.any(|one| !restored.contains(&one.path));
            let all = done.changes.iter();
            let now: Vec<_> = all.filter(|one| !has_rules || is_rule(one)).collect();
            let gone = self.leave(&done, &now, backup, Keeps::Everything)?;
            restored.extend(now.into_iter().map(|one| one.path.clone()));
            if !has_rules {
                let shown = restored.iter().map(|path| name_as_text(path).into_owned());
                return Ok((shown.filter(|path| !gone.contains(path)).collect(), gone));
            }
        }
    }

    /// Keeps what a command replaced or removed of ignored files.
    fn set_aside(&self, ignored: &[&Change], backup: &mut Backup<'_>) -> Vec<Problem> {
        let is_kept = |one: &&Change| self.copies.set_aside(one, backup);
        let (kept, gone): (Vec<_>, Vec<_>) = ignored.iter().copied().partition(is_kept);
        let warnings = told::set_aside(&self.scope.who, &shown(&kept), backup).into_iter();
        warnings
            .chain(told::not_restored(&self.scope.who, &shown(&gone)))
            .collect()
    }

    /// Puts back what the command changed of what decides, however it ended; gives the paths, and the folder with what
    /// was there. Called before anything else is judged.
    pub fn restore_sealed(
        &mut self,
        guard: &Guard,
        run: &Path,
    ) -> Result<(Vec<String>, Option<PathBuf>), Fault> {
        let tree = reopened(guard.root())?;
        let (now, before) = match &self.state {
            State::Idle => return Ok((Vec::new(), None)),
            State::Overlaid(overlay) => {
                let mut before = Snapshot::default();
                self.add_sealed(&tree, &mut before)?;
                (reopened(&overlay.upper())?, Arc::new(before))
            }
            State::Compared(before) => (reopened(guard.root())?, Arc::clone(before)),
        };
        let mut broken = Vec::new();
        for path in &self.sealed {
            let after = match stat_through(&now, &tree, path) {
                // The command has closed a folder above it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
                now => now.map_err(Fault::file("look at", path))?,
            };
            let one = Change {
                path: path.clone(),
                before: before.get(path).copied(),
                after: after.as_ref().map(Seen::of),
            };
            let is_same = match (&one.before, &one.after) {
                (None, None) => true,
                (Some(was), Some(is)) => was.is_untouched(is) || self.copies.is_same(&now, &one),
                _ => false,
            };
            broken.extend((!is_same).then_some(one));
        }
        let mut backup = self.backup(run);
        put_back(&now, &before, &self.copies, &broken, &mut backup).all_restored()?;
        let broken = shown(&broken.iter().collect::<Vec<_>>());
        Ok((broken, backup.folder().map(Path::to_owned)))
    }

    /// New folders that are out of scope and empty by now go, innermost first.
    fn remove_empty(&self, tree: &Folder, made: &[PathBuf]) {
        let policy = &self.scope.may_change;
        let is_out = |folder: &&PathBuf| {
            let bytes = folder.as_os_str().as_encoded_bytes();
            policy.refuses_bytes(bytes).is_some()
        };
        for folder in made.iter().rev().filter(is_out) {
            let above = tree.folder_of(folder);
            let _ = above.and_then(|above| above.remove_folder(last(folder)?));
        }
    }
}

/// What of the changes in a layer that do not stay goes to the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Everything,
    Nothing,
}

impl Unrestored {
    /// What has no copy; an error if anything else could not be restored.
    fn none_lost(self) -> Result<Vec<String>, Fault> {
        if self.lost.is_empty() {
            return Ok(self.gone);
        }
        let paths = self.lost.join(", ");
        Err(Fault::NotPutBack { paths })
    }

    fn all_restored(mut self) -> Result<(), Fault> {
        self.lost.append(&mut self.gone);
        self.none_lost().map(drop)
    }
}

impl BroughtIn {
    fn warnings(&self, who: &str, backup: &Backup<'_>) -> impl Iterator<Item = Problem> {
        let texts = |paths: &[PathBuf]| -> Vec<String> {
            let texts = paths.iter().map(|path| name_as_text(path).into_owned());
            texts.collect()
        };
        let others = told::others(who, &texts(&self.others), backup).into_iter();
        others.chain(told::set_aside(who, &texts(&self.set_aside), backup))
    }
}

/// For the user.
pub fn untidy(warning: &code_commit_apply::Warning) -> Problem {
    Problem::new("apply", format!("{warning}."))
}

/// A folder that the command may have closed.
fn reopened(path: &Path) -> Result<Folder, Fault> {
    drop(reach::root(path, reach::CHANGE).map_err(Fault::file("open", path))?);
    folder(path)
}

/// What a snapshot does not list any more: the folder that git ignores in the place of a file, and an ignored file in what
/// is a cache now.
fn unlisted(now: &Folder, path: &Path, was: Seen) -> Option<Seen> {
    let found = stat_below(now, path).ok().flatten();
    let found = Seen::of(&found.filter(|found| !is_whiteout(found))?);
    let is_new_folder = found.kind().is_dir() && !was.kind().is_dir();
    (is_new_folder || was.is_ignored).then_some(Seen {
        is_ignored: true,
        ..found
    })
}
