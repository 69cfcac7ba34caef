//! What the next command does about the changes of one during which the harness was killed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::Lock;
use code_commit_guard::{Difference, Guard, Policy, Survey};
use code_commit_logging::RunFolder;
use code_commit_timeline::{Step, What};

use super::layers::Layers;
use super::note::BEFORE;
use super::put_back::put_back;
use super::{Account, note};
use crate::attic::Attic;
use crate::fault::Fault;
use crate::kept::{after_build, undo_folders};
use crate::record::{Past, UNDO};
use crate::restore;

/// What was cleaned up after a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Paths that were restored.
    pub restored: Vec<String>,
    /// The folder with what replaced them, and with what else was taken out of the tree.
    pub kept: Option<PathBuf>,
}

/// Restores everything changed by a command during which the harness was killed, or whose answer it had not
/// recorded; the command is run again if needed.
///
/// What was saved is trusted: the caller makes sure that the harness wrote it.
pub fn settle(lock: &Lock, state: &Path, root: &Path, run: &Path) -> Result<Settled, Fault> {
    let folder = run.join(BEFORE);
    let failed = |source| Fault::file("read what was noted in", &folder)(source);
    let layers = Layers::below(state);
    let noted = note::read(&folder).map_err(failed)?;
    let name = noted.as_ref().and_then(|noted| noted.adopted.as_deref());
    if name.is_some_and(|name| is_recorded(run, name)) {
        layers.remove().map_err(failed)?;
        note::remove(&folder)
            .and_then(|()| code_commit_dir::remove(&folder))
            .map_err(failed)?;
        return Ok(Settled::default());
    }
    let mut attic = layers.attic(run);
    layers.clear(&mut attic).map_err(failed)?;
    let mut restored = Vec::new();
    if let Some(noted) = noted {
        let set = noted.adopted.map(|name| run.join(UNDO).join(name));
        if let Some((own, before)) = noted.survey {
            restored = put_all_back(root, run, own, &before, &mut attic)?;
        } else if let Some(set) = &set
            && code_commit_apply::read_applied(set)
                .map_err(Fault::Restore)?
                .is_some()
        {
            restored = restore::undo(lock, root, std::slice::from_ref(set), &mut attic)?;
        }
        // Its changes are not in the tree any more.
        set.map_or(Ok(()), |set| code_commit_dir::remove(&set))
            .map_err(failed)?;
        note::remove(&folder).map_err(failed)?;
    }
    // A note that a power cut has truncated restores nothing, but its copies may help the user.
    if !note::is_there(&folder) {
        code_commit_dir::remove(&folder).map_err(failed)?;
    }
    Ok(Settled {
        restored,
        kept: attic.folder().map(Path::to_owned),
    })
}

/// Whether the answer of the build with this set of pre-images is in the journal. A journal that cannot be read
/// holds none.
fn is_recorded(run: &Path, set: &str) -> bool {
    let past = Past::read(run).unwrap_or_default();
    let is_its = |step: &Step| {
        matches!(&step.what, What::Command(command) if command.is_build())
            && after_build(step.round) == set
    };
    past.steps_held().all.iter().any(is_its)
}

fn put_all_back(
    root: &Path,
    run: &Path,
    own: Vec<PathBuf>,
    before: &Survey,
    attic: &mut Attic<'_>,
) -> Result<Vec<String>, Fault> {
    let folder = run.join(BEFORE);
    let mut account = Account::new("a command", Policy::new(), own);
    account.source.reopen(root, before, &folder);
    let mut restored = BTreeSet::new();
    loop {
        let guard = Guard::open(root, Policy::new())
            .map_err(|error| Fault::file("look at", root)(io::Error::other(error)))?;
        account.tracked = guard.ignored_of(before.iter().map(|(path, _)| path.clone()));
        let mut differences = account.differences(before, &guard)?;
        // Ignore rules made by the command hide the files that they name, so remove them first.
        let is_rule = |one: &Difference| one.path.file_name() == Some(OsStr::new(".gitignore"));
        let has_rules = differences
            .iter()
            .any(|one| is_rule(one) && !restored.contains(&one.path));
        differences.retain(|one| !has_rules || is_rule(one));
        let gone = put_back(
            root,
            before,
            &account.source,
            &Vec::from_iter(&differences),
            attic,
        )?;
        restored.extend(differences.into_iter().map(|one| one.path));
        if !has_rules {
            let shown = restored.iter().map(|path| path.display().to_string());
            return Ok(shown.filter(|path| !gone.contains(path)).collect());
        }
    }
}

/// Whether a finished command leaves nothing to restore in this run, not even for the next command.
pub fn is_settled(run: &RunFolder) -> Result<bool, Fault> {
    let folder = run.path().join(BEFORE);
    let noted = note::read(&folder).map_err(Fault::file("read what was noted in", &folder))?;
    Ok(noted.is_none() && undo_folders(run.path())?.is_empty())
}
