//! What to run: the program, where, with which surroundings and limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::Env;

/// One command. Never a shell line: `argv[0]` is looked up in the environment's PATH, or, if it
/// holds a `/`, in `cwd`.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: Env,
    /// After this the whole process tree is killed; `None` is no limit.
    pub deadline: Option<Duration>,
    /// The file whose bytes are the standard input; `None` is an empty one.
    pub input: Option<PathBuf>,
    /// Where the output goes.
    pub streams: Streams,
    /// How much output there may be, and how much of it is kept in memory.
    pub limits: Limits,
    /// What becomes of processes that outlive the command.
    pub leftovers: Leftovers,
}

impl Command {
    /// A command without a deadline, with no input and the default limits, whose two streams are one.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        cwd: impl Into<PathBuf>,
        env: Env,
    ) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env,
            deadline: None,
            input: None,
            streams: Streams::Merged,
            limits: Limits::default(),
            leftovers: Leftovers::Sweep,
        }
    }
}

/// Where standard output and standard error go. The caller gets each piece while the command runs; no file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Both into one pipe, so that they stay in the order in which they were written.
    Merged,
    /// Each into its own.
    Apart,
    /// All three streams are the caller's own, for a session with a person. Nothing is captured,
    /// `input` and `limits` do not count.
    Inherited,
}

/// Which of the two streams some bytes came from; with [`Streams::Merged`] all come from `Out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Bounds on the output, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The command is stopped when it writes more than this, both streams together.
    pub output_bytes: u64,
    /// How much of the start of each stream is kept in memory.
    pub head_bytes: usize,
    /// How much of the end of each stream is kept in memory.
    pub tail_bytes: usize,
}

/// 1 GiB of output; half a MiB of its start and as much of its end in memory.
impl Default for Limits {
    fn default() -> Self {
        Self { output_bytes: 1 << 30, head_bytes: 1 << 19, tail_bytes: 1 << 19 }
    }
}

/// What becomes of processes that the command leaves behind when it exits by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed before [`run`](crate::run) returns.
    Sweep,
    /// They live until [`sweep`](crate::sweep), or until an enclosing run ends. Where a rung has a
    /// process namespace (bubblewrap, Docker) they die with the command all the same. What they
    /// print once `run` has returned is thrown away.
    Keep,
}
