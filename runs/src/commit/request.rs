//! What a run of a commit loop is asked for.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
pub use code_commit_loop_commit::OnFailure;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_settings::Options;

use crate::commit::commits::Message;
use crate::exit::Failure;
use crate::preflight::Missing;

/// What a run is asked for, besides its settings.
#[derive(Debug, Default)]
pub struct Request {
    /// Settings that override those of all files.
    pub layer: Options,
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

/// Standard input may be endless.
const MOST_BYTES: u64 = 1 << 20;

/// Where the query of a run comes from.
#[derive(Debug, Default)]
pub enum Query {
    /// `agent-config/query.txt`, or where S0 has it.
    #[default]
    File,
    /// Given with `-m`; the file is neither read nor written.
    Given {
        /// The flag, or standard input.
        by: &'static str,
        /// The query.
        text: Vec<u8>,
    },
}

impl Query {
    /// The value of `-m`; for `-`, what standard input holds.
    pub fn given(message: &str) -> Result<Self, Failure> {
        if message != "-" {
            return Ok(Self::Given {
                by: "-m",
                text: message.into(),
            });
        }
        let mut text = Vec::new();
        std::io::stdin()
            .lock()
            .take(MOST_BYTES + 1)
            .read_to_end(&mut text)
            .context("cannot read standard input")?;
        Ok(Self::Given {
            by: "standard input",
            text,
        })
    }

    /// The text of a given one; `None` if a file holds it.
    pub(crate) fn text(&self) -> Option<Result<String, Missing>> {
        let Self::Given { by, text } = self else {
            return None;
        };
        let refuse = |what: &str| Missing::new(format!("the query from {by} {what}"), HINT);
        if text.len() as u64 > MOST_BYTES {
            return Some(Err(refuse("has more than 1 MiB")));
        }
        let text = std::str::from_utf8(text).map_err(|_| refuse("is not UTF-8"));
        let text = text.and_then(|text| {
            if text.trim().is_empty() {
                Err(refuse("is empty"))
            } else {
                Ok(text.to_owned())
            }
        });
        Some(text)
    }

    /// What the record names as its origin; a file is named by its path.
    pub(super) fn origin(&self, file: String) -> String {
        match self {
            Self::File => file,
            Self::Given { by, .. } => (*by).to_owned(),
        }
    }
}

const HINT: &str = "describe the change: code-commit -m \"…\"";
