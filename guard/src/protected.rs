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
    /// `Policy::commit` and stricter: the critical files of S1 §Parsing the Response.
    Commit,
    /// `Policy::implement` only: S0 keeps its records at the root, where a project of another loop may have files of these names.
    Implement,
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
        self.pattern.trim_start_matches("**").trim_matches('/')
    }
}

/// Every protected name. `.git` is not among them: the lexical rules refuse it at every level and in every spelling.
pub const PROTECTED: &[Protected] = &[
    row("/.code-commit/", Binds::Always, Writer::Harness, "the harness's own state"),
    row("/code-commit.toml", Binds::Always, Writer::Person, "the harness's configuration"),
    row(".gitmodules", Binds::Always, Writer::Person, "where git fetches submodules from"),
    // Each names commands that our own loops start without asking: whoever writes them runs code at the next `phase` or `spec`.
    row(
        "**/.abl/abl.config.yaml",
        Binds::Unscoped,
        Writer::Person,
        "the commands that code-commit phase runs",
    ),
    row(".cuggino.json", Binds::Unscoped, Writer::Person, "the commands that code-commit spec runs"),
    row(".gitignore", Binds::Unscoped, Writer::Person, "what git ignores decides what may be written"),
    row("/agent-config/", Binds::Unscoped, Writer::Person, "the harness's settings and keys"),
    row("/Cargo.lock", Binds::Commit, Writer::Build, "the versions of all dependencies"),
    row("/build.sh", Binds::Commit, Writer::Person, "the build decides whether the work is done"),
    row("/codeRollup.sh", Binds::Commit, Writer::Person, "the supervisor's script"),
    row("/LLMInstructions.md", Binds::Commit, Writer::Person, "the supervisor's instructions"),
    row("UserSpecification.md", Binds::Commit, Writer::Person, "the user's specification"),
    row("/target/", Binds::Commit, Writer::Build, "build output"),
    row("/logs/", Binds::Implement, Writer::Harness, "the records of runs"),
    row("/llm-user-output.txt", Binds::Implement, Writer::Harness, "the record of a run"),
];

const fn row(pattern: &'static str, binds: Binds, writer: Writer, what: &'static str) -> Protected {
    Protected { pattern, binds, writer, what }
}

/// Whether a file of this name is protected in whatever folder it lies.
pub fn is_protected_anywhere(name: &[u8]) -> bool {
    let mut anywhere = PROTECTED.iter().filter(|row| !row.pattern.contains('/'));
    anywhere.any(|row| name.eq_ignore_ascii_case(row.pattern.as_bytes()))
}

/// What runs later by itself, or changes what others see: it may be written, and is shown in the summary. A name with a slash behind it
/// is a folder; each counts at every level, since a project may lie in a folder of another.
const FLAGGED: &[&str] = &[
    // Git and what is hooked into it: filters, hooks of every commit.
    ".gitattributes",
    ".husky/",
    ".githooks/",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".overcommit.yml",
    // Coding agents: hooks, servers that they start, what they may do without asking.
    ".claude/",
    ".mcp.json",
    "mcp.json",
    ".gemini/",
    ".codex/",
    ".cursor/",
    ".opencode/",
    "opencode.json",
    ".aider.conf.yml",
    // Our own loops: prompts of roles, and settings in a folder below.
    ".abl/",
    ".cuggino/",
    // Editors: tasks that run when a folder is opened, interpreters and servers by path, containers.
    ".vscode/",
    ".idea/",
    ".zed/",
    ".devcontainer/",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    // Shells that enter the folder.
    ".envrc",
    ".mise.toml",
    "mise.toml",
    // Forges, which hold keys of their own.
    ".github/workflows/",
    ".github/actions/",
    ".gitea/workflows/",
    ".forgejo/workflows/",
    ".gitlab-ci.yml",
    ".circleci/",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker/",
    ".buildkite/",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    // Tools that run code before they do what they were asked for, or fetch it from elsewhere.
    ".cargo/config",
    ".cargo/config.toml",
    "build.rs",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn/",
    ".pnpmfile.cjs",
    ".mvn/",
    "gradle/wrapper/",
    ".bazelrc",
    "sitecustomize.py",
    "usercustomize.py",
];

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
