//! Recovers orders whose harness was killed, before anything else: restores the tree, or finishes a run that
//! has already committed. Also finds finished runs, so that repeating a command does not pay for them again.

use anyhow::{Context as _, anyhow};
use code_commit_dir::NEVER;
use code_commit_engine::{Commit, CommitAnswer, Committed, Journaled, Line, Note, Request as _};
use code_commit_logging::RunFolder;
use code_commit_loop_order::{Finished, WorkOrder};
use code_commit_perform::{Past, Record, RecordOnly, Silent};
use code_commit_repo::{Git, WorkTree};
use code_commit_settings::Settings;
use serde_json::Value;

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::order::plan::KIND;
use crate::order::recorded::{self, Recorded};
use crate::order::setting::Setting;
use crate::order::unfinished::Unfinished;
use crate::order::{folder, preflight};
use crate::place;
use crate::records;
use crate::registry::Registry;
use crate::verdict;

/// Cleans up after a killed run, holding the lock meanwhile.
pub(super) fn recover(tree: &WorkTree, settings: &Settings, host: Host<'_>) -> Result<(), Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let lock = lock::take(tree, host)?;
    let state = place::state(tree)?;
    let git = preflight::git(tree, settings, environment)?;
    folder::clear_up(&state, tree, &git, &lock, output).map(drop)
}

/// Records the commit of a run that was killed before its journal did, and ends the run. Gives false if it
/// made no commit.
pub(super) fn settle(run: &Unfinished, tree: &WorkTree, git: &Git) -> Result<bool, Failure> {
    let known = Registry::of(tree)
        .all()?
        .into_iter()
        .find(|known| known.path(tree.root()) == run.run);
    let folder = records::open(&run.run);
    let Some(recorded) = known.and_then(|known| Recorded::load(&known, folder).ok()) else {
        return Ok(false);
    };
    let kept = "cannot keep a record";
    let mut past = Past::read(recorded.folder.path()).context(kept)?;
    let inputs = recorded.inputs(tree.root(), &past)?;
    let mut made = None;
    let outcome = loop {
        let mut harness = Journaled::new(
            RecordOnly::new(recorded.folder.clone(), &past),
            past.answers.clone(),
        );
        match code_commit_loop_order::order(&mut harness, &inputs) {
            Ok(Finished {
                outcome,
                failed_stage: None,
                ..
            }) => break outcome,
            Ok(_) => return Ok(false),
            Err(_) => {}
        }
        let Some((Commit::KIND, request)) = harness.into_world().pending else {
            return Ok(false);
        };
        // The message's last line names the run; git may have reformatted the others.
        let message = request
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let line = message.lines().next_back().unwrap_or_default();
        let Some(commit) = git.commit_upon(&run.commit, line)? else {
            return Ok(false);
        };
        let committed = Committed {
            repository: None,
            message: None,
            commit: Some(commit),
        };
        let answer = serde_json::to_value(CommitAnswer::Committed(committed)).context(kept)?;
        let entry = code_commit_engine::Recorded {
            kind: Commit::KIND.to_owned(),
            request,
            answer,
        };
        past.answers.push(entry.clone());
        made = Some(entry);
    };
    let holds_for = verdict::of_order(
        tree.root(),
        None,
        recorded.folder.path(),
        &recorded.read.order,
        NEVER,
    );
    let (mut record, _) = Record::resume(recorded.folder, Silent).context(kept)?;
    made.map_or(Ok(()), |entry| record.answer(&entry, false))
        .context(kept)?;
    record
        .note(&Note::Ended { outcome, holds_for })
        .and_then(|()| record.sync())
        .context(kept)?;
    Ok(true)
}

/// The finished run of this work, if its verdict still holds: the tree is as the run left it, or its commit is in
/// the history. Then nothing is paid for again. Without a key its content is its name. Refuses a key that was used for other work.
pub(super) fn answered(
    order: &WorkOrder,
    setting: &Setting<'_>,
    tree: &WorkTree,
    git: &Git,
) -> Result<Option<(Recorded, Past)>, Failure> {
    let Setting {
        terms,
        key,
        host: Host { output, .. },
        ..
    } = *setting;
    let (mut hash, mut is_known) = (None, false);
    for known in Registry::of(tree)
        .all()?
        .into_iter()
        .filter(|run| !run.undone)
    {
        let run = known.path(tree.root());
        let head = records::Head::of(&records::open(&run)).unwrap_or_default();
        if head.kind != KIND {
            continue;
        }
        let is_named = key.is_some() && head.key.as_deref() == key;
        let recorded = match Recorded::load(&known, records::open(&run)) {
            Err(error) if is_named => {
                records::refuse_unread(&records::open(&run), error)?;
                continue;
            }
            Err(_) => continue,
            Ok(recorded) => recorded,
        };
        let (name, plan) = (records::name(&run), &recorded.plan);
        let is_same = plan.is_of(&order.hash, terms);
        // The newest run decides what the key is for.
        if is_named && !is_same && !is_known {
            let error = anyhow!("the key was used for other work: {name}");
            return Err(Failure::refused(
                error,
                "use another key for another order or other settings",
            ));
        }
        is_known |= is_named;
        if !is_same || (key.is_some() && !is_named) {
            continue;
        }
        let past = match records::intact(&recorded.folder) {
            Err(error) if is_named => {
                records::refuse_unread(&recorded.folder, error.into())?;
                continue;
            }
            Err(_) => {
                output.warn(&format!(
                    "the record of {name} was changed, so its verdict does not count"
                ));
                continue;
            }
            Ok(past) => past,
        };
        let is_as_left = || {
            let (Some(then), root) = (past.end().map(|(_, then)| then), tree.root()) else {
                return false;
            };
            let run = recorded.folder.path();
            *then == verdict::of_order(root, None, run, &recorded.read.order, NEVER)
        };
        if still_holds(&recorded.folder, &past, git, || {
            Ok(Some(tree_hash(tree, &mut hash)?.clone()).filter(|_| is_as_left()))
        })? {
            return Ok(Some((recorded, past)));
        }
    }
    Ok(None)
}

/// Whether the run is over, committed what it was to commit, and its verdict holds; `now` is the hash of the tree,
/// which leaves out modes and symlinks, if those are as the run left them.
fn still_holds(
    folder: &RunFolder,
    past: &Past,
    git: &Git,
    now: impl FnOnce() -> Result<Option<String>, Failure>,
) -> Result<bool, Failure> {
    let Some(summary) = recorded::summary(folder, past).filter(|_| folder::is_over(past)) else {
        return Ok(false);
    };
    if past
        .lines
        .iter()
        .any(|line| matches!(line, Line::NotCommitted(_)))
    {
        return Ok(false);
    }
    let commit = past.lines.iter().find_map(commit_of);
    let is_in_history = commit.map_or(Ok(false), |commit| git.has_in_history(commit))?;
    let after = summary
        .repo_tree_hash_after
        .unwrap_or(summary.repo_tree_hash_before);
    Ok(is_in_history || now()? == Some(after))
}

/// Reads the whole tree, once.
fn tree_hash<'h>(tree: &WorkTree, hash: &'h mut Option<String>) -> Result<&'h String, Failure> {
    let now = match hash.take() {
        Some(known) => known,
        None => code_commit_repo::stable_hash(tree.root(), NEVER).map_err(|error| {
            Failure::refused(error, "every file of the repository must be readable")
        })?,
    };
    Ok(hash.insert(now))
}

fn commit_of(line: &Line) -> Option<&str> {
    if let Line::Committed(committed) = line {
        committed.commit.as_deref()
    } else {
        None
    }
}
