//! What the next command does about the changes of one during which the harness was killed.

use std::path::{Path, PathBuf};

use code_commit_apply::Lock;
use code_commit_repo::Git;

use crate::backup::{BACKUP, Backup};
use crate::engine::{BEFORE, ChangeEngine, Scope, forget_copies};
use crate::fault::Fault;
use crate::overlay::Overlay;
use crate::{note, revert};

/// What was cleaned up after a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Paths that were restored.
    pub restored: Vec<String>,
    /// The folder with what replaced them, and with what else was taken out of the tree.
    pub kept: Option<PathBuf>,
}

/// Restores everything changed by a command during which the harness was killed, or whose answer it had not
/// recorded; the command is run again if needed. `is_recorded` says whether the answer with a set is in the journal.
///
/// What git has is read by `git`. What was saved is trusted: the caller makes sure that the harness wrote it.
pub fn settle(
    lock: &Lock,
    state: &Path,
    root: &Path,
    run: &Path,
    git: Option<Git>,
    is_recorded: impl FnOnce(&str) -> bool,
) -> Result<Settled, Fault> {
    let folder = run.join(BACKUP).join(BEFORE);
    let failed = |source| Fault::file("read what was noted in", &folder)(source);
    let overlay = Overlay::below(state);
    let noted = note::read(&folder).map_err(failed)?;
    let name = noted.as_ref().and_then(|noted| noted.adopted.as_deref());
    if name.is_some_and(is_recorded) {
        overlay.remove().map_err(failed)?;
        note::remove(&folder).map_err(failed)?;
        forget_copies(run)?;
        return Ok(Settled::default());
    }
    let mut backup = Backup::of(run).or_in(overlay.state());
    overlay.clear(&mut backup).map_err(failed)?;
    let mut restored = Vec::new();
    if let Some(noted) = noted {
        let set = noted.adopted.map(|name| run.join(BACKUP).join(name));
        if let Some((own, before)) = noted.snapshot {
            let mut engine = ChangeEngine::new(Scope {
                who: "a command".into(),
                own,
                ..Scope::default()
            })
            .asking(git);
            engine.go_on(root, before, run)?;
            restored = engine.restore_all(root, &mut backup)?.0;
        } else if let Some(set) = &set
            && code_commit_apply::read_applied(set)
                .map_err(Fault::Undo)?
                .is_some()
        {
            restored = revert::undo(lock, root, std::slice::from_ref(set), &mut backup)?;
        }
        // Its changes are not in the tree any more.
        set.map_or(Ok(()), |set| code_commit_dir::remove(&set))
            .map_err(failed)?;
        note::remove(&folder).map_err(failed)?;
    }
    // A note that a power cut has truncated restores nothing, but its copies may help the user.
    if !note::is_there(&folder) {
        forget_copies(run)?;
    }
    Ok(Settled {
        restored,
        kept: backup.folder().map(Path::to_owned),
    })
}

/// Whether a command left nothing to restore in this run.
pub fn is_settled(run: &Path) -> Result<bool, Fault> {
    let folder = run.join(BACKUP).join(BEFORE);
    let noted = note::read(&folder).map_err(Fault::file("read what was noted in", &folder))?;
    Ok(noted.is_none())
}
