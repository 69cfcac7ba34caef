//! What a run of a commit loop is asked for.

use std::path::Path;

use anyhow::anyhow;
pub use code_commit_loop_commit::OnFailure;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_settings::Layer;

use crate::commit::commits::Message;
use crate::commit::query::Query;
use crate::exit::Failure;
use crate::preflight::Missing;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// S1.
    Commit,
    /// S0.
    Implement,
}

/// What a run is asked for, besides its settings.
#[derive(Debug, Default)]
pub struct Request {
    /// Settings that override those of all files.
    pub layer: Layer,
    /// Where the query comes from.
    pub query: Query,
    /// Refuse to start if there are uncommitted changes.
    pub require_clean: bool,
    /// What to do with the changes if the run fails.
    pub on_failure: OnFailure,
    /// The supervisor's name for this work: a finished run is answered from the record.
    pub key: Option<String>,
    /// Commit what the run changed, once it has passed.
    pub commit: Option<Message>,
    /// The finished run that this one goes on from.
    pub parent: Option<String>,
    /// Begin a new run, whatever is recorded.
    pub new: bool,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
}

/// S0 keeps its inputs at the root, but `agent-config/` takes precedence.
pub fn beside_or_above(root: &Path, path: &str) -> String {
    let above = path
        .strip_prefix(AGENT_CONFIG)
        .map_or(path, |rest| rest.trim_start_matches('/'));
    let found = if !root.join(path).exists() && root.join(above).exists() {
        above
    } else {
        path
    };
    found.to_owned()
}

/// All that is missing, in one refusal.
pub(crate) fn refused(missing: Vec<Missing>) -> Failure {
    let what: Vec<String> = missing.iter().map(|m| m.what.clone()).collect();
    let hints: Vec<String> = missing.into_iter().map(|m| m.hint).collect();
    Failure::refused(
        anyhow!("{}", what.join("\n       ")),
        hints.join("\n       "),
    )
}
