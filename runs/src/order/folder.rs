//! Run folders of orders: a new one, and that of the run in progress in the tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_apply::Lock;
use code_commit_engine::Outcome;
use code_commit_logging::{Journal, Redactor, RunFolder};
use code_commit_perform::{JOURNAL, Past};
use code_commit_repo::{Git, WorkTree};
use code_commit_report::Output;

use crate::exit::Failure;
use crate::life::InTree;
use crate::order::recorded;
use crate::order::setting::{Setting, not_restored};
use crate::order::settle::settle;
use crate::order::unfinished::{Unfinished, baseline};
use crate::records::{self, NewRun};
use crate::registry::{Known, RUN_JSON, Registry};
use crate::site::Site;

/// Where the run of this name belongs: the id does not include the tree's path, so a clone finds what another one
/// left. That stays where it is, and the run gets the next free name.
fn place(path: &Path, tree: &WorkTree, setting: &Setting<'_>) -> Result<PathBuf, Failure> {
    let (base, name) = (path.parent().unwrap_or(path), records::name(path));
    let (mut path, mut number) = (path.to_owned(), 1);
    loop {
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Ok(found) if found.is_dir() && path.join(JOURNAL).is_file() => {
                let is_in_use =
                    Journal::is_in_use(&path.join(JOURNAL)).map_err(anyhow::Error::from)?;
                if !is_in_use && Registry::of(tree).knows(&path)? {
                    move_aside(&path, tree, setting)?;
                    return Ok(path);
                }
                number += 1;
                path = base.join(format!("{name}-{number}"));
            }
            Ok(found) if found.is_dir() && was_never_begun(&path)? => {
                return Ok(path);
            }
            _ => {
                let error = anyhow!("{} is there and is no run", path.display());
                return Err(Failure::refused(
                    error,
                    "move it away, or name another folder with --out",
                ));
            }
        }
    }
}

/// The folder of a new run. One that was made here before is moved aside, whether it is over or not.
pub(super) fn new_run(
    path: &Path,
    tree: &WorkTree,
    setting: &Setting<'_>,
) -> Result<NewRun, Failure> {
    let (base, help) = (path.parent().unwrap_or(path), "make the folder writable");
    let claimed = fs::create_dir_all(base).and_then(|()| {
        let out = fs::File::open(base)?;
        // Some file systems have no locks.
        let _ = out.lock();
        Ok(out)
    });
    let claim = claimed
        .with_context(|| format!("cannot create {}", base.display()))
        .map_err(|error| Failure::refused(error, help))?;
    NewRun::create_in_place(
        claim,
        &place(path, tree, setting)?,
        setting.redactor.clone(),
        help,
    )
}

/// Whether a run was killed here before its first step; then removes what it left.
fn was_never_begun(path: &Path) -> Result<bool, Failure> {
    let discarded = recorded::discard_beginning(path).with_context(|| {
        format!(
            "cannot take away what a killed run has left in {}",
            path.display()
        )
    });
    discarded.map_err(|error| Failure::refused(error, "see who may write there"))
}

/// Renames a run to the next free name: its answers were paid for. Warns if it is unfinished and `--new` was not given.
fn move_aside(path: &Path, tree: &WorkTree, setting: &Setting<'_>) -> Result<(), Failure> {
    let is_left = !setting.new && !is_finished(&records::open(path))?;
    if is_left {
        records::can_be_continued(path)?;
    }
    let (base, name) = (
        path.parent().unwrap_or(path),
        path.file_name().unwrap_or_default(),
    );
    let aside = RunFolder::create(base, &name.to_string_lossy(), Redactor::default())
        .map_err(|error| Failure::refused(error, "make the folder writable"))?;
    Registry::of(tree).will_move(path, aside.path())?;
    fs::rename(path, aside.path())
        .with_context(|| format!("cannot move {} aside", path.display()))?;
    if is_left && records::has_begun(aside.path()) {
        let (name, now) = (name.to_string_lossy(), records::name(aside.path()));
        setting.host.output.warn(&format!(
            "the unfinished run {name} has other settings or another key and was renamed to {now}; code-commit resume {now} continues it"
        ));
    }
    Ok(())
}

fn is_finished(folder: &RunFolder) -> Result<bool, Failure> {
    let past = Past::read(folder.path())
        .with_context(|| format!("cannot go on with {}", folder.path().display()))
        .map_err(|error| Failure::refused(error, "move that folder away to begin anew"))?;
    Ok(is_over(&past))
}

/// Whether the run is over. One that ended because the model gave no answer can be resumed.
pub(super) fn is_over(past: &Past) -> bool {
    let unanswered = || past.answers.iter().any(|entry| entry.answers("unanswered"));
    match past.outcome() {
        None => false,
        Some(Outcome::ModelUnavailable { .. }) => !unanswered(),
        Some(_) => true,
    }
}

/// What the tree holds of a run that was stopped; `None` if that cannot be read.
pub(crate) fn in_tree(known: &Known, site: &Site<'_>) -> Option<InTree> {
    let run = known.path(&site.root);
    let noted = Unfinished::read(&site.state().ok()?)
        .ok()?
        .filter(|unfinished| unfinished.run == run);
    Some(match noted {
        None => InTree::AsRecorded,
        Some(noted) if noted.restored => InTree::Restored,
        Some(_) => InTree::Unfinished,
    })
}

/// Cleans up after a killed run: restores the tree to its state before that run. What was there is kept in
/// its folder. Gives the run if it can be resumed.
pub(super) fn clear_up(
    state: &Path,
    tree: &WorkTree,
    git: &Git,
    lock: &Lock,
    output: &Output,
) -> Result<Option<PathBuf>, Failure> {
    let Some(mut run) = Unfinished::read(state)? else {
        return Ok(None);
    };
    let folder = records::open(&run.run);
    // Another clone may have moved it aside and put a run of its own there.
    let is_ours = Registry::of(tree).knows(&run.run)?;
    let has_journal = is_ours && run.run.join(JOURNAL).is_file();
    if is_ours && was_killed_at_once(&run.run) {
        Unfinished::forget(state)?;
        return Ok(None);
    }
    // A git that was committing when its harness was killed finishes its commit.
    git.index_lock()?;
    let head = git.commit_of("HEAD")?;
    let is_at_baseline = head.as_deref() == Some(run.commit.as_str());
    if has_journal && (is_finished(&folder)? || (!is_at_baseline && settle(&run, tree, git)?)) {
        Unfinished::forget(state)?;
        return Ok(None);
    }
    if !is_at_baseline {
        output.warn(&format!(
            "the run {} was not finished; since something was committed after it, it is not rolled back{}",
            run.run.display(),
            if code_commit_changes::has_taken_in(&run.run) {
                "; what it had moved aside is in `backup/left…` there"
            } else {
                ""
            },
        ));
        Unfinished::forget(state)?;
        return Ok(None);
    }
    if !run.restored {
        let into = if is_ours { &run.run } else { state };
        let has_written = !code_commit_perform::undo_folders(into)
            .map_err(|error| not_restored(error, into))?
            .is_empty();
        let mut baseline = baseline(git.clone(), &run.commit, run.branch.as_deref());
        let warnings = baseline
            .reopen(tree.root(), into)
            .and_then(|()| baseline.restore(lock, tree.root(), into))
            .map_err(|error| not_restored(error, into))?;
        if has_written || !warnings.is_empty() {
            output.warn("a run was killed here; the tree is as it was before it");
        }
        warnings
            .iter()
            .for_each(|warning| output.warn(&warning.message));
        // From here on changes in the tree are the user's.
        run.restored = true;
        run.write(state)?;
    }
    Ok(Some(run.run).filter(|_| has_journal))
}

/// Whether a run stored only its beginning. It changed nothing, so all changes in the tree are the user's. If
/// the beginning is gone too, the folder was cleared, and nothing can be concluded.
fn was_killed_at_once(run: &Path) -> bool {
    run.join(RUN_JSON).is_file() && recorded::is_beginning(run).unwrap_or(false)
}
