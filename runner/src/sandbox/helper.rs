//! The program that uses this crate, started again as a helper.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use super::{Rung, namespaces, view};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Why there are no namespaces without it.
pub(super) const NONE: &str = "this program does not call `code_commit_runner::helper` when it starts";

/// To be called first in `main`, while the process has one thread. If the process was started as a helper of
/// this crate, does that work and returns the exit code. Otherwise, sandboxes may start this program as one, and no
/// program that it starts gets a descriptor that it inherited itself, but for the standard ones.
pub fn helper() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    match words.next().as_deref().and_then(|name| name.to_str()) {
        Some(view::HELPER) => Some(view::run_helper(words)),
        Some(namespaces::OUTER) => Some(namespaces::outer(words)),
        Some(namespaces::FIRST) => Some(namespaces::first(words)),
        Some(_) | None => {
            helper_is("/proc/self/exe");
            close_fds::set_fds_cloexec(3, &[]);
            None
        }
    }
}

/// Another program, which calls [`helper`], is started in place of this one: for tests, whose `main` is not
/// theirs. Only the first call counts.
pub fn helper_is(program: impl Into<PathBuf>) {
    PROGRAM.get_or_init(|| program.into());
}

pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

impl Rung {
    /// Whether a command can work in a view of the tree ([`Access::view`](crate::Access::view)).
    pub fn has_views(self) -> bool {
        program().is_some() && matches!(self, Self::Namespaces | Self::Bwrap)
    }
}
