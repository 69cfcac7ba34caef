//! Recovers orders whose harness was killed, before anything else: restores the tree, or finishes a run that
//! has already committed. Also finds finished runs, so that repeating a command does not pay for them again.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use engine::{Commit, CommitAnswer, Committed, Journaled, Line, Note, Request as _};
use loop_order::Finished;
use perform::{Past, Record, RecordOnly, Silent};
use repo::{Git, WorkTree};
use serde_json::Value;

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::order::recorded::Recorded;
use crate::order::unfinished::Unfinished;
use crate::order::{folder, preflight};
use crate::place;
use crate::records;
use crate::registry::{self, Known};

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

/// The runs that made the newest commits, without a gap: what an earlier call finished before it was stopped.
pub(super) fn committed(tree: &WorkTree, git: &Git) -> Result<Vec<Recorded>, Failure> {
    let runs = registry::all(tree)?.into_iter().filter(|run| !run.undone);
    let commits = runs.filter_map(|run| Some((commit_of(&run.path(tree.root()))?, run)));
    let mut by_commit: HashMap<String, Known> = commits.collect();
    let (mut made, mut name) = (Vec::new(), "HEAD".to_owned());
    while let Some(commit) = git.commit_of(&name)?
        && let Some(run) = by_commit.remove(&commit)
    {
        let folder = records::open(&run.path(tree.root()));
        made.extend(Recorded::load(&run, folder));
        name = format!("{commit}~1");
    }
    Ok(made)
}

fn commit_of(run: &Path) -> Option<String> {
    let past = Recorded::is_in(run).then(|| Past::read(run).ok())??;
    past.lines
        .into_iter()
        .find_map(|line| if let Line::Committed(committed) = line { committed.commit } else { None })
}
