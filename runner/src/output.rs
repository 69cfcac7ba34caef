//! The result of a command.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Captured, Rung};

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

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how", content = "code")]
#[non_exhaustive]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it. In bubblewrap and Docker we see a signal only as exit
    /// code 128 + N, so there signal 9 shows as `Exited(137)`.
    Signaled(i32),
    /// It exceeded its deadline and was killed.
    TimedOut,
    /// It wrote more than [`Limits::output_bytes`](crate::Limits) and was killed.
    TooMuchOutput,
    /// It used more than [`Resources::memory_bytes`](crate::Resources) and was killed.
    TooMuchMemory,
    /// It had more than [`Resources::processes`](crate::Resources) and was killed.
    TooManyProcesses,
    /// The program does not exist; nothing ran.
    NotFound,
    /// The file exists, but is not an executable program; nothing ran.
    NotExecutable,
    /// [`Cancel`](crate::Cancel) was set, and the command was killed.
    Interrupted,
}

impl Ended {
    /// The exit code, if the command exited normally.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(_)
            | Self::TimedOut
            | Self::TooMuchOutput
            | Self::TooMuchMemory
            | Self::TooManyProcesses
            | Self::NotFound
            | Self::NotExecutable
            | Self::Interrupted => None,
        }
    }

    /// The exit code that a shell would report: 127 and 126 if the command did not start, 128 + N
    /// for signal N (Ctrl-C is 2); like `timeout`, 124 after a timeout. Too much of anything
    /// is 125, because shells have no code for it.
    pub fn shell_code(self) -> u8 {
        let code = match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => signal.saturating_add(128),
            Self::TimedOut => 124,
            Self::TooMuchOutput | Self::TooMuchMemory | Self::TooManyProcesses => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Interrupted => 130,
        };
        // Systems do not return other codes.
        u8::try_from(code).unwrap_or(125)
    }
}

/// Continues a sentence that begins with "the command".
impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signaled(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut => f.write_str("ran out of time and was killed"),
            Self::TooMuchOutput => f.write_str("wrote too much output and was killed"),
            Self::TooMuchMemory => f.write_str("used too much memory and was killed"),
            Self::TooManyProcesses => f.write_str("started too many processes and was killed"),
            Self::NotFound => f.write_str("was not found"),
            Self::NotExecutable => f.write_str("is not a program that can be started"),
            Self::Interrupted => f.write_str("was interrupted"),
        }
    }
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
    #[error("no view of the tree could be made: {message}")]
    View {
        /// The message, in one line.
        message: String,
    },
    /// The sandbox could not be set up; the command did not run.
    #[error("the {rung} sandbox could not be set up: {message}")]
    Sandbox {
        rung: Rung,
        /// The message, in one line.
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_has_its_own_json_and_comes_back_from_it() {
        let all = [
            Ended::Exited(3),
            Ended::Signaled(11),
            Ended::TimedOut,
            Ended::TooMuchOutput,
            Ended::TooMuchMemory,
            Ended::TooManyProcesses,
            Ended::NotFound,
            Ended::NotExecutable,
            Ended::Interrupted,
        ];
        let json = serde_json::to_string(&all).unwrap();
        insta::assert_snapshot!(json, @r#"[{"how":"exited","code":3},{"how":"signaled","code":11},{"how":"timed-out"},{"how":"too-much-output"},{"how":"too-much-memory"},{"how":"too-many-processes"},{"how":"not-found"},{"how":"not-executable"},{"how":"interrupted"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Ended>>(&json).unwrap(), all);
    }

    #[test]
    fn each_ending_has_the_code_that_a_shell_would_give_it() {
        let table = [
            (Ended::Exited(0), 0),
            (Ended::Exited(255), 255),
            (Ended::Signaled(9), 137),
            (Ended::TimedOut, 124),
            (Ended::TooMuchOutput, 125),
            (Ended::NotExecutable, 126),
            (Ended::NotFound, 127),
            (Ended::Interrupted, 130),
            (Ended::Exited(-1), 125),
            (Ended::Signaled(i32::MAX), 125),
        ];
        for (ended, code) in table {
            assert_eq!(ended.shell_code(), code, "{ended:?}");
        }
    }
}
