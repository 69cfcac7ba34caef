//! The outer helper: enters the namespaces and starts their first process.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::ExitCode;

use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setpgid};
use rustix::thread::{UnshareFlags, capabilities, configure_capability_in_ambient_set};

use super::first::tell;
use super::mounts::{during, own_namespaces};
use crate::procfs::own_pid;
use crate::program::program;
use crate::sandbox::helper::FIRST;
use crate::sandbox::landlock::keep_capabilities;

/// Runs as the outer helper, with the harness's process ID and two words as arguments.
pub(in crate::sandbox) fn outer(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let harness = words.next().and_then(|word| word.to_str()?.parse().ok());
    let (has_network, is_attended) = (
        words.next() == Some("network".into()),
        words.next() == Some("attended".into()),
    );
    match follow(harness, has_network, is_attended) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tell(&error.into());
            ExitCode::FAILURE
        }
    }
}

/// The exit code of the first process, or 128 + the signal that ended it.
fn follow(harness: Option<i32>, has_network: bool, is_attended: bool) -> io::Result<u8> {
    let network = if has_network {
        UnshareFlags::empty()
    } else {
        UnshareFlags::NEWNET
    };
    own_namespaces(
        UnshareFlags::NEWPID
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWCGROUP
            | network,
    )?;
    // Only now: the kernel forgets the request when the rights of a process change.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(during("stay with the harness"))?;
    if harness != getppid().map(Pid::as_raw_pid) {
        return Err(io::Error::other("the harness is gone"));
    }
    keep_rights().map_err(during("keep the rights to mount"))?;
    // The harness sends one message when it has set our limits, which the first process inherits, and the task later.
    recv(io::stdin(), &mut [0; 1], RecvFlags::empty()).map_err(during("listen to the harness"))?;
    let mut first = program("/proc/self/exe");
    first.arg0(FIRST).arg(own_pid().to_string());
    let mut child = first.spawn()?;
    if is_attended {
        // Ctrl-C goes to every process of the terminal's group. It is for the command, and it must not end the
        // sandbox.
        setpgid(None, None).map_err(during("leave the terminal"))?;
    }
    let status = child.wait()?;
    let signal = status
        .signal()
        .and_then(|signal| u8::try_from(128 + signal).ok());
    Ok(signal
        .or(status.code().and_then(|code| u8::try_from(code).ok()))
        .unwrap_or(u8::MAX))
}

/// A user who is not root loses all capabilities by starting a program, unless they are ambient.
fn keep_rights() -> rustix::io::Result<()> {
    let permitted = capabilities(None)?.permitted;
    keep_capabilities(permitted, permitted)?;
    permitted
        .iter()
        .try_for_each(|one| configure_capability_in_ambient_set(one, true))
}
