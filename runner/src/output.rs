//! What came of a command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Captured;

/// What came of a command: how it ended, and its output as far as it is kept in memory.
#[derive(Debug, Clone)]
pub struct Output {
    /// How the command ended.
    pub ended: Ended,
    /// Both streams, in the order in which they arrived.
    pub captured: Captured,
    /// Each stream by itself, with [`Streams::Apart`](crate::Streams::Apart).
    pub apart: Option<Apart>,
    /// From the start of the command until nothing of it was left.
    pub elapsed: Duration,
    /// How many processes were killed beside the command itself: what it had left behind, or, where it was stopped, whatever it was still
    /// running. bubblewrap's own processes count too, those of a container do not. For whoever wonders what a command leaves behind;
    /// nothing is to be done about them.
    pub survivors_killed: usize,
    /// How many are still there: those of another user, and those that were not gone after two seconds (stuck in a system
    /// call), the command itself included.
    pub survivors_left: usize,
}

impl Output {
    /// Both streams as text, as [`Captured::text`] gives it.
    pub fn text(&self) -> String {
        self.captured.text()
    }

    /// Whether the command ran to its end and said that all is well.
    pub fn success(&self) -> bool {
        self.ended == Ended::Exited(0)
    }
}

/// The two streams of a command by themselves.
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
    /// This signal ended it. In a process namespace (bubblewrap, Docker) a signal reaches us as the
    /// exit code 128 + N only, so there `exit 137` reads as signal 9.
    Signaled(i32),
    /// It ran past its deadline and was killed.
    TimedOut,
    /// It wrote more than [`Limits::output_bytes`](crate::Limits) and was killed.
    TooMuchOutput,
    /// There is no such program; nothing ran.
    NotFound,
    /// The file is there, but is not a program that can be started; nothing ran.
    NotExecutable,
    /// [`Cancel`](crate::Cancel) was set and it was killed.
    Interrupted,
}

impl Ended {
    /// The exit code, for a command that exited.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(_)
            | Self::TimedOut
            | Self::TooMuchOutput
            | Self::NotFound
            | Self::NotExecutable
            | Self::Interrupted => None,
        }
    }

    /// What a shell would make of it: 127 and 126 for what did not start, 128 + N for a signal N (Ctrl-C is 2); and, as `timeout` does
    /// it, 124 for a time-out. Too much output is 125, since no shell knows of that.
    pub fn shell_code(self) -> u8 {
        let code = match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => signal.saturating_add(128),
            Self::TimedOut => 124,
            Self::TooMuchOutput => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Interrupted => 130,
        };
        // No system gives others.
        u8::try_from(code).unwrap_or(125)
    }
}

/// Reads on from "the command …".
impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signaled(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut => f.write_str("ran out of time and was killed"),
            Self::TooMuchOutput => f.write_str("wrote too much output and was killed"),
            Self::NotFound => f.write_str("was not found"),
            Self::NotExecutable => f.write_str("is not a program that can be started"),
            Self::Interrupted => f.write_str("was interrupted"),
        }
    }
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
            Ended::NotFound,
            Ended::NotExecutable,
            Ended::Interrupted,
        ];
        let json = serde_json::to_string(&all).unwrap();
        insta::assert_snapshot!(json, @r#"[{"how":"exited","code":3},{"how":"signaled","code":11},{"how":"timed-out"},{"how":"too-much-output"},{"how":"not-found"},{"how":"not-executable"},{"how":"interrupted"}]"#);
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
