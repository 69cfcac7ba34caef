//! The program that uses this crate, started again as a helper.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::access::Rung;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The names by which the program knows that it was started as a helper.
pub(super) const OUTER: &str = "code-commit-sandbox";
pub(super) const FIRST: &str = "code-commit-sandbox-init";

/// Why there are no namespaces without it.
pub(super) const NONE: &str =
    "this program does not call `code_commit_runner::helper` when it starts";

/// Another program, which calls [`helper`](crate::helper), is started in place of this one: for tests, whose `main` is not
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
        program().is_some() && self == Self::Namespaces
    }
}
