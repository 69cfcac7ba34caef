//! What to run: the program, its working folder, environment and limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::Env;

/// One command. Never a shell line: `argv[0]` is searched in the environment's `PATH` or, if it
/// contains a `/`, relative to `cwd`.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// The complete environment; nothing is inherited.
    pub env: Env,
    /// After this time the whole process tree is killed; `None` means no limit.
    pub deadline: Option<Duration>,
    /// The file to use as standard input; `None` means empty input.
    pub input: Option<PathBuf>,
    /// Where the output goes.
    pub streams: Streams,
    /// How much output is allowed, and how much of it is kept in memory.
    pub limits: Limits,
    /// What happens to processes that outlive the command.
    pub leftovers: Leftovers,
}

impl Command {
    /// A command with merged streams, without a deadline and input, with default limits.
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

/// Where standard output and standard error go. The caller gets each piece while the command runs; no file is
/// created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Both into one pipe, so that their order is preserved.
    Merged,
    /// Separate pipes.
    Apart,
    /// All three streams are the caller's own, for an interactive session. Nothing is captured, and
    /// `input` and `limits` have no effect.
    Inherited,
}

/// Which stream some bytes came from; with [`Streams::Merged`] always `Out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Limits on the output, in bytes, and on what the command uses of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The command is stopped when both streams together exceed this.
    pub output_bytes: u64,
    /// How much of the start of each stream is kept in memory.
    pub head_bytes: usize,
    /// How much of the end of each stream is kept in memory.
    pub tail_bytes: usize,
    /// Memory, processes and disk space.
    pub resources: Resources,
}

/// 1 GiB of output; half a MiB of its start and half a MiB of its end in memory; the whole machine.
impl Default for Limits {
    fn default() -> Self {
        let resources = Resources::default();
        Self {
            output_bytes: 1 << 30,
            head_bytes: 1 << 19,
            tail_bytes: 1 << 19,
            resources,
        }
    }
}

/// What a command may use of the machine; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// The memory of all its processes together, counted several times a second. If they use more, it is killed.
    /// In a container the kernel counts, and kills one process.
    pub memory_bytes: Option<u64>,
    /// How many processes it may have at once. If it has more, it is killed. In a container it cannot start more.
    pub processes: Option<u64>,
    /// The size of its folders for temporary files together; in Docker of each. Without
    /// namespaces they are on the disk and have no limit.
    pub temporary_bytes: Option<u64>,
    /// The size of one file. Whoever writes more gets an error or a signal.
    pub file_bytes: Option<u64>,
    /// How many files, pipes and sockets one process may have open at once. Whoever opens more gets an error.
    pub open_files: Option<u64>,
}

impl Resources {
    /// Limits that no ordinary test suite meets: three quarters of the machine's memory, half of it for temporary
    /// files, 4,096 processes, 64 GiB for a file, 65,536 open files.
    pub fn usual() -> Self {
        let memory = rustix::system::sysinfo();
        #[expect(
            clippy::useless_conversion,
            reason = "its fields have the size of a machine word"
        )]
        let memory = u64::from(memory.totalram).saturating_mul(memory.mem_unit.into());
        Self {
            memory_bytes: Some(memory / 4 * 3),
            processes: Some(4096),
            temporary_bytes: Some(memory / 2),
            file_bytes: Some(64 << 30),
            open_files: Some(1 << 16),
        }
    }
}

/// What happens to processes that the command leaves behind when it exits normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed before [`run`](crate::run) returns.
    Sweep,
    /// They live until [`sweep`](crate::sweep), or until an enclosing run ends. In a process
    /// namespace (every sandbox but Landlock) they die with the command anyway. What they print after `run`
    /// has returned is discarded.
    Keep,
}

/// Which process group a command is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Its own, which can be killed as a whole.
    Own,
    /// Ours, so that it can use the terminal.
    Ours,
}
