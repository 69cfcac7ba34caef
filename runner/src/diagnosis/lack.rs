//! What a machine can lack, and what is asked about it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::Rung;

/// A command that ended with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed<'o> {
    /// Its exit code.
    pub(super) exit_code: i32,
    /// What it printed: all of it, or the beginning and the end.
    pub(super) output: &'o str,
}

/// What a machine can lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program, or its interpreter.
    Tool,
    /// A library that the project declares.
    Module,
    /// A network, for a download.
    Network,
    /// A place for a tool's cache.
    Cache,
    /// The right to write.
    Permission,
    /// What the sandbox hides.
    Hidden,
}

/// Why a command could not do its work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Which kind.
    pub kind: Kind,
    /// What is missing: a sentence without a full stop.
    pub what: String,
    /// What to do about it: the flag, the line of configuration or the command.
    pub help: String,
}

impl Kind {
    /// Its code in the reference.
    pub fn code(self) -> &'static str {
        match self {
            Self::Tool => "tool-missing",
            Self::Module => "module-missing",
            Self::Network => "no-network",
            Self::Cache => "cache-refused",
            Self::Permission => "write-refused",
            Self::Hidden => "hidden",
        }
    }
}

impl Lack {
    pub(super) fn new(kind: Kind, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            help: help.into(),
        }
    }
}

/// Where a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Presence {
    /// In a folder of `PATH`, also inside the sandbox.
    Visible,
    /// On the machine, at this path, which the sandbox hides.
    Hidden(PathBuf),
    /// Nowhere in `PATH`.
    Missing,
}

/// What is known about the machine and the sandbox around the command.
pub(super) trait Machine {
    /// Where the program with this name is.
    fn program(&self, name: &str) -> Presence;

    /// Whether this file exists; a relative path starts at the root of the project.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether a manifest of the project (`requirements.txt`, `package.json`, …) names this library.
    fn declares(&self, library: &str) -> bool;

    /// Whether the command had a network.
    fn has_network(&self) -> bool;

    /// The sandbox around it.
    fn rung(&self) -> Rung;

    /// How to allow what the sandbox has refused; `None` if it refused nothing in this output.
    fn blocked(&self) -> Option<String>;
}

/// Older versions of npm begin the lines of an error with `npm ERR!`.
pub(super) fn as_npm_writes(line: &str) -> Cow<'_, str> {
    line.strip_prefix("npm ERR! ")
        .map_or(Cow::Borrowed(line), |rest| {
            format!("npm error {rest}").into()
        })
}

/// The last line that is not blank.
pub(super) fn last_line(output: &str) -> Option<&str> {
    output
        .lines()
        .rev()
        .map(str::trim_end)
        .find(|line| !line.is_empty())
}

/// What is between two pieces of text, each the first of its kind.
pub(super) fn between<'l>(line: &'l str, before: &str, after: &str) -> Option<&'l str> {
    line.split_once(before)?
        .1
        .split_once(after)
        .map(|(inside, _)| inside)
}
