//! The plan of an order's run in its folder: written when the run begins, trusted later only if unchanged.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::anyhow;
use code_commit_changes::BACKUP;
use code_commit_engine::{Kept, Line, Outcome, Stored};
use code_commit_logging::RunFolder;
use code_commit_loop_order::{Finished, Inputs, RunSummary, SUMMARY, Stage, WorkOrder};
use code_commit_perform::{BASELINE, Past};
use code_commit_prompt::edits::Form;
use code_commit_prompt::order::{Allowed, Context};

use crate::exit::Exit;
use crate::life::Ending;
use crate::order::plan::{OrderPlan, Shown, ShownHash, ShownText};
use crate::order::preflight::Read;
use crate::records;
use crate::registry::{Known, RUN_JSON};

/// Name of the order's file in the run folder.
const WORK_ORDER: &str = "work_order.json";
/// Name of the file with what the first prompt shows of the tree.
const INPUTS: &str = "inputs.json";

/// Stores plan, order and inputs in the run folder; gives the stored plan, for the list of runs.
pub(super) fn store(
    run: &RunFolder,
    plan: &OrderPlan,
    read: &Read,
    inputs: &Inputs,
) -> anyhow::Result<Stored> {
    run.store(WORK_ORDER, &String::from_utf8_lossy(&read.bytes))?;
    let inputs = run.store_json(INPUTS, &Shown::of(inputs))?;
    Ok(run.store_json(
        RUN_JSON,
        &OrderPlan {
            inputs,
            ..plan.clone()
        },
    )?)
}

/// The files that a run stores before its first step.
const BEGINNING: [&str; 3] = [WORK_ORDER, INPUTS, RUN_JSON];

/// Whether a run was apparently killed here before its first step: no other files exist.
pub(crate) fn is_beginning(run: &Path) -> io::Result<bool> {
    for entry in code_commit_dir::list(run)? {
        let name = entry?.file_name();
        if name == BACKUP && holds_only_the_baseline(&run.join(BACKUP))? {
            continue;
        }
        if !BEGINNING.iter().any(|own| name == *own) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds_only_the_baseline(backup: &Path) -> io::Result<bool> {
    for entry in code_commit_dir::list(backup)? {
        if entry?.file_name() != BASELINE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes such a beginning; gives whether there was one.
pub(crate) fn discard_beginning(run: &Path) -> io::Result<bool> {
    if !is_beginning(run)? {
        return Ok(false);
    }
    for name in BEGINNING.into_iter().chain([BACKUP]) {
        code_commit_dir::remove(&run.join(name))?;
    }
    fs::remove_dir(run).map(|()| true)
}

/// A run of an order that was made here.
pub struct Recorded {
    /// Where it is.
    pub folder: RunFolder,
    pub(crate) plan: OrderPlan,
    /// The order at that time.
    pub read: Read,
}

/// The summary of a run that is over. `None` if the file is not the one that the journal names: whoever can write
/// into the folder could turn a FAIL into a PASS.
pub fn summary(folder: &RunFolder, past: &Past) -> Option<RunSummary> {
    past.outcome().and_then(|_| summarized(folder, past))
}

/// The summary of a run that may still have to commit.
fn summarized(folder: &RunFolder, past: &Past) -> Option<RunSummary> {
    let kept = |line| {
        if let Line::Kept(Kept { stored }) = line {
            Some(stored)
        } else {
            None
        }
    };
    let stored = past
        .holding()
        .filter_map(kept)
        .filter(|stored| stored.file == SUMMARY)
        .last()?;
    serde_json::from_str(&folder.recall(&stored).ok()?).ok()
}

impl Ending for Finished {
    fn recorded(folder: &RunFolder, past: &Past) -> Option<Self> {
        let (outcome, summary) = (past.outcome()?.clone(), summarized(folder, past)?);
        let failed_stage = Stage::named(&summary.ended_stage);
        Some(Self {
            outcome,
            summary,
            failed_stage,
            not_committed: None,
        })
    }

    fn exit(&self) -> Exit {
        match (self.failed_stage, &self.outcome) {
            (None, _) => Exit::Done,
            (Some(_), Outcome::ModelUnavailable { .. }) => Exit::ModelUnavailable,
            (Some(Stage::Preflight), _) => Exit::Refused,
            (Some(Stage::Exception), _) => Exit::Fault,
            (
                Some(
                    Stage::LlmOutputInvalid
                    | Stage::WriteScopeViolation
                    | Stage::StaleContext
                    | Stage::WriteFailed
                    | Stage::VerifyFailed
                    | Stage::AcceptanceFailed,
                ),
                _,
            ) => Exit::Failed,
        }
    }
}

impl Recorded {
    /// Reads it. Refuses a plan or an order that was changed since the run began.
    pub fn load(known: &Known, folder: RunFolder) -> anyhow::Result<Self> {
        let name = records::name(folder.path());
        let plan: OrderPlan = known.plan(&folder)?;
        let bytes = folder.read(WORK_ORDER)?.into_bytes();
        let order = WorkOrder::parse(&bytes)
            .ok()
            .filter(|order| order.hash == plan.work_order_hash);
        let order = order.ok_or_else(|| {
            anyhow!("{WORK_ORDER} of {name} is not what it was when the run began")
        })?;
        let read = Read {
            path: folder.path().join(WORK_ORDER),
            order,
            bytes,
        };
        Ok(Self { folder, plan, read })
    }
}

/// The loop's inputs when the run began, for a repository that is now in `root`. Where the summary of the run holds the
/// two paths (S2 §4.6), they are those: nothing else of the record names a place.
pub(super) fn inputs(
    (folder, past): (&RunFolder, &Past),
    plan: &OrderPlan,
    read: &Read,
    root: &Path,
) -> anyhow::Result<Inputs> {
    let Shown {
        allowed,
        context,
        edits,
    } = serde_json::from_str(&folder.recall(&plan.inputs)?)?;
    let mut inputs = Inputs {
        order: read.order.clone(),
        work_order_path: read.path.display().to_string(),
        repo_path: root.display().to_string(),
        baseline_commit: plan.repo_baseline_commit.clone(),
        tree_hash_before: plan.repo_tree_hash_before.clone(),
        run_id: plan.run_id(),
        max_attempts: plan.terms.max_attempts,
        commit: plan.terms.commit,
        allowed: allowed
            .into_iter()
            .map(|ShownHash { path, sha256 }| Allowed { path, sha256 })
            .collect(),
        context: context
            .into_iter()
            .map(
                |ShownText {
                     path,
                     text,
                     left_out_bytes,
                 }| Context {
                    path,
                    text,
                    left_out_bytes,
                },
            )
            .collect(),
        form: if edits { Form::Edits } else { Form::Files },
    };
    if let Some(summary) = summarized(folder, past) {
        (inputs.repo_path, inputs.work_order_path) = (summary.repo_path, summary.work_order_path);
    }
    Ok(inputs)
}
