//! How a command ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "how", content = "code")]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it. In Docker we see a signal only as exit
    /// code 128 + N, so there signal 9 shows as `Exited(137)`.
    Signaled(i32),
    /// It exceeded its deadline and was killed.
    TimedOut,
    /// It wrote more than it may and was killed.
    TooMuchOutput,
    /// It used more memory than it may and was killed.
    TooMuchMemory,
    /// It had more processes than it may and was killed.
    TooManyProcesses,
    /// The program does not exist; nothing ran.
    NotFound,
    /// The file exists, but is not an executable program; nothing ran.
    NotExecutable,
    /// Its supervisor stopped it.
    Interrupted,
}

impl Ended {
    /// The exit code, if the command exited normally.
    pub fn exit_code(self) -> Option<i32> {
        if let Self::Exited(code) = self {
            Some(code)
        } else {
            None
        }
    }

    /// Whether anything ran.
    pub fn has_started(self) -> bool {
        !matches!(self, Self::NotFound | Self::NotExecutable)
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
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
