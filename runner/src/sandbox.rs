//! The sandbox around a command, and the ladder of ways to build one.

use std::io::{ErrorKind, PipeWriter};
use std::os::fd::BorrowedFd;
use std::process::{ExitCode, ExitStatus};

use crate::command::Group;
use crate::{Backend, Command, Confinement, Ended, RefusedHost, RunError, TemporaryFolder};

pub(crate) mod access;
mod caches;
mod descriptors;
mod docker;
mod helper;
mod landlock;
mod launch;
mod mount;
mod mount_table;
mod namespaces;
mod own_files;
mod plan;
mod seccomp;
mod settings;
mod sockets;
mod toolchains;

pub(crate) use caches::lock as lock_caches;
pub(crate) use descriptors::memory_file;
pub use docker::Containers;
pub(crate) use docker::{Container, may_start_again, remove_orphans};
pub use helper::helper_is;
pub(crate) use launch::Launch;
pub use plan::{look_ahead, visible};

use launch::{direct, plainly};

/// What is needed to interpret how a sandboxed command ended, and to clean up after it.
pub(crate) enum Aftercare {
    Plain,
    Namespaces(namespaces::Control),
    Landlock(#[expect(dead_code, reason = "removed when dropped")] TemporaryFolder),
    Docker(
        #[expect(
            dead_code,
            reason = "the line: closed when dropped, or when this process dies"
        )]
        Option<PipeWriter>,
    ),
}

/// Prepares to start `command`, whose `argv[0]` has been resolved.
pub(crate) fn prepare(
    command: &Command,
    confinement: &Confinement,
    marker: &str,
    group: Group,
) -> Result<(Launch, Aftercare), RunError> {
    let backend = confinement.backend;
    let access = &backend.limited(&confinement.access);
    let launch = match backend {
        Backend::Off => Ok((Launch::new(direct(command)), Aftercare::Plain)),
        Backend::Landlock | Backend::Docker if access.has_proxy() => {
            Err("only the sandbox namespaces can open single hosts".to_owned())
        }
        Backend::Namespaces => namespaces::prepare(command, access, marker, group)
            .map(|(launch, control)| (launch, Aftercare::Namespaces(control))),
        Backend::Landlock => landlock::prepare(command, access)
            .map(|(launch, folder)| (launch, Aftercare::Landlock(folder))),
        Backend::Docker => docker::prepare(command, access, marker, group)
            .map(|(launch, line)| (launch, Aftercare::Docker(line))),
    };
    launch.map_err(|message| backend.failed(message))
}

impl Backend {
    pub(crate) fn failed(self, message: impl Into<String>) -> RunError {
        RunError::Sandbox {
            backend: self,
            message: message.into(),
        }
    }
}

impl Aftercare {
    /// Gives the launcher what it waits for before it starts anything, and the command's standard input, if the
    /// launcher's own is another one.
    pub(crate) fn hand_over(&mut self, stdin: BorrowedFd<'_>) -> Result<(), RunError> {
        let Self::Namespaces(control) = self else {
            return Ok(());
        };
        match control.hand_over(stdin) {
            // A launcher that has ended already says why.
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                Err(Backend::Namespaces.failed(error.to_string()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The hosts that the command looked up or asked the proxy for, and did not reach.
    pub(crate) fn refused(&self) -> Vec<RefusedHost> {
        if let Self::Namespaces(control) = self {
            control.refused()
        } else {
            Vec::new()
        }
    }

    /// How the command ended, given how its launcher ended. `text` is what was printed.
    pub(crate) fn read(
        &self,
        status: ExitStatus,
        text: impl FnOnce() -> String,
    ) -> Result<Ended, RunError> {
        match self {
            Self::Plain | Self::Landlock(_) => Ok(plainly(status)),
            Self::Namespaces(control) => control.read(status),
            Self::Docker(_) => {
                docker::read(status, &text()).map_err(|message| Backend::Docker.failed(message))
            }
        }
    }
}

/// To be called first in `main`, while the process has one thread. If the process was started as a helper of
/// this crate, does that work and returns the exit code. Otherwise, sandboxes may start this program as one, and no
/// program that it starts gets a descriptor that it inherited itself, but for the standard ones.
pub fn helper() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    match words.next().as_deref().and_then(|name| name.to_str()) {
        Some(helper::OUTER) => Some(namespaces::outer(words)),
        Some(helper::FIRST) => Some(namespaces::first(words)),
        Some(_) | None => {
            helper_is(helper::find());
            close_fds::set_fds_cloexec(3, &[]);
            None
        }
    }
}
