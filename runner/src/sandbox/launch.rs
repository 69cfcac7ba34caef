//! What every backend prepares: a launcher, and how its end is read.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;

use super::access::Access;
use super::docker::Container;
use super::landlock::Fence;
use crate::program::program;
use crate::{Command, Ended, Env};

/// Everything needed to start a command in the sandbox.
pub(crate) struct Launch {
    pub(crate) command: std::process::Command,
    /// Restrictions for the thread that starts it.
    pub(crate) fence: Option<Fence>,
    /// Descriptors that it inherits; closed once it runs.
    pub(crate) inherited: Vec<OwnedFd>,
    /// Its standard input, if the launcher needs standard input for itself.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) container: Option<Container>,
}

impl Launch {
    pub(super) fn new(command: std::process::Command) -> Self {
        Self {
            command,
            fence: None,
            inherited: Vec::new(),
            stdin: None,
            container: None,
        }
    }
}

/// The command without a sandbox.
pub(super) fn direct(command: &Command) -> std::process::Command {
    let mut words = command.argv.iter();
    let mut direct = program(words.next().cloned().unwrap_or_default());
    direct
        .args(words)
        .env_clear()
        .envs(command.env.iter())
        .current_dir(&command.cwd);
    direct
}

/// The command's variables, adjusted where paths differ in the sandbox: temporary files are in a
/// new `/tmp`.
pub(super) fn environment(command: &Command, access: &Access) -> Env {
    let mut env = command.env.clone();
    point_inside(&mut env, access);
    if env.get("TMPDIR").is_some() {
        env.set("TMPDIR", "/tmp");
    }
    env
}

/// Sets the paths that programs would otherwise look up in a home directory that does not exist,
/// and tells cargo not to try the network in vain.
pub(super) fn point_inside(env: &mut Env, access: &Access) {
    for (name, folder) in [
        ("CARGO_HOME", &access.cargo_home),
        ("RUSTUP_HOME", &access.rustup_home),
    ] {
        if let Some(folder) = folder {
            env.set(name, folder);
        }
    }
    if !access.network && access.hosts.is_empty() {
        env.set("CARGO_NET_OFFLINE", "true");
    }
    // The tree is a mount of its own, and git would not search for a repository above it.
    env.set("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
}

pub(super) fn plainly(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
    }
}

/// A launcher with a process namespace reports signal N as exit code 128 + N.
pub(super) fn by_shell_code(code: i32) -> Ended {
    match code {
        129..=192 => Ended::Signaled(code - 128),
        _ => Ended::Exited(code),
    }
}
