//! The one table of names that no model may write, and the shorter one of names worth a second look.

use gix::glob::pattern::Case;

use crate::fold::fold;
use crate::patterns::{Kind, Patterns, Within};

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

/// Who does write a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The harness: its state and its records.
    Harness,
    /// A person, or git at a person's word. No build has to.
    Person,
    /// The build: it could not run without.
    Build,
}

/// A name that no model may write.
#[derive(Debug, Clone, Copy)]
pub struct Protected {
    /// A gitignore pattern, relative to the root, matched with case folding.
    pub pattern: &'static str,
    /// Which policies it binds.
    pub binds: Binds,
    /// Who writes it.
    pub writer: Writer,
    /// What it is, for the message.
    pub what: &'static str,
}

impl Protected {
    /// Whether everything below it is protected with it.
    pub fn is_folder(&self) -> bool {
        self.pattern.ends_with('/')
    }

    /// Its path at the root.
    pub fn at_root(&self) -> &'static str {
        self.pattern.trim_matches('/')
    }
}

/// Every protected name. `.git` is not among them: the lexical rules refuse it at every level and in every spelling.
pub const PROTECTED: &[Protected] = &[
    row("/.code-commit/", Binds::Always, Writer::Harness, "the harness's own state"),
    row("/code-commit.toml", Binds::Always, Writer::Person, "the harness's configuration"),
    row(".gitmodules", Binds::Always, Writer::Person, "where git fetches submodules from"),
    row(".gitignore", Binds::Unscoped, Writer::Person, "what git ignores decides what may be written"),
    row("/agent-config/", Binds::Unscoped, Writer::Person, "the harness's settings and keys"),
    row("/Cargo.lock", Binds::Commit, Writer::Build, "the versions of all dependencies"),
    row("/build.sh", Binds::Commit, Writer::Person, "the build decides whether the work is done"),
    row("/codeRollup.sh", Binds::Commit, Writer::Person, "the supervisor's script"),
    row("/LLMInstructions.md", Binds::Commit, Writer::Person, "the supervisor's instructions"),
    row("UserSpecification.md", Binds::Commit, Writer::Person, "the user's specification"),
    row("/target/", Binds::Commit, Writer::Build, "build output"),
    row("/logs/", Binds::Commit, Writer::Harness, "the records of runs"),
    row("/llm-user-output.txt", Binds::Commit, Writer::Harness, "the record of a run"),
];

const fn row(pattern: &'static str, binds: Binds, writer: Writer, what: &'static str) -> Protected {
    Protected { pattern, binds, writer, what }
}

/// Whether a file of this name is protected in whatever folder it lies.
pub fn is_protected_anywhere(name: &[u8]) -> bool {
    let mut anywhere = PROTECTED.iter().filter(|row| !row.pattern.contains('/'));
    anywhere.any(|row| name.eq_ignore_ascii_case(row.pattern.as_bytes()))
}

/// Names that may be written, but that run code or change what others see: shown in the summary.
const FLAGGED: &[&str] =
    &[".gitattributes", ".cargo/config", ".cargo/config.toml", ".github/workflows/", "build.rs", ".envrc"];

/// Patterns matched by folded name, so that no spelling of a name on any file system slips through.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    patterns: Patterns,
    /// The same as they were given, where folding may take from what they match: no folded name has what `[[:upper:]]` and `[!a-z]` ask
    /// for, and one may be shorter than `?` and letters beyond ASCII are.
    unfolded: Option<Patterns>,
    pub(crate) what: String,
}

impl Folded {
    pub(crate) fn new(pattern: &str, what: &str) -> Self {
        let may_lose = pattern.contains(['[', '?']) || !pattern.is_ascii();
        Folded {
            patterns: Patterns::parse(fold(pattern).as_bytes()),
            unfolded: may_lose.then(|| Patterns::parse(pattern.as_bytes())),
            what: what.to_owned(),
        }
    }

    /// `folded` is the path gone through `fold`. The last name is taken for a folder too: a file must not take the place of a protected
    /// folder.
    pub(crate) fn covers(&self, path: &str, folded: &str) -> bool {
        self.both(path, folded).any(|(patterns, path)| {
            patterns.covers(path, Kind::Folder, Case::Sensitive)
                || patterns.verdict(path, Kind::File, Case::Sensitive) == Some(true)
        })
    }

    /// Whether anything below this folder may be covered; `folded` as for [`covers`](Self::covers).
    pub(crate) fn may_cover_below(&self, path: &str, folded: &str) -> bool {
        self.both(path, folded).any(|(patterns, path)| patterns.may_match_below(path))
    }

    fn both<'a>(&'a self, path: &'a str, folded: &'a str) -> impl Iterator<Item = (&'a Patterns, &'a str)> {
        let unfolded = self.unfolded.iter().map(move |patterns| (patterns, path));
        std::iter::once((&self.patterns, folded)).chain(unfolded)
    }

    /// Whether a pattern names this path without a wildcard, see [`Patterns::name`].
    pub(crate) fn names(&self, folded: &str, within: Within) -> bool {
        self.patterns.name(folded, within)
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
