//! Recovers orders whose harness was killed, before anything else: restores the tree, or finishes a run that
//! has already committed. Also finds finished runs, so that repeating a command does not pay for them again.

use anyhow::Context as _;
use engine::{Commit, CommitAnswer, Committed, Journaled, Line, Note, Request as _};
use loop_order::{Finished, WorkOrder};
use perform::{Past, Record, RecordOnly, Silent};
use repo::{Git, WorkTree};
use serde_json::Value;

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::order::plan::Terms;
use crate::order::recorded::{self, Recorded};
use crate::order::unfinished::Unfinished;
use crate::order::{folder, preflight};
use crate::place;
use crate::records;
use crate::registry;

/// Cleans up after a killed run, holding the lock meanwhile.
pub(super) fn recover(tree: &WorkTree, host: Host<'_>) -> Result<(), Failure> {
    let Host { environment, output, .. } = host;
    let lock = lock::take(tree, host)?;
    let state = place::state(tree)?;
    folder::clear_up(&state, tree, &preflight::git(tree, environment), &lock, output).map(drop)
}

/// Records the commit of a run that was killed before its journal did, and ends the run. Gives false if it
/// made no commit.
pub(super) fn settle(run: &Unfinished, tree: &WorkTree, git: &Git) -> Result<bool, Failure> {
    let known = registry::all(tree)?.into_iter().find(|known| known.path(tree.root()) == run.run);
    let folder = records::open(&run.run);
    let Some(recorded) = known.and_then(|known| Recorded::load(&known, folder).ok()) else {
        return Ok(false);
    };
    let (inputs, kept) = (recorded.inputs(tree.root())?, "cannot keep a record");
    let mut past = Past::read(recorded.folder.path()).context(kept)?;
    let mut made = None;
    let outcome = loop {
        let mut harness =
            Journaled::new(RecordOnly::new(recorded.folder.clone(), &past), past.answers.clone());
        match loop_order::order(&mut harness, &inputs) {
            Ok(Finished { outcome, failed_stage: None, .. }) => break outcome,
            Ok(_) => return Ok(false),
            Err(_) => {}
        }
        let Some((Commit::KIND, request)) = harness.into_world().pending else { return Ok(false) };
        // The message's last line names the run; git may have reformatted the others.
        let message = request.get("message").and_then(Value::as_str).unwrap_or_default();
        let line = message.lines().next_back().unwrap_or_default();
        let Some(commit) = git.commit_upon(&run.commit, line)? else { return Ok(false) };
        // The commit stands, whatever becomes of its note.
        let _ = perform::note_commit(git, &recorded.folder, &commit, None);
        let committed = Committed { repository: None, message: None, commit: Some(commit) };
        let answer = serde_json::to_value(CommitAnswer::Committed(committed)).context(kept)?;
        let entry = engine::Recorded { kind: Commit::KIND.to_owned(), request, answer };
        past.answers.push(entry.clone());
        made = Some(entry);
    };
    let mut silent = Silent;
    let (mut record, _) = Record::resume(recorded.folder, &mut silent).context(kept)?;
    made.map_or(Ok(()), |entry| record.answer(&entry, false)).context(kept)?;
    record.note(&Note::Ended { outcome }).context(kept)?;
    Ok(true)
}

/// The finished run of this order under these terms, if its verdict still holds: the tree is as the run left it,
/// or its commit is in the history. Then nothing is paid for again.
pub(super) fn answered(
    order: &WorkOrder,
    terms: &Terms,
    tree: &WorkTree,
    git: &Git,
) -> Result<Option<Recorded>, Failure> {
    let mut hash = None;
    for known in registry::with_imported(tree)?.into_iter().filter(|run| !run.undone && run.is_believed()) {
        let run = known.path(tree.root());
        if !Recorded::is_in(&run) {
            continue;
        }
        let Ok(recorded) = Recorded::load(&known, records::open(&run)) else { continue };
        let plan = &recorded.plan;
        let is_same = plan.work_order_hash == order.hash
            && plan.config_hash == terms.hash()
            && plan.terms.commit == terms.commit;
        if !is_same {
            continue;
        }
        let Some((past, summary)) = Past::read(&run).ok().zip(recorded::summary(&recorded.folder)) else {
            continue;
        };
        if !folder::is_over(&past) {
            continue;
        }
        let commit = past.lines.iter().find_map(commit_of);
        let is_in_history = commit.map_or(Ok(false), |commit| git.has_in_history(commit))?;
        let after = summary.repo_tree_hash_after.as_ref().unwrap_or(&summary.repo_tree_hash_before);
        if is_in_history || *tree_hash(tree, &mut hash)? == *after {
            return Ok(Some(recorded));
        }
    }
    Ok(None)
}

/// Reads the whole tree, once.
fn tree_hash<'h>(tree: &WorkTree, hash: &'h mut Option<String>) -> Result<&'h String, Failure> {
    let now = match hash.take() {
        Some(known) => known,
        None => repo::stable_hash(tree.root())
            .map_err(|error| Failure::refused(error, "every file of the repository must be readable"))?,
    };
    Ok(hash.insert(now))
}

fn commit_of(line: &Line) -> Option<&str> {
    if let Line::Committed(committed) = line { committed.commit.as_deref() } else { None }
}
