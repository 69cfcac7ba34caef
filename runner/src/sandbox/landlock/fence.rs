//! The restrictions that a thread takes on before it starts the command.

use std::io;

use landlock::{Ruleset, RulesetAttr as _, RulesetCreated, RulesetError, Scope};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use crate::RunError;
use crate::sandbox::access::Backend;
use crate::sandbox::seccomp;

/// Restrictions for the thread that starts the command.
pub(crate) struct Fence {
    pub(super) rules: RulesetCreated,
    pub(super) filters: [BpfProgram; 2],
}

impl Fence {
    /// Starts the command from a thread that first restricts itself and then ends: the restrictions
    /// are inherited by the command and by nothing else.
    pub(crate) fn spawn(
        self,
        start: impl FnOnce() -> io::Result<std::process::Child> + Send,
    ) -> Result<io::Result<std::process::Child>, RunError> {
        let thread = || {
            self.rules
                .restrict_self()
                .map_err(|error| error.to_string())?;
            drop_rights_of_root().map_err(|error| error.to_string())?;
            seccomp::install(&self.filters)?;
            Ok(start())
        };
        let started = std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, thread);
            let started = started.map_err(|error| format!("cannot start a thread: {error}"))?;
            let broke = |_| Err("the starting thread broke".to_owned());
            started.join().unwrap_or_else(broke)
        });
        started.map_err(|message: String| Backend::Landlock.failed(message))
    }
}

/// As root, a process can affect every other process of the machine in ways that Landlock does not
/// cover. Keeps only the capabilities needed to build in a tree that belongs to another user.
fn drop_rights_of_root() -> rustix::io::Result<()> {
    let files = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    let kept = capabilities(None)?.permitted & files;
    keep_capabilities(kept, CapabilitySet::empty())
}

/// Gives up all others; a program that is started gets the inheritable ones, if it is made for them.
pub(in crate::sandbox) fn keep_capabilities(
    permitted: CapabilitySet,
    inheritable: CapabilitySet,
) -> rustix::io::Result<()> {
    let sets = CapabilitySets {
        effective: permitted,
        permitted,
        inheritable,
    };
    set_capabilities(None, sets)
}

/// Keeps this thread and all that it starts from the abstract unix sockets of other processes, such as the
/// X server's: only a network namespace of its own would hide them. Has no effect before Linux 6.12.
pub(in crate::sandbox) fn leave_abstract_sockets() -> Result<(), RulesetError> {
    Ruleset::default()
        .scope(Scope::AbstractUnixSocket)?
        .create()?
        .restrict_self()
        .map(drop)
}
