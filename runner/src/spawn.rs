//! Starts a command and ends it.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, prlimit, setrlimit,
};

use crate::command::Group;
use crate::owner::next_marker;
use crate::procfs::Process;
use crate::program::{Found, find};
use crate::pump::{PIPE_BYTES, Pump, Stop};
use crate::reap::{Mark, Swept};
use crate::sandbox::{Aftercare, Launch, memory_file, prepare};
use crate::wait::wait_for;
use crate::{
    Command, Confinement, Ended, Leftovers, RUN_MARKER, Resources, RunError, Stream, Streams,
};

/// How long to wait for a killed process to die.
const DYING: Duration = Duration::from_secs(2);

/// Descriptors reserved for the end of a command: finding leftover processes takes a few, and
/// without any it would look as if there were none.
const SPARE: usize = 32;

/// The command's three streams, and whether it has the terminal.
pub(crate) struct Ends {
    stdin: OwnedFd,
    stdout: Stdio,
    stderr: Stdio,
    group: Group,
}

/// Opens the input and the pipes for the command, and gives our ends to `pump`.
pub(crate) fn connect(command: &Command, pump: &mut Pump<'_>) -> Result<Ends, RunError> {
    let stdin = match &command.input {
        // A copy: through a descriptor of the file, a command could open it anew for writing, outside its sandbox.
        Some(path) => std::fs::read(path)
            .and_then(|content| memory_file("input", &content))
            .map_err(|source| RunError::Input {
                path: path.clone(),
                source,
            })?,
        None => File::open("/dev/null").map_err(RunError::wait)?.into(),
    };
    let mut pipe = |stream| pipe_to(command, pump, stream);
    let (stdout, stderr) = match command.streams {
        Streams::Merged => {
            let both = pipe(Stream::Out)?;
            (both.try_clone().map_err(RunError::wait)?, both)
        }
        Streams::Apart => (pipe(Stream::Out)?, pipe(Stream::Err)?),
        Streams::Inherited => return inherited().map_err(RunError::wait),
    };
    Ok(Ends {
        stdin,
        stdout: stdout.into(),
        stderr: stderr.into(),
        group: Group::Own,
    })
}

fn inherited() -> io::Result<Ends> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(Ends {
        stdin,
        stdout: Stdio::inherit(),
        stderr: Stdio::inherit(),
        group: Group::Ours,
    })
}

fn pipe_to(command: &Command, pump: &mut Pump<'_>, stream: Stream) -> Result<PipeWriter, RunError> {
    let (reader, writer) = io::pipe().map_err(RunError::wait)?;
    // If the system does not allow that much, the pipe has its default size.
    let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
    pump.add(stream, reader, command.limits);
    Ok(writer)
}

/// A running command. If it is dropped before [`Running::end`] (a panic in the caller's `live`), it
/// is ended anyway.
pub(crate) struct Running {
    child: Child,
    handle: OwnedFd,
    spare: Vec<OwnedFd>,
    mark: Mark,
    group: Group,
    is_over: bool,
    pub(crate) aftercare: Aftercare,
}

/// Starts the command, or returns why there is nothing to start.
pub(crate) fn start(
    command: &Command,
    confinement: &Confinement,
    ends: Ends,
) -> Result<Result<Running, Ended>, RunError> {
    let argv = match argv(command) {
        Ok(argv) => argv,
        Err(ended) => return Ok(Err(ended)),
    };
    let mut inner = command.clone();
    inner.argv = argv;
    let marker = next_marker();
    inner.env.set(RUN_MARKER, &marker);
    let group = ends.group;
    let (launch, aftercare) = prepare(&inner, confinement, &marker, group)?;
    let program = PathBuf::from(launch.command.get_program());
    let mark = Mark::begin(marker, launch.container.clone()).map_err(RunError::wait)?;
    match spawn(launch, aftercare, ends, command.limits.resources)? {
        Ok((child, aftercare)) => Running::new(child, mark, group, aftercare).map(Ok),
        Err(source) => never_started(program, source).map(Err),
    }
}

/// The limits of a command, which it inherits. As they are ours as well until they are dropped, only the soft ones are
/// changed, which can be changed back; then those of the new process are set for good.
struct Bounds(Vec<Bound>);

impl Bounds {
    fn lend(resources: Resources) -> io::Result<Self> {
        let bounds = [
            resources
                .file_bytes
                .map(|most| Bound::new(Resource::Fsize, most, |ours| ours.current)),
            // The usual soft limit is for programs that cannot count further, and not what the machine can give.
            resources
                .open_files
                .map(|most| Bound::new(Resource::Nofile, most, |ours| ours.maximum)),
        ];
        let bounds: Vec<Bound> = bounds.into_iter().flatten().collect();
        bounds.iter().try_for_each(Bound::lend)?;
        Ok(Self(bounds))
    }

    fn give(self, child: &Child) {
        for bound in &self.0 {
            // If it is over already, nothing can exceed the limit.
            let _ = bound.give(Pid::from_child(child));
        }
    }
}

/// A limit of the command; ours is restored when it is dropped.
struct Bound {
    resource: Resource,
    ours: Rlimit,
    most: u64,
}

/// To start a program, we need some descriptors ourselves.
const OWN_FILES: u64 = 256;

impl Bound {
    /// `cap` is what of ours it may not exceed.
    fn new(resource: Resource, most: u64, cap: impl Fn(&Rlimit) -> Option<u64>) -> Self {
        let ours = getrlimit(resource);
        let most = cap(&ours).map_or(most, |cap| cap.min(most));
        Self {
            resource,
            ours,
            most,
        }
    }

    fn lend(&self) -> rustix::io::Result<()> {
        let least = if self.resource == Resource::Nofile {
            OWN_FILES
        } else {
            0
        };
        let most = self.most.max(least);
        let current = Some(self.ours.maximum.map_or(most, |cap| cap.min(most)));
        setrlimit(
            self.resource,
            Rlimit {
                current,
                ..self.ours
            },
        )
    }

    fn give(&self, pid: Pid) -> rustix::io::Result<Rlimit> {
        prlimit(
            Some(pid),
            self.resource,
            Rlimit {
                current: Some(self.most),
                maximum: Some(self.most),
            },
        )
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Nothing can be done about it, and a soft limit that is lower than before is no danger.
        let _ = setrlimit(self.resource, self.ours);
    }
}

fn argv(command: &Command) -> Result<Vec<std::ffi::OsString>, Ended> {
    let (name, arguments) = command.argv.split_first().ok_or(Ended::NotFound)?;
    match find(name, &command.cwd, command.env.get("PATH")) {
        Found::Program(start) => Ok([start.as_slice(), arguments].concat()),
        Found::Missing => Err(Ended::NotFound),
        Found::NotExecutable => Err(Ended::NotExecutable),
    }
}

type Spawned = io::Result<(Child, Aftercare)>;

fn spawn(
    mut launch: Launch,
    mut aftercare: Aftercare,
    ends: Ends,
    resources: Resources,
) -> Result<Spawned, RunError> {
    let input = ends.stdin.try_clone().map_err(RunError::wait)?;
    let stdin = launch.stdin.take().unwrap_or(ends.stdin);
    launch
        .command
        .stdin(stdin)
        .stdout(ends.stdout)
        .stderr(ends.stderr);
    if ends.group == Group::Own {
        launch.command.process_group(0);
    }
    let Launch {
        mut command,
        fence,
        inherited,
        ..
    } = launch;
    let bounds = Bounds::lend(resources).map_err(RunError::wait)?;
    let child = match fence {
        Some(fence) => fence.spawn(|| command.spawn())?,
        None => command.spawn(),
    };
    // `command` holds the other ends of our pipes and must be dropped before we wait for end of
    // file.
    drop((command, inherited));
    let mut child = match child {
        Ok(child) => child,
        Err(source) => return Ok(Err(source)),
    };
    bounds.give(&child);
    // The launcher waits for this: nothing of the command may start before its limits are set.
    if let Err(error) = aftercare.hand_over(input.as_fd()) {
        let _ = child.kill().and_then(|()| child.wait());
        return Err(error);
    }
    Ok(Ok((child, aftercare)))
}

/// Cases that [`find`] cannot detect: a binary for another machine, or a program that the sandbox
/// hides.
fn never_started(program: PathBuf, source: io::Error) -> Result<Ended, RunError> {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => Ok(Ended::NotFound),
        Some(libc::EACCES | libc::ENOEXEC) => Ok(Ended::NotExecutable),
        Some(_) | None => Err(RunError::Start { program, source }),
    }
}

impl Running {
    fn new(
        mut child: Child,
        mut mark: Mark,
        group: Group,
        aftercare: Aftercare,
    ) -> Result<Self, RunError> {
        let pid = child.id().cast_signed();
        let handle = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH);
        match handle.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(handle) => {
                mark.started(pid);
                let spare = (0..SPARE).map_while(|_| handle.try_clone().ok()).collect();
                Ok(Self {
                    child,
                    handle,
                    spare,
                    mark,
                    group,
                    is_over: false,
                    aftercare,
                })
            }
            Err(error) => {
                let _ = child.kill().and_then(|()| child.wait());
                Err(RunError::wait(error))
            }
        }
    }

    /// The processes of the command and of its sandbox.
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.mark.find()
    }

    /// Readable once the command has exited.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Ends the command and its leftover processes; with `Keep`, leftovers stay if the command
    /// exited normally. No status means that it was killed and is still not dead (stuck in a system
    /// call).
    pub(crate) fn end(
        &mut self,
        mut leftovers: Leftovers,
        stop: Option<&Stop>,
    ) -> (Result<Option<ExitStatus>, RunError>, Swept) {
        self.is_over = true;
        self.spare.clear();
        if stop == Some(&Stop::Exited) {
            // Most commands leave nothing behind: then we have no children now, which is quick to
            // check. The status is kept.
            let _ = self.child.try_wait();
        } else {
            leftovers = Leftovers::Sweep;
        }
        let mut swept = match leftovers {
            Leftovers::Sweep => self.mark.end(self.group),
            Leftovers::Keep => Swept::default(),
        };
        let status = self.wait();
        swept.left += usize::from(matches!(status, Ok(None)));
        self.mark.waited(leftovers);
        (status, swept)
    }

    fn wait(&mut self) -> Result<Option<ExitStatus>, RunError> {
        wait_for(&self.handle, DYING);
        self.child.try_wait().map_err(RunError::wait)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.end(Leftovers::Sweep, None);
        }
    }
}
