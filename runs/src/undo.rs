//! `code-commit undo`: restores what a run wrote or deleted, or a part of it; `code-commit redo` reapplies what was
//! undone. Without git.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use code_commit_apply::Force;

use anyhow::{Context as _, anyhow};
use code_commit_apply::{Action, Part, UndoError};
use code_commit_changes::BACKUP;
use code_commit_engine::Changed;
use code_commit_perform::{JOURNAL, Past, folders_to_undo, same_format};
use code_commit_report::{phrases, printable, printable_name};
use serde_json::json;

use crate::caches;
use crate::changes::{self, FileChange};
use crate::driver::{InTree, TakesBack};
use crate::exit::{Exit, Failure};
use crate::gitignore::{AddedLine, hide_agent_config};
use crate::host::Host;
use crate::project::Project;
use crate::records;
use crate::registry::{Known, Undone};

/// Changed files named in a message.
const NAMED_FILES: usize = 5;

/// What is to be undone.
#[derive(Debug, Default)]
pub struct Request<'r> {
    /// The run; the newest if not named.
    pub run: Option<&'r str>,
    /// Only these of its files; all if there are none.
    pub files: &'r [String],
    /// What to do about files that have changed since.
    pub force: Force,
}

/// Undoes the named run, or the newest, in one transaction.
pub fn run(request: &Request<'_>, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::here(host)?;
    let lock = project.lock()?;
    let known = project.registry().find(request.run)?;
    let sets = Sets::of(&known, &project)?;
    // A set that cannot be read may have changed something; the undo says what it lacks.
    if !code_commit_apply::changed_anything(&sets.rounds).unwrap_or(true) {
        if takes_line(&known, &sets, host)? {
            project.registry().mark(&sets.run, Undone::Yes)?;
            return Ok(Exit::Done);
        }
        return nothing(request.run, &known, &project);
    }
    let files = sets.meant(request.files)?;
    if files.is_none() {
        // Nothing says which run has written what there, and all of it can be fetched again.
        let state = project.state()?;
        caches::remove(&state).map_err(|error| caches::failed(&state, &error))?;
    }
    let part = files.as_ref().map_or(Part::All, Part::Files);
    let undone = code_commit_apply::undo_part(&lock, &sets.root, &sets.rounds, part, request.force)
        .map_err(|error| failed(error, &sets.run, &again(request, &sets.run)))?;
    // A part of it may have been the last part.
    if files.is_none() || sets.changes()?.is_empty() {
        project.registry().mark(&sets.run, Undone::Yes)?;
        takes_line(&known, &sets, host)?;
    }
    let count = tell(&undone, &sets.run, "restored", host);
    if let Some(commit) = sets.commit() {
        host.output.note(&format!(
            "{commit} stays in the history: commit the restored files to take it back there, too"
        ));
    }
    host.output.report(&format!(
        "{} before {}",
        phrases::restored(count),
        records::name(&sets.run)
    ));
    Ok(Exit::Done)
}

/// Reapplies the undone changes of a run, all in one transaction.
pub fn redo(named: Option<&str>, force: Force, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::here(host)?;
    let lock = project.lock()?;
    let known = project.registry().find(named)?;
    let sets = Sets::of(&known, &project)?;
    let name = records::name(&sets.run);
    let undos = code_commit_changes::undos(&sets.rounds);
    if undos.is_empty() {
        let help = "to undo what a run changed: code-commit undo RUN";
        return Err(Failure::nothing_to_do(
            anyhow!("nothing of {name} is undone"),
            help,
        ));
    }
    let redone = code_commit_apply::undo(&lock, &sets.root, &undos, force)
        .map_err(|error| failed(error, &sets.run, &format!("code-commit redo {name}")))?;
    code_commit_changes::put_away(&undos).map_err(anyhow::Error::from)?;
    project.registry().mark(&sets.run, Undone::No)?;
    if AddedLine::of(&known, &records::open(&sets.run)).is_some() {
        hide_agent_config(project.trusted.surroundings()?, &sets.root)?;
    }
    let count = tell(&redone, &sets.run, "changed", host);
    host.output
        .report(&format!("{} after {name}", phrases::restored(count)));
    Ok(Exit::Done)
}

/// Takes back the line that the run has added to `.gitignore`, and says so.
fn takes_line(known: &Known, sets: &Sets, host: Host<'_>) -> Result<bool, Failure> {
    let Some(line) = AddedLine::of(known, &records::open(&sets.run)) else {
        return Ok(false);
    };
    let is_taken = line
        .take_back(&sets.root)
        .context("cannot restore .gitignore")?;
    if is_taken {
        host.output.report("removed /agent-config from .gitignore");
    }
    Ok(is_taken)
}

/// One line a file; gives their number.
fn tell(done: &code_commit_apply::Undone, run: &Path, verb: &str, host: Host<'_>) -> usize {
    let (output, changes) = (host.output, &done.applied.changes);
    done.applied
        .warnings
        .iter()
        .for_each(|warning| output.warn(&warning.to_string()));
    output.object(&json!({ "run": records::name(run), verb: changes }));
    for change in changes {
        let what = match change.action {
            Action::Delete => "removed",
            Action::Write => verb,
            Action::None => "already there:",
        };
        output.report(&format!("{what} {}", printable_name(&change.path)));
    }
    let is_done = |change: &&Changed| change.action != Action::None;
    changes.iter().filter(is_done).count()
}

/// What a run changed, as far as it can be taken back here.
struct Sets {
    root: PathBuf,
    run: PathBuf,
    /// Its sets of pre-images, the oldest first.
    rounds: Vec<PathBuf>,
}

impl Sets {
    fn of(known: &Known, project: &Project<'_>) -> Result<Self, Failure> {
        let (run, kind) = (known.path(&project.root), project.kind(known));
        if kind.is_some_and(|kind| kind.takes_back == TakesBack::Git) {
            return Err(with_git(&run, &known.loop_name(&project.root)));
        }
        let tree = project.tree()?;
        if kind.and_then(|kind| (kind.in_tree)(known, project)) == Some(InTree::Restored) {
            let error = anyhow!(
                "{} left nothing: the tree was restored already",
                records::name(&run)
            );
            return Err(Failure::nothing_to_do(
                error,
                "to continue it: code-commit resume",
            ));
        }
        let kept = run.join(BACKUP);
        same_format(&run).map_err(|error| {
            let help = format!(
                "the version that made it can undo it; or restore the files with git, or from {}",
                kept.display()
            );
            Failure::refused(error, help)
        })?;
        if known.has_plan() && kept.is_dir() && !run.join(JOURNAL).is_file() {
            let error = anyhow!(
                "the journal of {} is gone, so nothing says what may be undone",
                records::name(&run)
            );
            return Err(Failure::refused(
                error,
                format!("the old contents are in {}", kept.display()),
            ));
        }
        let rounds = folders_to_undo(&records::open(&run)).map_err(|error| {
            let help = format!(
                "nothing was restored; the old contents are in {}",
                kept.display()
            );
            Failure::refused(error, help)
        })?;
        Ok(Self {
            root: tree.root().to_owned(),
            run,
            rounds,
        })
    }

    /// The commit of the run, if it made one. An undo is about files; the history is git's.
    fn commit(&self) -> Option<String> {
        Past::read(&self.run)
            .ok()?
            .steps_held()
            .commit()
            .map(str::to_owned)
    }

    /// What differs from before the run.
    fn changes(&self) -> Result<Vec<FileChange>, Failure> {
        Ok(changes::of_run(&self.root, &self.run)?)
    }

    /// The files to undo; `None` for all of them.
    fn meant(&self, named: &[String]) -> Result<Option<BTreeSet<String>>, Failure> {
        if named.is_empty() {
            return Ok(None);
        }
        let changes = self.changes()?;
        let named: BTreeSet<String> = named
            .iter()
            .map(|path| path.strip_prefix("./").unwrap_or(path).to_owned())
            .collect();
        let is_changed = |path: &&String| changes.iter().any(|change| change.path == **path);
        match named.iter().find(|path| !is_changed(path)) {
            Some(other) => Err(self.not_changed(other, &changes)),
            None => Ok(Some(named)),
        }
    }

    fn not_changed(&self, path: &str, changes: &[FileChange]) -> Failure {
        let name = records::name(&self.run);
        let paths: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
        let error = anyhow!("{name} left no change in {}", printable_name(path));
        let help = if paths.is_empty() {
            "none of it is left in the tree: code-commit redo reapplies undone changes".to_owned()
        } else {
            format!(
                "it changed {}",
                printable(&phrases::first(&paths, NAMED_FILES))
            )
        };
        Failure::refused(error, help)
    }
}

/// The run changed nothing. If it was named and could go on, it is closed, so that it does not.
fn nothing(named: Option<&str>, known: &Known, project: &Project<'_>) -> Result<Exit, Failure> {
    let (run, output) = (known.path(&project.root), project.host.output);
    let name = records::name(&run);
    let is_kept = || {
        project
            .kind(known)
            .is_none_or(|kind| kind.own_summary.is_some())
    };
    if named.is_some() && !known.undone && !is_kept() && project.is_over(known) == Some(false) {
        project.registry().mark(&run, Undone::Yes)?;
        output.object(&json!({ "run": name, "restored": [] }));
        output.report(&format!(
            "{name} changed no file; it is closed and cannot be resumed"
        ));
        return Ok(Exit::Done);
    }
    let changed = |known: &Known| {
        let rounds = folders_to_undo(&records::open(&known.path(&project.root))).ok()?;
        (!known.undone && code_commit_apply::changed_anything(&rounds).ok()?)
            .then(|| known.path(&project.root))
    };
    let older = if named.is_none() {
        project.registry().all()?.iter().find_map(changed)
    } else {
        None
    };
    let help = older.map_or_else(
        || {
            "a run whose replies were all refused, or that was rolled back, has nothing to undo"
                .to_owned()
        },
        |older| {
            format!(
                "the newest run that did: code-commit undo {}",
                records::name(&older)
            )
        },
    );
    Err(Failure::nothing_to_do(
        anyhow!("there is no record of what {name} may have changed"),
        help,
    ))
}

/// Agents write to the tree themselves: no texts of before are kept that could be put back.
fn with_git(run: &Path, kind: &str) -> Failure {
    let name = records::name(run);
    let what =
        anyhow!("{name} is a run of the {kind} loop: what its agents wrote is not kept twice");
    let help = "undo it with git: what was committed with `git revert`, what was not with `git restore`; another run: code-commit undo RUN";
    Failure::refused(what, help)
}

/// The command for the same undo.
fn again(request: &Request<'_>, run: &Path) -> String {
    let files = request.files.iter().map(|path| printable_name(path));
    let words = [format!("code-commit undo {}", records::name(run))];
    words
        .into_iter()
        .chain(files)
        .collect::<Vec<String>>()
        .join(" ")
}

/// Either everything was restored or nothing; in both cases the old contents stay in the run folder. `command` is the
/// same undo.
fn failed(error: UndoError, run: &Path, command: &str) -> Failure {
    let kept = run.join(BACKUP);
    if matches!(error, UndoError::ChangedSince { .. }) {
        return Failure::refused(
            error,
            format!("look at these files; to replace them anyway: {command} --force"),
        );
    }
    let help = if matches!(error, UndoError::OtherVersion { .. }) {
        format!(
            "undo with that version; the old contents are in {}",
            kept.display()
        )
    } else if matches!(error, UndoError::NoManifest { .. }) {
        format!(
            "nothing was restored; git may have the old contents, and {} has the remaining copies",
            kept.display()
        )
    } else if matches!(error, UndoError::Blocked { .. }) {
        format!(
            "move the existing files away, then undo again; the old contents are in {}",
            kept.display()
        )
    } else if matches!(&error, UndoError::Apply(error) if error.leaves_tree_changed()) {
        format!(
            "the next command restores files that were not changed since; the old contents are in {}",
            kept.display()
        )
    } else {
        format!(
            "nothing was restored; the old contents are in {}",
            kept.display()
        )
    };
    Failure::new(Exit::TreeNotRestored, error).help(help)
}
