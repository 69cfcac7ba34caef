//! The account of a command that ran in a view of the tree: its changes are in a layer, from which those that
//! the policy allows are brought into the tree. Nothing has to be restored, and a kill leaves the old tree.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use apply::{Force, Lock};
use dir::Folder;
use guard::{Difference, Guard};
use logging::RunFolder;
use runner::View;

use super::adopt::Places;
use super::layer::Layer;
use super::{Account, Accounted, BEFORE, Fate, is_made, warning};
use crate::fault::Fault;
use crate::kept::UNDO;
use crate::seal::{Attic, last};

/// Folder in the state folder: on the file system of the tree, since changes are moved.
const VIEW: &str = "view";
const UPPER: &str = "upper";
/// In the run folder while changes are brought in: names the folder with their pre-images.
const BRINGING: &str = "bringing-in";

/// New layers for one command after the other.
#[derive(Debug)]
pub(super) struct Layers {
    folder: PathBuf,
    is_open: bool,
}

impl Layers {
    pub(super) fn below(state: &Path) -> Self {
        Self { folder: state.join(VIEW), is_open: false }
    }

    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// Whether a command is being accounted for; from now on none is.
    pub(super) fn close(&mut self) -> bool {
        std::mem::take(&mut self.is_open)
    }

    pub(super) fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    /// An empty layer: the kernel does not allow one to be mounted twice.
    pub(super) fn renew(&self) -> io::Result<View> {
        self.remove()?;
        let view = View { upper: self.upper(), work: self.folder.join("work") };
        fs::create_dir_all(&view.upper)?;
        fs::create_dir(&view.work)?;
        Ok(view)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        let Some(state) = self.folder.parent() else { return Ok(()) };
        // The kernel and the command leave folders that even their owner may not enter.
        dir::reach::remove(&Folder::open(state)?.as_fd().try_clone_to_owned()?, VIEW.as_ref())
    }
}

impl Account {
    /// Those of the sealed paths that the command changed in its view. In the tree they are as they were.
    pub(crate) fn broken_in_view(&self, guard: &Guard, sealed: &[PathBuf]) -> Result<Vec<String>, Fault> {
        let Some(layers) = &self.layers else { return Ok(Vec::new()) };
        let upper = layers.upper();
        let look = || {
            let layer = Layer::open(guard, &upper, &[], &[])?;
            let mut broken = Vec::new();
            for path in sealed {
                if layer.changes(path)? {
                    broken.push(path.display().to_string());
                }
            }
            Ok(broken)
        };
        look().map_err(Fault::file("look at what the command changed in", &upper))
    }

    /// Judges what the layer holds, stores pre-images in `undo`, and brings in what may stay.
    pub(super) fn bring_in(
        &self,
        layers: &Layers,
        guard: &Guard,
        run: &RunFolder,
        undo: &Path,
    ) -> Result<Accounted, Fault> {
        let upper = layers.upper();
        let failed = |source| Fault::file("bring in what the command changed, from", &upper)(source);
        let layer = Layer::open(guard, &upper, &self.own, &self.products).map_err(failed)?;
        let differences = layer.differences().map_err(failed)?;
        let fates = self.fates(&upper, &differences);
        let of = |wanted: Fate| {
            let found = differences.iter().zip(&fates).filter(move |(_, fate)| **fate == wanted);
            found.map(|(one, _)| one).collect::<Vec<&Difference>>()
        };
        let (back, stays) = (of(Fate::PutBack), of(Fate::Stays));
        let refused: BTreeSet<PathBuf> =
            of(Fate::Dropped).iter().chain(&back).map(|one| one.path.clone()).collect();
        let is_refused = |path: &Path| path.ancestors().any(|above| refused.contains(above));
        let made = differences.iter().filter(|one| is_made(one) && !is_refused(&one.path));
        let folders = made.filter_map(|one| one.path.to_str().map(str::to_owned)).collect();
        let mut attic = Attic::of(run.path());
        back.iter().filter(|one| one.after.is_some()).for_each(|one| keep(&layer.upper, one, &mut attic));
        let put_back = back.iter().map(|one| one.path.display().to_string()).collect();
        let mut accounted = Accounted { put_back, ..Accounted::default() };
        let places = Places { root: guard.root(), now: &upper, undo };
        let tree = Folder::open(guard.root()).map_err(failed)?;
        places.adopt(&stays, folders, &|path, _| old_content(&tree, path), &mut accounted)?;
        note(run, undo).map_err(failed)?;
        accounted.unaccounted_bytes = layer.bring_in(&refused).map_err(failed)?;
        layers.remove().map_err(failed)?;
        accounted.warnings.extend(warning(self.who, &accounted.put_back, attic.folder()));
        Ok(accounted)
    }
}

fn old_content(tree: &Folder, path: &Path) -> Option<Box<dyn BufRead>> {
    Some(Box::new(BufReader::new(tree.open_file_below(path).ok().flatten()?)))
}

/// Keeps what may not come into the tree for the user, if it is a file or a symlink.
fn keep(upper: &Folder, one: &Difference, attic: &mut Attic<'_>) {
    let is_kept = one.after.is_some_and(|after| after.kind().is_file() || after.kind().is_symlink());
    let folder = upper.folder_of(&one.path).ok().filter(|_| is_kept);
    if let (Some(folder), Ok(name)) = (folder, last(&one.path)) {
        // The tree is right even if there is no room for a copy.
        let _ = attic.take_in(&folder, name, &one.path);
    }
}

fn note(run: &RunFolder, undo: &Path) -> io::Result<()> {
    let folder = run.path().join(BEFORE);
    fs::create_dir_all(&folder)?;
    dir::replace(&folder.join(BRINGING), undo.file_name().unwrap_or_default().as_encoded_bytes())
}

/// The command is over, and its answer on disk.
pub(super) fn forget(run: &Path) -> io::Result<()> {
    match fs::remove_file(run.join(BEFORE).join(BRINGING)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reverts what a killed harness had only begun to bring in, or had not recorded; the command is run again if
/// needed. Gives the paths.
pub(super) fn settle(lock: &Lock, state: &Path, root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let note = run.join(BEFORE).join(BRINGING);
    let failed = |source| Fault::file("read what was noted in", &note)(source);
    let noted = match dir::read(&note, 1 << 10, dir::Links::Refused) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        noted => noted.map_err(failed)?,
    };
    let set = noted.and_then(|name| Some(run.join(UNDO).join(String::from_utf8(name).ok()?)));
    let mut restored = Vec::new();
    if let Some(set) = set.filter(|set| matches!(apply::read_applied(set), Ok(Some(_)))) {
        let undone =
            apply::undo(lock, root, std::slice::from_ref(&set), Force::Yes).map_err(Fault::Restore)?;
        restored.extend(undone.applied.changes.into_iter().map(|change| change.path));
        fs::remove_dir_all(&set).map_err(failed)?;
    }
    forget(run).map_err(failed)?;
    Layers::below(state).remove().map_err(failed)?;
    Ok(restored)
}
