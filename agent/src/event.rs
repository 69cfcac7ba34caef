//! What an agent does while it runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event, in the order in which the CLI reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// The CLI has started.
    System {
        /// The model that it reports.
        model: Option<String>,
        /// The session's name, for [`Session::Resume`](crate::Session).
        session: Option<String>,
    },
    /// Text from the model: a whole message or a part of one. Parts follow each other without a
    /// gap.
    Text(String),
    /// The model uses a tool.
    ToolCall {
        /// Pairs it with its result.
        id: String,
        /// The tool, as the CLI names it.
        name: String,
        /// The most informative argument, in one short line: a path, a command, a pattern.
        argument: Option<String>,
        /// Its arguments as the CLI reports them; not shown.
        #[serde(skip)]
        input: Value,
    },
    /// The tool has finished.
    ToolResult {
        /// The call.
        id: String,
        /// Whether the CLI reports success.
        ok: bool,
        /// Its result or error, if the CLI reports it: the first line, shortened.
        message: Option<String>,
        /// The whole of it, empty if the CLI does not report it; not shown.
        #[serde(skip)]
        output: String,
    },
    /// A model call failed, and the CLI retries.
    Retry {
        /// The number of the failed attempt, from 1.
        attempt: Option<u64>,
        /// How long it waits first.
        wait_ms: Option<u64>,
        /// Why.
        reason: String,
    },
    /// The CLI is alive; there is nothing to show.
    Ping,
    /// A warning from the CLI, or output that is not an event.
    Note(String),
}
