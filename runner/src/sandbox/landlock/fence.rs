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
        let fault = |message| RunError::Sandbox {
            backend: Backend::Landlock,
            message,
        };
        let thread = || {
            self.rules
                .restrict_self()
                .map_err(|error| fault(error.to_string()))?;
            drop_rights_of_root().map_err(|error| fault(error.to_string()))?;
            seccomp::install(&self.filters).map_err(fault)?;
            Ok(start())
        };
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, thread);
            let started =
                started.map_err(|error| fault(format!("cannot start a thread: {error}")))?;
            started
                .join()
                .unwrap_or_else(|_| Err(fault("the starting thread broke".to_owned())))
        })
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
    let inheritable = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable,
        },
    )
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
