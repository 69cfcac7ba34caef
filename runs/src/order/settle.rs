//! Recovers orders whose harness was killed, before anything else: restores the tree, or finishes a run that
//! has already committed. Also says whether the verdict of a finished run holds.

use anyhow::Context as _;
use code_commit_dir::NEVER;
use code_commit_engine::{
    Commit, CommitAnswer, Committed, HoldsFor, Journaled, Line, Note, Request as _,
};
use code_commit_logging::RunFolder;
use code_commit_loop_order::Finished;
use code_commit_perform::{Past, Record, RecordOnly, Silent};
use code_commit_repo::{Git, WorkTree};
use code_commit_settings::Settings;
use serde_json::Value;

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::order::recorded::{self, Recorded};
use crate::order::setting::Order;
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
    let of = (&recorded.folder, &past);
    let inputs = recorded::inputs(of, &recorded.plan, &recorded.read, tree.root())?;
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

/// Whether the run is over, committed what it was to commit, and its verdict holds: its commit is in the history, or
/// the tree is as the run left it.
pub(super) fn still_holds(
    order: &Order<'_>,
    folder: &RunFolder,
    past: &Past,
) -> Result<bool, Failure> {
    let not_committed = |line: &Line| matches!(line, Line::NotCommitted(_));
    let Some(summary) = recorded::summary(folder, past).filter(|_| folder::is_over(past)) else {
        return Ok(false);
    };
    if past.lines.iter().any(not_committed) {
        return Ok(false);
    }
    let commit = past.lines.iter().find_map(commit_of);
    if commit.map_or(Ok(false), |commit| order.git.has_in_history(commit))? {
        return Ok(true);
    }
    let after = summary
        .repo_tree_hash_after
        .unwrap_or(summary.repo_tree_hash_before);
    // It leaves out modes and symlinks.
    let (root, work) = (&order.site.root, &order.read.order);
    let is_as_left = |(_, then): (_, &HoldsFor)| {
        *then == verdict::of_order(root, None, folder.path(), work, NEVER)
    };
    Ok(past.end().is_some_and(is_as_left) && order.tree_hash()? == after)
}

fn commit_of(line: &Line) -> Option<&str> {
    if let Line::Committed(committed) = line {
        committed.commit.as_deref()
    } else {
        None
    }
}
