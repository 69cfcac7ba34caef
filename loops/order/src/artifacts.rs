//! The JSON files of a run (S2 §4, §7). The fields are in the order of the keys.

use code_commit_parser::proposal::{self, Change};
use code_commit_prompt::edits::Form;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where a run can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before the first attempt.
    Preflight,
    /// The reply is not a proposal.
    LlmOutputInvalid,
    /// The proposal names a file that it may not write.
    WriteScopeViolation,
    /// The proposal was made for another version of a file.
    StaleContext,
    /// The system refused to write it.
    WriteFailed,
    /// A command of the global verification failed.
    VerifyFailed,
    /// An acceptance command failed.
    AcceptanceFailed,
    /// An error that neither the proposal nor the project caused.
    Exception,
}

impl Stage {
    /// The stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// Its name in the artifacts.
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
    /// The stage that failed.
    pub stage: Stage,
    /// The command that failed.
    pub command: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The error, shortened to at most 2,000 characters.
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

/// The change of one file: its whole new content, or edits of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("oneOf" = [{ "required": ["content"] }, { "required": ["edits"] }])))]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of the content that the model believes to replace, as it wrote it.
    pub base_sha256: String,
    /// The whole new content.
    #[cfg_attr(test, schemars(with = "String"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// At least one edit, in place of the content.
    #[cfg_attr(test, schemars(with = "Vec<FileEdit>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<FileEdit>>,
}

/// Lines of a file that are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// Whole lines that occur in the file exactly once.
    pub search: String,
    /// The lines that take their place.
    pub replace: String,
}

impl From<proposal::FileWrite> for FileWrite {
    fn from(write: proposal::FileWrite) -> Self {
        let edit = |edit: proposal::Edit| FileEdit {
            search: edit.search,
            replace: edit.replace,
        };
        let (content, edits) = match write.change {
            Change::Content(content) => (Some(content), None),
            Change::Edits(edits) => (None, Some(edits.into_iter().map(edit).collect())),
        };
        Self {
            path: write.path,
            base_sha256: write.base_sha256,
            content,
            edits,
        }
    }
}

/// The result of a proposal.
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

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CmdResult {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its exit code; -1 if it could not be started, or changed files that it may not change;
    /// 124 if it took too long; -N if signal N ended it (9 also if it printed too much).
    pub exit_code: i32,
    /// The last 200 lines or 8,000 characters of its standard output.
    pub stdout_trunc: String,
    /// Likewise for its standard error.
    pub stderr_trunc: String,
    /// The file with its complete standard output, relative to the run folder.
    pub stdout_path: String,
    /// The file with its complete standard error.
    pub stderr_path: String,
    /// Measured with a monotonic clock.
    pub duration_seconds: f64,
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
    /// The file with the proposal, relative to the run folder; empty if there is none.
    pub proposal_path: String,
    /// The files that it names, normalized.
    pub touched_files: Vec<String>,
    /// Whether it was written.
    pub write_ok: bool,
    /// The commands of the global verification that ran.
    pub verify: Vec<CmdResult>,
    /// The acceptance commands that ran.
    pub acceptance: Vec<CmdResult>,
    /// Why it failed; null if it passed.
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
    /// Its name in the summary.
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
    #[cfg_attr(test, schemars(regex(pattern = crate::tests::schemas::RUN_ID)))]
    pub run_id: String,
    /// The path of the repository.
    pub repo_path: String,
    /// The path of the order.
    pub work_order_path: String,
    /// SHA-256 of the order as canonical JSON.
    #[cfg_attr(test, schemars(regex(pattern = crate::tests::schemas::SHA256)))]
    pub work_order_hash: String,
    /// The commit that was checked out.
    pub repo_baseline_commit: String,
    /// The hash of the tree before the first attempt.
    #[cfg_attr(test, schemars(regex(pattern = crate::tests::schemas::SHA256)))]
    pub repo_tree_hash_before: String,
    /// The hash of the tree with the changes; null if the run failed.
    #[cfg_attr(test, schemars(regex(pattern = crate::tests::schemas::SHA256)))]
    pub repo_tree_hash_after: Option<String>,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The attempts that were made.
    pub attempts: Vec<AttemptRecord>,
    /// The verdict.
    pub verdict: Verdict,
    /// `success`, or the stage of the last failure.
    pub ended_stage: String,
    /// UTC, RFC 3339.
    pub started_utc: String,
    /// UTC, RFC 3339.
    pub ended_utc: String,
}

/// The JSON schema of a [`WriteProposal`], in the form in which model services take one: in their strict modes
/// every key of an object is required, so that a file with edits is an object of its own.
pub fn proposal_schema(form: Form) -> Value {
    let text = json!({ "type": "string" });
    let edit = json!({
        "type": "object",
        "properties": { "search": text, "replace": text },
        "required": ["search", "replace"],
        "additionalProperties": false,
    });
    let write = |key: &str, value: &Value| {
        json!({
            "type": "object",
            "properties": { "path": text, "base_sha256": text, key: value },
            "required": ["path", "base_sha256", key],
            "additionalProperties": false,
        })
    };
    let whole = write("content", &text);
    let item = match form {
        Form::Files => whole,
        Form::Edits => {
            json!({ "anyOf": [whole, write("edits", &json!({ "type": "array", "items": edit }))] })
        }
    };
    json!({
        "type": "object",
        "properties": {
            "summary": text,
            "writes": {
                "type": "array",
                "items": item,
            },
        },
        "required": ["summary", "writes"],
        "additionalProperties": false,
    })
}
