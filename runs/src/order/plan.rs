//! What a run of an order is to do, as its folder holds it: written when the run begins, trusted later only if unchanged.

use std::path::Path;

use anyhow::anyhow;
use code_commit_engine::{Event, Kept, Outcome, Stored};
use code_commit_logging::RunFolder;
use code_commit_loop_order::{
    Finished, Inputs, RunSummary, SUMMARY, Stage, WorkOrder, config_hash, run_id,
};
use code_commit_perform::Past;
use code_commit_prompt::edits::Form;
use code_commit_prompt::order::{Allowed, Context};
use code_commit_runner::Backend;
use code_commit_settings::Settings;
use serde::{Deserialize, Serialize};

use crate::driver::Ending;
use crate::exit::Exit;
use crate::order::preflight::Read;
use crate::records;
use crate::registry::{Known, RUN_JSON};
use crate::trusted::Base;

/// Name of the order's file in the run folder.
const WORK_ORDER: &str = "work_order.json";
/// Name of the file with what the first prompt shows of the tree.
const INPUTS: &str = "inputs.json";

/// The flags that a run depends on and that are no settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The model as it was named; so it counts in the configuration's hash.
    pub llm_model: String,
    /// See there.
    pub llm_temperature: f64,
    /// How often the model may try.
    pub max_attempts: u32,
    /// How long each command may take.
    pub timeout_seconds: u64,
    /// Whether the changes of an order that passes are committed.
    pub commit: bool,
}

impl Terms {
    /// See S2 §5.
    pub fn hash(&self) -> String {
        config_hash(
            &self.llm_model,
            self.llm_temperature,
            self.max_attempts,
            self.timeout_seconds,
        )
    }
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderPlan {
    /// Which loop.
    #[serde(rename = "loop")]
    pub kind: String,
    /// The format of the record.
    pub record_format: u32,
    /// The version that began the run.
    pub version: String,
    /// When the run began, UTC, RFC 3339.
    pub begun_utc: String,
    /// SHA-256 over it as canonical JSON.
    pub work_order_hash: String,
    /// The commit that was checked out.
    pub repo_baseline_commit: String,
    /// The branch that was checked out; null for a detached head.
    pub branch: Option<String>,
    /// The tree before the first attempt.
    pub repo_tree_hash_before: String,
    /// SHA-256 over the terms that count in the run's name.
    pub config_hash: String,
    /// The flags.
    pub terms: Terms,
    /// Everything that the flags and the configuration say, each with its origin.
    pub settings: Settings,
    /// The supervisor's own name for this work; null if it gave none.
    pub key: Option<String>,
    /// The sandbox that is in force around the commands.
    pub sandbox: Backend,
    /// The file with what the prompts show of the tree.
    pub inputs: Stored,
    /// What was trusted: not changed by what the commands did.
    pub trusted: Base,
}

/// What the prompts show of the tree, as `inputs.json` has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    /// The files that may be written.
    pub allowed: Vec<Allowed>,
    /// The files whose content is shown.
    pub context: Vec<Context>,
    /// Whether the prompts teach edits, too. The setting may change before the run is resumed; its prompts
    /// must not.
    pub edits: bool,
}

impl OrderPlan {
    /// The name of the run (S2 §5).
    pub(super) fn run_id(&self) -> String {
        run_id(
            &self.work_order_hash,
            &self.repo_tree_hash_before,
            &self.config_hash,
        )
    }

    /// The last line of its commit's message, by which the commit is found again.
    pub(super) fn last_line(&self) -> String {
        format!("Run: {}", self.run_id())
    }

    /// The loop's inputs, for the repository in `root`.
    pub(super) fn inputs(&self, read: &Read, root: &Path, shown: Shown) -> Inputs {
        Inputs {
            order: read.order.clone(),
            work_order_path: read.path.display().to_string(),
            repo_path: root.display().to_string(),
            baseline_commit: self.repo_baseline_commit.clone(),
            tree_hash_before: self.repo_tree_hash_before.clone(),
            run_id: self.run_id(),
            max_attempts: self.terms.max_attempts,
            commit: self.terms.commit,
            allowed: shown.allowed,
            context: shown.context,
            form: if shown.edits {
                Form::Edits
            } else {
                Form::Files
            },
        }
    }

    /// The loop's inputs when the run began, for a repository that is now in `root`. Where the summary of the run holds
    /// the two paths (S2 §4.6), they are those: nothing else of the record names a place.
    pub(super) fn recorded_inputs(
        &self,
        read: &Read,
        root: &Path,
        folder: &RunFolder,
        past: &Past,
    ) -> anyhow::Result<Inputs> {
        let shown = serde_json::from_str(&folder.recall(&self.inputs)?)?;
        let mut inputs = self.inputs(read, root, shown);
        if let Some(summary) = summarized(folder, past) {
            (inputs.repo_path, inputs.work_order_path) =
                (summary.repo_path, summary.work_order_path);
        }
        Ok(inputs)
    }

    /// Stores plan, order and inputs in the run folder; gives the stored plan, for the list of runs.
    pub(super) fn store(
        &self,
        run: &RunFolder,
        read: &Read,
        inputs: &Inputs,
    ) -> anyhow::Result<Stored> {
        run.store(WORK_ORDER, &String::from_utf8_lossy(&read.bytes))?;
        let shown = Shown {
            allowed: inputs.allowed.clone(),
            context: inputs.context.clone(),
            edits: inputs.form == Form::Edits,
        };
        let inputs = run.store_json(INPUTS, &shown)?;
        Ok(run.store_json(
            RUN_JSON,
            &Self {
                inputs,
                ..self.clone()
            },
        )?)
    }
}

/// The plan of a recorded run, and its order. Refuses those that were changed since the run began.
pub(super) fn load(known: &Known, folder: &RunFolder) -> anyhow::Result<(OrderPlan, Read)> {
    let plan: OrderPlan = known.plan(folder)?;
    let bytes = folder.read(WORK_ORDER)?.into_bytes();
    let order = WorkOrder::parse(&bytes)
        .ok()
        .filter(|order| order.hash == plan.work_order_hash)
        .ok_or_else(|| {
            let name = records::name(folder.path());
            anyhow!("{WORK_ORDER} of {name} has changed since the run began")
        })?;
    let path = folder.path().join(WORK_ORDER);
    Ok((plan, Read { path, order, bytes }))
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

/// The summary of a run that is over. `None` if the file is not the one that the journal names: whoever can write
/// into the folder could turn a FAIL into a PASS.
pub fn summary(folder: &RunFolder, past: &Past) -> Option<RunSummary> {
    past.outcome().and_then(|_| summarized(folder, past))
}

/// The summary of a run that may still have to commit.
fn summarized(folder: &RunFolder, past: &Past) -> Option<RunSummary> {
    let kept = |line| {
        if let Event::Kept(Kept { stored }) = line {
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
