//! What an agent does while it runs.

use serde::{Deserialize, Serialize};

/// One thing that happened, in the order in which the CLI said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// The CLI is up.
    System {
        /// The model that it says it uses.
        model: Option<String>,
        /// The session's name, for [`Session::Resume`](crate::Session).
        session: Option<String>,
    },
    /// Words of the model: a whole message or a piece of one. Pieces follow each other without a gap.
    Text(String),
    /// The model uses a tool.
    ToolCall {
        /// Pairs it with its result.
        id: String,
        /// The tool, as the CLI names it.
        name: String,
        /// The argument that says most, in one short line: a path, a command, a pattern.
        argument: Option<String>,
    },
    /// The tool is done.
    ToolResult {
        /// The call.
        id: String,
        /// Whether the CLI says that it worked.
        ok: bool,
        /// What it gave back or what went wrong, where the CLI says so: the first line, shortened.
        message: Option<String>,
    },
    /// A call of the model failed and the CLI tries again.
    Retry {
        /// Which try failed, from 1.
        attempt: Option<u64>,
        /// How long it waits first.
        wait_ms: Option<u64>,
        /// Why.
        reason: String,
    },
    /// The CLI is alive; nothing to show.
    Ping,
    /// A warning of the CLI, or output that is no event.
    Note(String),
}
