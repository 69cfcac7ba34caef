//! What a run leaves behind as JSON (S2 §4, §7). The order of the fields is the order of the keys.

use engine::{Ended, Ran};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where a run can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before the first attempt.
    Preflight,
    /// The answer is no proposal.
    LlmOutputInvalid,
    /// The proposal names a file that it may not write.
    WriteScopeViolation,
    /// The proposal was made for another content of a file.
    StaleContext,
    /// The system did not let it be written.
    WriteFailed,
    /// A command of the global verification failed.
    VerifyFailed,
    /// An acceptance command failed.
    AcceptanceFailed,
    /// Something that lies neither with the proposal nor with the project.
    Exception,
}

impl Stage {
    /// As the artifacts have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::LlmOutputInvalid => "llm_output_invalid",
            Self::WriteScopeViolation => "write_scope_violation",
            Self::StaleContext => "stale_context",
            Self::WriteFailed => "write_failed",
            Self::VerifyFailed => "verify_failed",
            Self::AcceptanceFailed => "acceptance_failed",
            Self::Exception => "exception",
        }
    }
}

/// Why an attempt failed, short enough for a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FailureBrief {
    /// Where.
    pub stage: Stage,
    /// The command that failed.
    pub command: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// At most 2,000 characters of what went wrong.
    pub primary_error_excerpt: String,
    /// What the next attempt has to keep in mind.
    pub constraints_reminder: String,
}

/// What a model proposes to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteProposal {
    /// In one or two sentences.
    pub summary: String,
    /// At least one.
    pub writes: Vec<FileWrite>,
}

/// The whole new content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of the content that the model believes to replace, as it wrote it.
    pub base_sha256: String,
    /// The new content.
    pub content: String,
}

/// What came of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteResult {
    /// Whether all of it was written; otherwise nothing was.
    pub write_ok: bool,
    /// The files that it names, normalized.
    pub touched_files: Vec<String>,
    /// Everything that was wrong with it.
    pub errors: Vec<String>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CmdResult {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its exit code. -1: it could not be started, or changed twice what it may not change; 124: it took too long; -N: signal N ended it (9, too, where it printed too much).
    pub exit_code: i32,
    /// The last 200 lines or 8,000 characters of its standard output.
    pub stdout_trunc: String,
    /// The same of its standard error.
    pub stderr_trunc: String,
    /// The file with all of its standard output, relative to the run folder.
    pub stdout_path: String,
    /// The file with all of its standard error.
    pub stderr_path: String,
    /// By a clock that only goes forward.
    pub duration_seconds: f64,
}

impl CmdResult {
    /// Of a command that ran.
    pub(crate) fn of(ran: &Ran) -> Self {
        Self {
            command: ran.argv.clone(),
            exit_code: if ran.seal_broken { -1 } else { exit_code(ran.ended) },
            stdout_trunc: ran.stdout.text.clone(),
            stderr_trunc: ran.stderr.text.clone(),
            stdout_path: ran.stdout.file.clone(),
            stderr_path: ran.stderr.file.clone(),
            duration_seconds: seconds(ran.elapsed_ms),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a command runs for less than 10⁵ years")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}

fn exit_code(ended: Ended) -> i32 {
    match ended {
        Ended::Exited(code) => code,
        Ended::Signaled(signal) => -signal,
        Ended::TimedOut => 124,
        Ended::TooMuchOutput => -9,
        Ended::NotFound | Ended::NotExecutable | Ended::Interrupted => -1,
    }
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AttemptRecord {
    /// From 1.
    pub attempt_index: u32,
    /// The commit that it started from.
    pub baseline_commit: String,
    /// The file with the proposal, relative to the run folder; empty where there was none.
    pub proposal_path: String,
    /// The files that it names, normalized.
    pub touched_files: Vec<String>,
    /// Whether it was written.
    pub write_ok: bool,
    /// The commands of the global verification, as far as they ran.
    pub verify: Vec<CmdResult>,
    /// The acceptance commands, as far as they ran.
    pub acceptance: Vec<CmdResult>,
    /// Why it failed; null where it passed.
    pub failure_brief: Option<FailureBrief>,
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Verdict {
    /// Verification and acceptance commands succeed with the changes.
    #[serde(rename = "PASS")]
    Pass,
    /// The tree is as it was before.
    #[serde(rename = "FAIL")]
    Fail,
}

impl Verdict {
    /// As it is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
        }
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// Twelve hex digits that depend on the inputs alone.
    #[cfg_attr(test, schemars(regex(pattern = crate::schemas::RUN_ID)))]
    pub run_id: String,
    /// The repository.
    pub repo_path: String,
    /// The order.
    pub work_order_path: String,
    /// SHA-256 over it as canonical JSON.
    #[cfg_attr(test, schemars(regex(pattern = crate::schemas::SHA256)))]
    pub work_order_hash: String,
    /// The commit that was checked out.
    pub repo_baseline_commit: String,
    /// The tree before the first attempt.
    #[cfg_attr(test, schemars(regex(pattern = crate::schemas::SHA256)))]
    pub repo_tree_hash_before: String,
    /// The tree with the changes; null where the run failed.
    #[cfg_attr(test, schemars(regex(pattern = crate::schemas::SHA256)))]
    pub repo_tree_hash_after: Option<String>,
    /// How many attempts there could have been.
    pub max_attempts: u32,
    /// Those that there were.
    pub attempts: Vec<AttemptRecord>,
    /// The end of it.
    pub verdict: Verdict,
    /// `success`, or the stage of the last failure.
    pub ended_stage: String,
    /// UTC, RFC 3339.
    pub started_utc: String,
    /// UTC, RFC 3339.
    pub ended_utc: String,
}

/// The JSON schema of a [`WriteProposal`], in the form in which model services take one.
pub fn proposal_schema() -> serde_json::Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "summary": text,
            "writes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "path": text, "base_sha256": text, "content": text },
                    "required": ["path", "base_sha256", "content"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["summary", "writes"],
        "additionalProperties": false,
    })
}
