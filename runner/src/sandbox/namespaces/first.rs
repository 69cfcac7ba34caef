//! The first process in the namespaces: builds the root folder, gives up its rights, starts the command, and
//! reaps what loses its parent. When it ends, the kernel ends everything in the process namespace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitCode};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{
    DumpableBehavior, Signal, WaitOptions, WaitStatus, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait,
};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use super::task::{Report, Task};
use super::{loopback, root};
use crate::Ended;
use crate::procfs::Process;
use crate::sandbox::HOST_NAME;
use crate::sandbox::seccomp::{self, Sockets};
use crate::sandbox::view::{during, overlay};
use crate::spawn::program;

/// Runs as the first process, with the outer helper's process ID as argument.
pub(in crate::sandbox) fn first(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let outer = words.next().and_then(|word| word.to_str()?.parse().ok());
    let report = match set_up(outer) {
        Ok((task, stdin)) => match start(&task, stdin) {
            Ok(child) => follow(&child),
            Err(error) => Report::NotStarted(error.raw_os_error().unwrap_or(libc::EINVAL)),
        },
        Err(report) => report,
    };
    tell(&report);
    ExitCode::SUCCESS
}

/// Sends the report to the harness, whose socket is standard input. If it is gone, nobody needs it.
pub(super) fn tell(report: &Report) {
    let _ = send(io::stdin(), report.encode().as_bytes(), SendFlags::NOSIGNAL);
}

fn set_up(outer: Option<i32>) -> Result<(Task, OwnedFd), Report> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(during("stay with the helper"))?;
    // From here the parent has no number, but it has one in the `/proc` of its own namespace.
    if Process::parent_of_self() != outer {
        return Err(Report::Failed("the helper is gone".to_owned()));
    }
    let (task, stdin) = receive()?;
    if let Some((tree, view)) = &task.view {
        overlay(tree, &view.upper, &view.work).map_err(|error| Report::NoView(error.to_string()))?;
    }
    root::enter(&task)?;
    if !task.has_network {
        loopback::up()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot make a loopback: {error}")))?;
    }
    sethostname(HOST_NAME.as_bytes()).map_err(during("name the machine"))?;
    if !task.has_terminal {
        // No terminal, so that nothing can type into it from inside.
        setsid().map_err(during("leave the terminal"))?;
    }
    std::env::set_current_dir(&task.cwd)
        .map_err(|error| io::Error::other(format!("cannot work in {}: {error}", task.cwd.display())))?;
    drop_rights()?;
    Ok((task, stdin))
}

/// The task, and the command's standard input.
fn receive() -> io::Result<(Task, OwnedFd)> {
    let (mut byte, mut space) = ([0; 8], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))]);
    let mut message = RecvAncillaryBuffer::new(&mut space);
    recvmsg(io::stdin(), &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        RecvAncillaryMessage::ScmCredentials(_) | _ => None,
    });
    let mut descriptors = descriptors.next().into_iter().flatten();
    let (Some(task), Some(stdin)) = (descriptors.next(), descriptors.next()) else {
        return Err(io::Error::other("the harness sent no task"));
    };
    let mut bytes = Vec::new();
    File::from(task).read_to_end(&mut bytes)?;
    let task =
        Task::decode(&bytes).ok_or_else(|| io::Error::other("the program was replaced while it ran"))?;
    Ok((task, stdin))
}

/// As root, what a process may do depends on its capabilities and on its user ID. The first are all given up
/// here, for good; for the second, nothing that root owns is writable.
fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set().map_err(during("drop rights"))?;
    for one in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(one) {
            // An older kernel does not know the newest.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(during("drop rights")(error)),
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(during("drop rights"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(during("hide the helper"))?;
    let filter = seccomp::filter(Sockets::Allowed).map_err(io::Error::other)?;
    // Also forbids to gain rights by starting a program.
    seccompiler::apply_filter(&filter).map_err(io::Error::other)
}

fn start(task: &Task, stdin: OwnedFd) -> io::Result<Child> {
    let (name, arguments) = task.argv.split_first().ok_or(io::ErrorKind::NotFound)?;
    program(name).args(arguments).env_clear().envs(task.env.iter()).stdin(stdin).spawn()
}

fn follow(child: &Child) -> Report {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid().cast_unsigned() == child.id() => {
                return Report::Ended(ending(status));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Report::Failed(format!("cannot follow the command: {error}")),
        }
    }
}

fn ending(status: WaitStatus) -> Ended {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
    }
}
