//! What `abl-cmd` and the desk say to each other: one JSON object each way over a socket.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use settings::phase::Entry;

/// The name that a role calls it by.
pub const CLIENT: &str = "abl-cmd";
/// The variable that tells `abl-cmd` where the desk is.
pub const SOCKET: &str = "CODE_COMMIT_DESK";

/// A role asks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// The name of a command and its arguments.
    pub argv: Vec<String>,
}

/// The desk answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The exit code for `abl-cmd`.
    pub code: u8,
    /// What it prints.
    pub output: String,
}

/// Everything that a desk knows; what it is started with.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Desk {
    /// Where it listens.
    pub socket: PathBuf,
    /// What it runs.
    pub commands: BTreeMap<String, Entry>,
    /// The specs by phase.
    pub specs: BTreeMap<u32, String>,
    /// Where commands run.
    pub cwd: PathBuf,
    /// What they find in their environment.
    pub env: BTreeMap<String, String>,
    /// How long one may take.
    pub timeout_seconds: u64,
}
