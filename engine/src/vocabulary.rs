//! Plain data used by several answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", content = "code", rename_all = "kebab-case")]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// It ran past its deadline and was killed.
    TimedOut,
    /// It printed more than it may and was killed.
    TooMuchOutput,
    /// It used more memory than it may and was killed.
    TooMuchMemory,
    /// It had more processes than it may and was killed.
    TooManyProcesses,
    /// The program does not exist; nothing ran.
    NotFound,
    /// The file exists but cannot be started; nothing ran.
    NotExecutable,
    /// The supervisor stopped it.
    Interrupted,
}

impl Ended {
    /// The exit code of a command that exited.
    pub fn exit_code(self) -> Option<i32> {
        if let Self::Exited(code) = self { Some(code) } else { None }
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

/// What happened to one file of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was created, or its content replaced.
    Write,
    /// It was removed.
    Delete,
    /// Nothing: it was already as the reply wants it.
    None,
}

/// One file of a reply, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What happened.
    pub action: Action,
    /// SHA-256 of the old content in hex; `None` if there was no file.
    pub before_sha256: Option<String>,
    /// SHA-256 of the new content in hex; `None` if there is no file now.
    pub after_sha256: Option<String>,
    /// Whether the file is new.
    pub created: bool,
    /// Permission bits of the old file.
    pub before_mode: Option<u32>,
    /// Permission bits of the new file.
    pub after_mode: Option<u32>,
}

impl Changed {
    /// `A` added, `M` modified, `D` deleted, as in git; `None` if it is as it was.
    pub fn letter(&self) -> Option<char> {
        match self.action {
            Action::Write if self.created => Some('A'),
            Action::Write => Some('M'),
            Action::Delete => Some('D'),
            Action::None => None,
        }
    }
}

/// Something wrong with a reply, or a warning for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable kebab-case code.
    pub code: String,
    /// The file that it is about, as the reply names it, with unprintable characters escaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of the reply, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
}

impl Problem {
    /// A problem that is not about a file.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), path: None, line: None, message: message.into() }
    }
}
