//! The messages between `abl-cmd` and the desk: one JSON object each way over a socket.

use std::collections::BTreeMap;
use std::path::PathBuf;

use code_commit_runner::{Confinement, Env};
use code_commit_settings::phase::Entry;
use serde::{Deserialize, Serialize};

/// The name of the client program that roles call.
pub const CLIENT: &str = "abl-cmd";
/// The program name that starts the desk.
pub const DESK: &str = "abl-desk";
/// What the desk prints once it serves.
pub(crate) const READY: &str = "ready";
/// What it prints before that if the commands see the source read-only instead of in a view.
pub(crate) const WITHOUT_VIEW: &str = "without-view";
/// How its line begins if it cannot serve.
pub(crate) const FAILED: &str = "failed: ";
/// The variable that tells `abl-cmd` where the desk is.
pub const SOCKET: &str = "CODE_COMMIT_DESK";

/// A role's request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// The name of a command and its arguments.
    pub argv: Vec<String>,
}

/// The desk's answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The exit code for `abl-cmd`.
    pub code: u8,
    /// What it prints.
    pub output: String,
}

/// The desk's configuration, passed at its start.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Desk {
    pub socket: PathBuf,
    pub commands: BTreeMap<String, Entry>,
    pub specs: BTreeMap<u32, String>,
    /// The commands' working folder.
    pub cwd: PathBuf,
    /// The commands' environment.
    pub env: BTreeMap<String, String>,
    /// Time limit of one command.
    pub timeout_seconds: u64,
    /// The sandbox that it has to make for itself and its commands.
    #[serde(default)]
    pub confinement: Option<Confinement>,
    /// Where this desk is: commands run inside of the sandbox.
    #[serde(default)]
    pub side: Side,
}

/// On which side of the commands' sandbox a desk is.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    /// There is none.
    #[default]
    Open,
    /// Outside: it lists commands, prints specs, and has the desk inside run commands, over this socket.
    Outside(PathBuf),
    /// Inside: it serves until it is killed.
    Inside,
}

impl Desk {
    /// The commands' environment.
    pub(crate) fn env(&self) -> Env {
        self.env
            .iter()
            .fold(Env::default(), |mut env, (name, value)| {
                env.set(name, value);
                env
            })
    }
}
