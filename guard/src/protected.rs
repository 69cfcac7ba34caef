//! The one table of names that no model may write, and the shorter one of names worth a second look.

use gix::glob::pattern::Case;

use crate::fold::fold;
use crate::patterns::{Kind, Patterns};

/// Whom a protected name binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binds {
    /// Every policy, whatever its scope: the harness's own state and settings.
    Always,
    /// Every policy but a scoped one, whose list of files is a person's own word.
    Unscoped,
    /// `Policy::commit` only: the critical files of S1 §Parsing the Response.
    Commit,
}

/// A name that may not be written.
#[derive(Debug, Clone, Copy)]
pub struct Protected {
    /// A gitignore pattern, relative to the root, matched with case folding.
    pub pattern: &'static str,
    /// What it is, for the message.
    pub what: &'static str,
    /// Which policies it binds.
    pub binds: Binds,
}

/// Every protected name. `.git` is not among them: the lexical rules refuse it at every level and in every spelling.
pub const PROTECTED: &[Protected] = &[
    always("/.code-commit/", "the harness's own state"),
    always("/code-commit.toml", "the harness's configuration"),
    always(".gitmodules", "where git fetches submodules from"),
    unscoped(".gitignore", "what git ignores decides what may be written"),
    unscoped("/agent-config/", "the harness's settings and keys"),
    commit("/Cargo.lock", "the versions of all dependencies"),
    commit("/build.sh", "the build decides whether the work is done"),
    commit("/codeRollup.sh", "the supervisor's script"),
    commit("/LLMInstructions.md", "the supervisor's instructions"),
    commit("UserSpecification.md", "the user's specification"),
    commit("/target/", "build output"),
    commit("/logs/", "the records of runs"),
    commit("/llm-user-output.txt", "the record of a run"),
];

/// Names that may be written, but that run code or change what others see: shown in the summary.
pub const FLAGGED: &[&str] =
    &[".gitattributes", ".cargo/config", ".cargo/config.toml", ".github/workflows/", "build.rs", ".envrc"];

const fn always(pattern: &'static str, what: &'static str) -> Protected {
    Protected { pattern, what, binds: Binds::Always }
}

const fn unscoped(pattern: &'static str, what: &'static str) -> Protected {
    Protected { pattern, what, binds: Binds::Unscoped }
}

const fn commit(pattern: &'static str, what: &'static str) -> Protected {
    Protected { pattern, what, binds: Binds::Commit }
}

/// Patterns matched by folded name, so that no spelling of a name on any file system slips through.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    patterns: Patterns,
    pub(crate) what: String,
}

impl Folded {
    pub(crate) fn new(pattern: &str, what: &str) -> Self {
        Folded { patterns: Patterns::parse(fold(pattern).as_bytes()), what: what.to_owned() }
    }

    /// `folded` is a path that went through `fold`. The last name is taken for a folder too: a file must not
    /// take the place of a protected folder.
    pub(crate) fn covers(&self, folded: &str) -> bool {
        self.patterns.covers(folded, Kind::Folder, Case::Sensitive)
            || self.patterns.covers(folded, Kind::File, Case::Sensitive)
    }
}

/// Whether `path` is worth a second look by a person.
pub(crate) fn is_flagged(path: &str) -> bool {
    let path = fold(path);
    let prefixed = format!("/{path}");
    FLAGGED.iter().any(|name| match name.strip_suffix('/') {
        Some(folder) => prefixed.contains(&format!("/{folder}/")),
        None => prefixed.ends_with(&format!("/{name}")),
    })
}
