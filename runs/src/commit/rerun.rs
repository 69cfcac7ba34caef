//! The same command again: a supervisor may start it any number of times, and pays once.
//!
//! It goes on with its unfinished run. A finished one is answered from the record only under a key, since a
//! person who starts the command again wants another run.

use std::time::Duration;

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::Summary;
use jiff::Timestamp;
use serde_json::json;

use crate::changes::{self, FileChange};
use crate::commit::plan::{Plan, Task};
use crate::commit::run::{can_go_on, holds_something};
use crate::commit::{Request, changed};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records::{self, Head};
use crate::registry::{self, Known};
use crate::verdict;

pub(super) enum Rerun {
    /// Nothing: a new run begins.
    New,
    GoOn(Known),
    Done(Exit),
}

/// Looks for the run of the same work. `plan` is what a new run would do, as a record holds it. The caller holds
/// the lock, so that the tree is not in the middle of a write.
pub(super) fn look(plan: &Plan, args: &Request, tree: &WorkTree, host: Host<'_>) -> Result<Rerun, Failure> {
    if args.new {
        return Ok(Rerun::New);
    }
    let logs = plan.task.logs(tree.root());
    let of_loop = |known: &Known| known.has_plan() && known.path(tree.root()).parent() == Some(&*logs);
    let mut runs = registry::all(tree)?.into_iter().filter(of_loop);
    let known = match &plan.key {
        None => runs.next(),
        Some(_) => runs.find(|known| {
            Head::of(&records::open(&known.path(tree.root()))).is_some_and(|head| head.key == plan.key)
        }),
    };
    let Some(known) = known.filter(|known| !known.undone) else { return Ok(Rerun::New) };
    let run = Run { folder: records::open(&known.path(tree.root())), known, tree, host };
    let read = || Ok((Plan::load(&run.folder, &run.known)?, records::intact(&run.folder)?));
    match read() {
        Ok((recorded, past)) => run.judge(plan, &recorded, &past),
        Err(error) if plan.key.is_some() => records::refuse_unread(&run.folder, error).map(|()| Rerun::New),
        Err(_) => Ok(Rerun::New),
    }
}

struct Run<'r> {
    folder: RunFolder,
    known: Known,
    tree: &'r WorkTree,
    host: Host<'r>,
}

impl Run<'_> {
    fn judge(self, plan: &Plan, recorded: &Plan, past: &Past) -> Result<Rerun, Failure> {
        let (name, output) = (records::name(self.folder.path()), self.host.output);
        let ways = format!("code-commit resume {name} continues it, code-commit undo {name} takes it back");
        let warn = |why: &str| {
            if holds_something(past) {
                output.warn(&format!("{why}: {ways}"));
            }
            Ok(Rerun::New)
        };
        match (is_same(plan, recorded), can_go_on(past) && !past.lines.is_empty()) {
            (false, _) if plan.key.is_some() => {
                let error = anyhow!("the key was used for other work: {name}");
                Err(Failure::refused(error, "use another key for another query or other settings"))
            }
            (false, true) => warn(&format!("{name}, for another query or other settings, is not finished")),
            (true, true) => match changed::refuse(self.tree, recorded, &self.folder, self.host.environment) {
                Ok(()) => Ok(Rerun::GoOn(self.known)),
                // Its prompts know nothing of the change.
                Err(failure) => warn(&format!("{:#}, so a new run begins", failure.error)),
            },
            (true, false) if plan.key.is_some() => self.answer(plan, past),
            (_, false) => Ok(Rerun::New),
        }
    }

    /// Nobody is asked as long as the tree is the one that the run left: all of it, since that is what its build
    /// has judged, whether the run changed files, put them back, or wrote none.
    fn answer(&self, plan: &Plan, past: &Past) -> Result<Rerun, Failure> {
        let Some((outcome, holds_for)) = past.end() else { return Ok(Rerun::New) };
        let (root, output) = (self.tree.root(), self.host.output);
        let name = records::name(self.folder.path());
        if holds_for.tree.is_none() || *holds_for != verdict::of_commit(root, plan, code_commit_dir::NEVER) {
            output.warn(&format!("the files are no longer as {name} left them, so a new run begins"));
            return Ok(Rerun::New);
        }
        let changes = changes::of_run(root, self.folder.path())?;
        let files = changes.iter().map(FileChange::stat).collect();
        let log = self.folder.path().strip_prefix(root).unwrap_or(self.folder.path()).display().to_string();
        let summary = Summary::of(&past.lines, outcome.clone(), files, elapsed(past), log);
        output.note(&format!("{name} has done this already: nobody was asked"));
        summary.print(output);
        output.object(&json!({ "event": "summary", "from_record": true, "summary": summary }));
        Ok(Rerun::Done(Exit::from(&summary.outcome)))
    }
}

/// Whether both are the same work: the query, the settings, and what the run may do. The roll-up may be newer.
fn is_same(one: &Plan, other: &Plan) -> bool {
    let limits = |plan: &Plan| {
        (plan.rounds, plan.same_failures, plan.restore_on_failure, plan.early_stop, plan.no_check)
    };
    let texts = |plan: &Plan| match &plan.task {
        Task::Commit { query, .. } => (query.text().to_owned(), None),
        Task::Implement { system, query, .. } => (query.text().to_owned(), Some(system.text().to_owned())),
    };
    one.settings.has_same_values(&other.settings)
        && limits(one) == limits(other)
        && texts(one) == texts(other)
}

/// From the first line of a journal to the last: nothing more precise is known of a run that is over.
pub(crate) fn elapsed(past: &Past) -> Duration {
    let span =
        past.at.first().zip(past.at.last()).and_then(|(first, last)| {
            Some(last.parse::<Timestamp>().ok()?.duration_since(first.parse().ok()?))
        });
    span.and_then(|span| span.try_into().ok()).unwrap_or_default()
}
