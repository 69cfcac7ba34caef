//! The result of a command.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Backend, Captured, Ended, RefusedHost};

/// The result of a command: how it ended, and the part of its output that is kept in memory.
#[derive(Debug, Clone)]
pub struct Output {
    /// How the command ended.
    pub ended: Ended,
    /// Both streams, in the order in which they arrived.
    pub captured: Captured,
    /// Each stream separately, with [`Streams::Apart`](crate::Streams::Apart).
    pub apart: Option<Apart>,
    /// From the start of the command until all of its processes were gone.
    pub elapsed: Duration,
    /// How many processes were killed in addition to the command itself: what it left behind or, if
    /// it was stopped, what was still running. Includes the sandbox's own processes, but not those
    /// in a container. For information only; the caller does not have to do anything.
    pub survivors_killed: usize,
    /// How many processes are still there: those of another user, and those that were not gone
    /// after two seconds (stuck in a system call), including the command itself.
    pub survivors_left: usize,
    /// The hosts that it looked up or asked the proxy for, and did not reach, in the order of the first time; at most 32.
    /// Only with [`Backend::Namespaces`].
    pub refused: Vec<RefusedHost>,
}

impl Output {
    /// Both streams as text, as [`Captured::text`] gives it.
    pub fn text(&self) -> String {
        self.captured.text()
    }

    /// Whether the command ended normally with exit code 0.
    pub fn success(&self) -> bool {
        self.ended == Ended::Exited(0)
    }
}

/// The two streams of a command, separately.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Apart {
    /// Standard output.
    pub out: Captured,
    /// Standard error.
    pub err: Captured,
}

/// Why a command could not run. None of its processes is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum RunError {
    #[error("cannot read the input file {}", path.display())]
    Input { path: PathBuf, source: io::Error },
    /// The working folder does not exist.
    #[error("cannot work in {}", path.display())]
    Cwd { path: PathBuf, source: io::Error },
    #[error("cannot start {}", program.display())]
    Start {
        /// The program, or the launcher of the sandbox.
        program: PathBuf,
        source: io::Error,
    },
    #[error("cannot follow the command")]
    Wait { source: io::Error },
    /// The system does not allow a view of this tree; the command did not run. Without the view it may.
    #[error("cannot make an overlay of the tree: {message}")]
    View {
        /// The message, in one line.
        message: String,
    },
    /// The sandbox could not be set up; the command did not run.
    #[error("the {backend} sandbox could not be set up: {message}")]
    Sandbox {
        backend: Backend,
        /// The message, in one line.
        message: String,
    },
}

impl RunError {
    pub(crate) fn wait(source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::Wait { source }
    }
}
