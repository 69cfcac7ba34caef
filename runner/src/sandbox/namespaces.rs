//! The strongest backend: namespaces that this crate sets up itself, and a seccomp filter inside.
//!
//! Only a process with one thread can enter a user namespace, and only the first process of a process namespace
//! can mount its `/proc`. So the program that uses this crate starts itself twice: as an *outer* helper, which
//! enters the namespaces, and as their *first* process, which builds the root folder, gives up all rights,
//! starts the command, and reports how it ended. Each dies with its parent.
//!
//! The harness and the first process share a socket. It is the standard input of both helpers; the command gets
//! the harness's choice instead, so that it can neither read its instructions nor forge a report.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::ExitStatus;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::access::Access;
use super::descriptors::{descriptors, memory_file, pair, send_descriptors};
use super::launch::{Launch, environment, plainly};
use super::mount::Mount;
use super::plan::{self, overlays};
use super::{caches, helper, own_files};
use crate::command::Group;
use crate::procfs::own_pid;
use crate::program::program;
use crate::proxy::Proxy;
use crate::{Backend, Command, Ended, RUN_MARKER, RefusedHost, RunError};

mod first;
mod mounts;
mod outer;
mod root;
mod task;

pub(super) use first::first;
pub(super) use outer::outer;

use task::{Report, Task};

pub(super) fn prepare(
    command: &Command,
    access: &Access,
    marker: &str,
    group: Group,
) -> Result<(Launch, Control), String> {
    plan::make_ready(access)?;
    caches::make_layers(access)?;
    let fault = |error: io::Error| format!("cannot talk to the helper: {error}");
    let (ours, theirs) = pair().map_err(fault)?;
    let proxy = (!access.network)
        .then(|| proxy(access))
        .transpose()
        .map_err(fault)?;
    let attended = if group == Group::Ours {
        "attended"
    } else {
        "alone"
    };
    let network = if access.network {
        "network"
    } else {
        "no-network"
    };
    let mut helper = program(helper::program().ok_or(helper::NONE)?);
    // Not the command's variables: the loader would obey them, and they may name files that a build wrote.
    helper
        .arg0(helper::OUTER)
        .args([&own_pid().to_string(), network, attended])
        .env_clear()
        .env(RUN_MARKER, marker);
    let (command, access) = (command.clone(), access.clone());
    let task = Some(Box::new(move || task(command, &access, group)) as Box<_>);
    let mut launch = Launch::new(helper);
    launch.stdin = Some(theirs);
    let control = Control {
        socket: ours,
        task,
        proxy,
    };
    Ok((launch, control))
}

fn task(command: Command, access: &Access, group: Group) -> Task {
    let mounts = plan::plan(access);
    let own = own_files::files(access);
    let is_own = |path: &Path| own.iter().any(|(place, _)| place == path);
    let copied = mounts
        .iter()
        .filter(|mount| !is_own(mount.place()))
        .filter_map(small_file);
    let files = copied.collect::<Vec<_>>().into_iter();
    let own = own
        .into_iter()
        .map(|(path, content)| (path.into(), content.into()));
    Task {
        overlays: overlays(access),
        files: files.chain(own).collect(),
        mounts,
        temporary_bytes: command.limits.resources.temporary_bytes,
        processes: command.limits.resources.processes,
        has_network: access.network,
        has_proxy: access.has_proxy(),
        has_terminal: group == Group::Ours,
        env: environment(&command, access),
        cwd: command.cwd,
        argv: command.argv,
    }
}

/// A larger file of `/etc` is mounted.
const MOST_BYTES: u64 = 1 << 14;

/// A file of `/etc`, of which a copy costs less than a mount.
fn small_file(mount: &Mount) -> Option<(OsString, OsString)> {
    let Mount::ReadOnly(path) = mount else {
        return None;
    };
    let found = path.starts_with("/etc").then(|| path.metadata().ok())??;
    let content = (found.is_file() && found.len() <= MOST_BYTES).then(|| fs::read(path).ok())??;
    Some((path.into(), OsString::from_vec(content)))
}

/// The harness's end of the socket.
pub(crate) struct Control {
    socket: OwnedFd,
    /// Found out while the helpers start.
    task: Option<Box<dyn FnOnce() -> Task>>,
    /// The proxy, and the socket through which it gets its own.
    proxy: Option<(Proxy, OwnedFd)>,
}

/// A proxy that waits for its sockets. Without hosts it only lists those that the command looks up.
fn proxy(access: &Access) -> io::Result<(Proxy, OwnedFd)> {
    let (ours, theirs) = pair()?;
    let proxy = Proxy::start(access.hosts.clone(), move |is_ready| {
        is_ready(ours.as_fd()).then(|| descriptors(ours.as_fd()).ok())?
    })?;
    Ok((proxy, theirs))
}

impl Control {
    /// Lets the helper start the first process, and sends that the task, and what the command gets as its standard
    /// input.
    pub(crate) fn hand_over(&mut self, stdin: BorrowedFd<'_>) -> io::Result<()> {
        let Some(task) = self.task.take() else {
            return Ok(());
        };
        send(&self.socket, b"+", SendFlags::NOSIGNAL)?;
        let task = memory_file("task", &task().encode()?)?;
        let proxy = self.proxy.iter().map(|(_, socket)| socket.as_fd());
        let descriptors: Vec<_> = [task.as_fd(), stdin].into_iter().chain(proxy).collect();
        send_descriptors(self.socket.as_fd(), &descriptors)
    }

    pub(super) fn refused(&self) -> Vec<RefusedHost> {
        self.proxy
            .iter()
            .flat_map(|(proxy, _)| proxy.refused())
            .collect()
    }

    /// How the command ended, as the first process reported it.
    pub(super) fn read(&self, status: ExitStatus) -> Result<Ended, RunError> {
        let failed = |message: String| Err(Backend::Namespaces.failed(message));
        let mut bytes = [0; 4096];
        let count =
            recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT).map_or(0, |(count, _)| count);
        match postcard::from_bytes(bytes.get(..count).unwrap_or_default()).ok() {
            Some(Report::Ended(status)) => Ok(plainly(ExitStatus::from_raw(status))),
            Some(Report::NotStarted(libc::ENOENT | libc::ENOTDIR)) => Ok(Ended::NotFound),
            Some(Report::NotStarted(libc::EACCES | libc::ENOEXEC)) => Ok(Ended::NotExecutable),
            Some(Report::NotStarted(error)) => {
                let error = io::Error::from_raw_os_error(error);
                failed(format!("cannot start the command: {error}"))
            }
            Some(Report::NoView(message)) => Err(RunError::View { message }),
            Some(Report::Failed(message)) => failed(message),
            // One of the helpers was killed.
            None => match status
                .signal()
                .or(status.code().and_then(|code| code.checked_sub(128)))
            {
                Some(signal @ 1..) => Ok(Ended::Signaled(signal)),
                Some(_) | None => failed(format!("the helper ended without a report: {status}")),
            },
        }
    }
}
