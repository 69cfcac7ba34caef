//! A command that ran in an overlay: its changes are in a layer, from which those that the policy allows are brought into
//! the tree. Nothing has to be restored, and a kill leaves the old tree.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::{Found, OldFile};
use code_commit_dir::{Folder, Interrupt, NEVER};
use code_commit_engine::Problem;
use code_commit_guard::Guard;
use code_commit_logging::name_as_text;

use crate::adopt::{adopt, texts};
use crate::backup::{Backup, last};
use crate::change::{Change, ChangeSet, Tops};
use crate::engine::ChangeEngine;
use crate::fault::Fault;
use crate::layer::bring_in::{BroughtIn, Incoming};
use crate::overlay::Overlay;
use crate::told::{self, Accounted, shown};

/// What comes into the tree of a layer, and what does not.
pub(crate) struct Judged<'j> {
    changes: ChangeSet,
    refused: Tops,
    /// New folders.
    made: Vec<PathBuf>,
    backup: Backup<'j>,
    accounted: Accounted,
    /// Receives the pre-images.
    set: PathBuf,
}

impl ChangeEngine {
    /// Brings in what is not accounted for, and nothing else; warns of what others wrote meanwhile.
    pub(crate) fn bring_in_ignored(
        &mut self,
        overlay: &Overlay,
        guard: &Guard,
        run: &Path,
    ) -> Result<Vec<Problem>, Fault> {
        let upper = overlay.upper();
        let mut backup = self.backup(run);
        let mut bring_in = || {
            let mut changes = self.layer(guard, &upper)?.changes(NEVER)?;
            self.leave_out(&mut changes);
            let judge = self.judge(guard, &upper);
            let leaves = |one: &&Change| !judge.sets_aside(one) && judge.counts(one);
            let refused = refused(changes.iter().filter(leaves));
            let incoming = incoming(overlay, &refused, &changes)?;
            let brought = self
                .layer(guard, &upper)?
                .bring_in(&incoming, &mut backup)?;
            overlay.remove()?;
            Ok(brought.warnings(&self.who, &backup).collect())
        };
        bring_in().map_err(Fault::file("bring in ignored files, from", &upper))
    }

    /// Judges what the layer holds, and stores pre-images of what may stay in `set`.
    pub(crate) fn judge_layer<'j>(
        &mut self,
        overlay: &Overlay,
        guard: &Guard,
        run: &'j Path,
        set: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Judged<'j>, Fault> {
        let upper = overlay.upper();
        let failed =
            |source| Fault::file("bring in what the command changed, from", &upper)(source);
        let mut changes = self
            .layer(guard, &upper)
            .and_then(|layer| layer.changes(interrupt))
            .map_err(failed)?;
        self.leave_out(&mut changes);
        let decisions = self
            .judge(guard, &upper)
            .decisions(&changes, interrupt)
            .map_err(failed)?;
        let refused = refused(decisions.leave());
        let is_coming = |folder: &&PathBuf| refused.over(folder).is_none();
        let folders = texts(decisions.made.iter().filter(is_coming));
        let mut backup = self.backup(run);
        let top = Folder::open(&upper).map_err(failed)?;
        let left = decisions.back.iter().filter(|one| one.after.is_some());
        left.for_each(|one| keep(&top, one, &mut backup));
        let tree = Folder::open(guard.root()).map_err(failed)?;
        let (mut found, mut lost) = (Vec::new(), Vec::new());
        for one in &decisions.stays {
            let had_file = one.before.is_some_and(|was| was.kind().is_file());
            let is_file = one.after.is_some_and(|is| is.kind().is_file());
            if had_file && !matches!(tree.open_file_below(&one.path), Ok(Some(_))) {
                lost.push(name_as_text(&one.path).into_owned());
            } else if had_file || is_file {
                found.extend(one.path.to_str().map(|path| Found {
                    path: path.to_owned(),
                    before: had_file.then_some(OldFile::InTree),
                }));
            }
        }
        let gone = decisions.gone;
        let (kept, mut warnings) = adopt(
            (guard.root(), &upper, set),
            found,
            (folders, gone),
            interrupt,
        )?;
        warnings.splice(0..0, told::no_copy(&lost));
        let accounted = Accounted {
            changes: kept,
            put_back: shown(&decisions.back),
            warnings,
            ..Accounted::default()
        };
        let made = decisions.made;
        Ok(Judged {
            changes,
            refused,
            made,
            backup,
            accounted,
            set: set.to_owned(),
        })
    }

    pub(crate) fn bring_in(
        &self,
        overlay: &Overlay,
        guard: &Guard,
        judged: Judged<'_>,
    ) -> Result<Accounted, Fault> {
        let Judged {
            changes,
            refused,
            made,
            mut backup,
            mut accounted,
            set,
        } = judged;
        let upper = overlay.upper();
        let bring_in = || {
            let incoming = incoming(overlay, &refused, &changes)?;
            self.layer(guard, &upper)?.bring_in(&incoming, &mut backup)
        };
        let failed = Fault::file("bring in what the command changed, from", &upper);
        let brought = { bring_in }().map_err(failed)?;
        accounted.unaccounted_bytes = brought.unaccounted_bytes;
        // A person's now.
        let is_others = |path: &str| brought.others.iter().any(|other| other == Path::new(path));
        if accounted.changes.iter().any(|one| is_others(&one.path)) {
            code_commit_apply::disown(&set, is_others).map_err(Fault::Apply)?;
            accounted.changes.retain(|one| !is_others(&one.path));
        }
        let tree = Folder::open(guard.root()).map_err(Fault::file("open", guard.root()))?;
        self.remove_empty(&tree, &made);
        accounted
            .warnings
            .extend(brought.warnings(&self.who, &backup));
        accounted.warnings.extend(told::put_back(
            &self.who,
            &accounted.put_back,
            backup.folder(),
        ));
        Ok(accounted)
    }

    /// The layer was not judged to its end: it is kept for the user.
    pub(crate) fn keep_whole(
        &self,
        overlay: &Overlay,
        run: &Path,
        set: &Path,
    ) -> Result<Accounted, Fault> {
        let mut backup = self.backup(run).or_in(overlay.state());
        overlay
            .keep(&mut backup)
            .map_err(Fault::file("keep", &overlay.upper()))?;
        self.interrupted(backup.folder(), &[], run, set)
    }
}

impl BroughtIn {
    fn warnings(&self, who: &str, backup: &Backup<'_>) -> impl Iterator<Item = Problem> {
        let text = |path: &PathBuf| name_as_text(path).into_owned();
        let others: Vec<String> = self.others.iter().map(text).collect();
        let others = told::others(who, &others, backup).into_iter();
        others.chain(told::set_aside(who, &self.set_aside, backup))
    }
}

fn incoming<'i>(
    overlay: &Overlay,
    refused: &'i Tops,
    changes: &'i ChangeSet,
) -> io::Result<Incoming<'i>> {
    Ok(Incoming {
        refused,
        changes,
        since: overlay.since()?,
        out: overlay.out(),
    })
}

/// Paths that are not brought into the tree, with everything below them. Not a folder of which only the mode is
/// refused: its content is decided separately.
fn refused<'d>(leave: impl IntoIterator<Item = &'d Change>) -> Tops {
    let has_content = |one: &&Change| one.was_folder() && one.is_folder();
    leave
        .into_iter()
        .filter(|one| !has_content(one))
        .map(|one| &*one.path)
        .collect()
}

/// Keeps what may not come into the tree for the user, if it is a file or a symlink.
fn keep(upper: &Folder, one: &Change, backup: &mut Backup<'_>) {
    let is_kept = one
        .after
        .is_some_and(|after| after.kind().is_file() || after.kind().is_symlink());
    let folder = upper.folder_of(&one.path).ok().filter(|_| is_kept);
    if let (Some(folder), Ok(name)) = (folder, last(&one.path)) {
        // The tree is right even if there is no room for a copy.
        let _ = backup.take_in(&folder, name, &one.path);
    }
}
