//! The account of a command that ran in a view of the tree: its changes are in a layer, from which those that
//! the policy allows are brought into the tree. Nothing has to be restored, and a kill leaves the old tree.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::OldFile;
use code_commit_dir::{Folder, Interrupt};
use code_commit_engine::Problem;
use code_commit_guard::{Difference, Guard, Seen};
use code_commit_logging::RunFolder;
use rustix::fs::Stat;

use super::accounted::{Accounted, left, set_aside, warning};
use super::adopt::Places;
use super::layer::bring_in::{BroughtIn, Incoming};
use super::layer::{Layer, stat_below};
use super::layers::{Layers, OUT, SINCE};
use super::layout::{Layout, Role};
use super::triage::Tops;
use super::{Account, State, leave_out};
use crate::attic::Attic;
use crate::fault::Fault;
use crate::paths::last;

/// What comes into the tree of a layer, and what does not.
pub(super) struct Judged<'j> {
    differences: Vec<Difference>,
    refused: Tops,
    /// New folders.
    made: Vec<String>,
    attic: Attic<'j>,
    accounted: Accounted,
}

impl Layers {
    /// What is brought in of a layer that was judged.
    fn incoming<'i>(
        &self,
        refused: &'i Tops,
        differences: &'i [Difference],
    ) -> io::Result<Incoming<'i>> {
        let since = Folder::open(&self.folder)?
            .stat(SINCE)?
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(Incoming {
            refused,
            differences,
            since: Seen::of(&since).ctime,
            out: self.folder.join(OUT),
        })
    }
}

impl Account {
    /// Restores those of the sealed paths that the command changed in its view; gives them. In the tree they
    /// are as they were.
    pub(crate) fn restore_in_view(
        &self,
        guard: &Guard,
        sealed: &[PathBuf],
    ) -> Result<Vec<String>, Fault> {
        let State::InView(layers) = &self.state else {
            return Ok(Vec::new());
        };
        let upper = layers.upper();
        let restore = || {
            let layer = Layer::open(guard, &upper, &[], &[], &self.tracked)?;
            let mut broken = Vec::new();
            for path in sealed {
                if layer.restore(path)? {
                    broken.push(path.display().to_string());
                }
            }
            Ok(broken)
        };
        restore().map_err(Fault::file("restore what the command changed in", &upper))
    }

    /// What stands at a path, as the commands see it.
    pub(crate) fn stat(&self, guard: &Guard, path: &Path) -> Result<Option<Stat>, Fault> {
        let found = match &self.state {
            State::InView(layers) => Layer::open(guard, &layers.upper(), &[], &[], &self.tracked)
                .and_then(|layer| layer.stat(path)),
            State::Idle | State::Surveyed(_) => {
                Folder::open(guard.root()).and_then(|tree| stat_below(&tree, path))
            }
        };
        found.map_err(Fault::file("look at", path))
    }

    /// Brings in what is not accounted for, and nothing else; warns of what others wrote meanwhile.
    pub(super) fn bring_in_ignored(
        &mut self,
        layers: &Layers,
        guard: &Guard,
        run: &RunFolder,
    ) -> Result<Vec<Problem>, Fault> {
        let upper = layers.upper();
        let mut attic = Attic::of(run.path());
        let mut bring_in = || {
            let layer = Layer::open(guard, &upper, &self.own, &self.products, &self.tracked)?;
            let mut differences = layer.differences(code_commit_dir::NEVER)?;
            leave_out(&mut self.written, &mut differences);
            let layout = Layout { now: &upper, guard };
            let leaves =
                |one: &&Difference| !layout.sets_aside(one) && layout.role(one) != Role::Harmless;
            let refused = refused(differences.iter().filter(leaves));
            let brought = layer.bring_in(&layers.incoming(&refused, &differences)?, &mut attic)?;
            layers.remove()?;
            Ok(brought.warnings(self.who, &attic).collect())
        };
        bring_in().map_err(Fault::file("bring in ignored files, from", &upper))
    }

    /// Judges what the layer holds, and stores pre-images of what may stay in `undo`.
    pub(super) fn judge<'j>(
        &mut self,
        layers: &Layers,
        guard: &Guard,
        run: &'j RunFolder,
        undo: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Judged<'j>, Fault> {
        let upper = layers.upper();
        let failed =
            |source| Fault::file("bring in what the command changed, from", &upper)(source);
        let layer =
            Layer::open(guard, &upper, &self.own, &self.products, &self.tracked).map_err(failed)?;
        let mut differences = layer.differences(interrupt).map_err(failed)?;
        leave_out(&mut self.written, &mut differences);
        let decisions = self
            .decisions(guard, &upper, &differences, interrupt)
            .map_err(failed)?;
        let refused = refused(decisions.leave());
        let is_coming = |folder: &&String| refused.over(Path::new(folder)).is_none();
        let folders = decisions.made.iter().filter(is_coming).cloned().collect();
        let mut attic = Attic::of(run.path());
        decisions
            .back
            .iter()
            .filter(|one| one.after.is_some())
            .for_each(|one| keep(&layer.upper, one, &mut attic));
        let mut accounted = Accounted {
            put_back: decisions.back(),
            ..Accounted::default()
        };
        let places = Places {
            root: guard.root(),
            now: &upper,
            undo,
            interrupt,
        };
        let tree = Folder::open(guard.root()).map_err(failed)?;
        let is_readable = |path: &Path| matches!(tree.open_file_below(path), Ok(Some(_)));
        let old = |path: &Path, _: &_| is_readable(path).then_some(OldFile::InTree);
        places.adopt(
            &decisions.stays,
            (folders, decisions.gone),
            &old,
            &mut accounted,
        )?;
        let made = decisions.made;
        Ok(Judged {
            differences,
            refused,
            made,
            attic,
            accounted,
        })
    }

    pub(super) fn bring_in(
        &self,
        layers: &Layers,
        guard: &Guard,
        judged: Judged<'_>,
    ) -> Result<Accounted, Fault> {
        let Judged {
            differences,
            refused,
            made,
            mut attic,
            mut accounted,
        } = judged;
        let upper = layers.upper();
        let failed =
            |source| Fault::file("bring in what the command changed, from", &upper)(source);
        let layer =
            Layer::open(guard, &upper, &self.own, &self.products, &self.tracked).map_err(failed)?;
        let incoming = layers.incoming(&refused, &differences).map_err(failed)?;
        let brought = layer.bring_in(&incoming, &mut attic).map_err(failed)?;
        accounted.unaccounted_bytes = brought.unaccounted_bytes;
        self.remove_empty(guard.root(), &made);
        accounted
            .warnings
            .extend(brought.warnings(self.who, &attic));
        accounted
            .warnings
            .extend(warning(self.who, &accounted.put_back, attic.folder()));
        Ok(accounted)
    }

    /// The layer was not judged to its end: it is kept for the user.
    pub(super) fn keep_whole(
        &self,
        layers: &Layers,
        run: &RunFolder,
        undo: &Path,
    ) -> Result<Accounted, Fault> {
        let mut attic = layers.attic(run.path());
        layers
            .keep(&mut attic)
            .map_err(Fault::file("keep", &layers.upper()))?;
        self.interrupted(attic.folder(), &[], run, undo)
    }
}

impl BroughtIn {
    fn warnings(&self, who: &str, attic: &Attic<'_>) -> impl Iterator<Item = Problem> {
        let theirs = |paths| {
            format!("somebody changed {paths} while {who} ran and changed it, too; that version")
        };
        let others = left(&self.others, attic, theirs).into_iter();
        others.chain(set_aside(who, &self.set_aside, attic))
    }
}

/// Paths that are not brought into the tree, with everything below them. Not a folder of which only the mode is
/// refused: its content is decided separately.
fn refused<'d>(leave: impl IntoIterator<Item = &'d Difference>) -> Tops {
    let is_folder = |seen: Option<Seen>| seen.is_some_and(|seen| seen.kind().is_dir());
    let has_content = |one: &&Difference| is_folder(one.before) && is_folder(one.after);
    leave
        .into_iter()
        .filter(|one| !has_content(one))
        .map(|one| &*one.path)
        .collect()
}

/// Keeps what may not come into the tree for the user, if it is a file or a symlink.
fn keep(upper: &Folder, one: &Difference, attic: &mut Attic<'_>) {
    let is_kept = one
        .after
        .is_some_and(|after| after.kind().is_file() || after.kind().is_symlink());
    let folder = upper.folder_of(&one.path).ok().filter(|_| is_kept);
    if let (Some(folder), Ok(name)) = (folder, last(&one.path)) {
        // The tree is right even if there is no room for a copy.
        let _ = attic.take_in(&folder, name, &one.path);
    }
}
