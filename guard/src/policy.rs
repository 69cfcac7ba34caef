//! What a run may write: the protected names, the scope, and whether ignored files are off limits.

use std::collections::BTreeSet;

use gix::glob::pattern::Case;
use names::Binds;

use crate::fold::fold;
use crate::folded::Folded;
use crate::patterns::{Kind, Patterns};
use crate::refusal::{Code, Refusal};

/// What a run may write. Every policy refuses `.git`, the harness's own state and its configuration.
///
/// ```
/// let policy = guard::Policy::commit().protect(["tests/**"]);
/// let refusal = policy.refuses("Tests/it.rs").expect("protected names match by case folding");
/// assert_eq!(refusal.code(), guard::Code::Protected);
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    protected: Vec<Folded>,
    scope: Scope,
    pub(crate) ignored: Ignored,
    pub(crate) configuration: Configuration,
}

#[derive(Debug, Clone)]
enum Scope {
    Everything,
    Files(BTreeSet<String>),
    Matching(Patterns),
}

/// Whether a file that git ignores may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It may not.
    Refused,
    /// It may, since somebody named it.
    Allowed,
}

/// Which git configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configuration {
    /// The system's, the user's and the repository's, as git does.
    All,
    /// The repository's alone: no file of the user decides, which tests need.
    RepositoryOnly,
}

impl Policy {
    /// The least: `.git`, the harness's own files, `.gitignore` anywhere, keys, and whatever git ignores.
    #[must_use]
    pub fn new() -> Self {
        Policy::binding(Binds::Unscoped)
    }

    /// The critical files of S1 §Parsing the Response besides those of [`Policy::new`].
    #[must_use]
    pub fn commit() -> Self {
        Policy::binding(Binds::Commit)
    }

    /// The same and the records that S0 keeps at the root (S0 §Logging).
    #[must_use]
    pub fn implement() -> Self {
        Policy::binding(Binds::Implement)
    }

    /// Only these files (S2 `allowed_files`: explicit relative paths, no patterns), spelled exactly so.
    ///
    /// The list is a person's own word, so it may name what git ignores and what other policies protect, but
    /// never `.git` or the harness's own files.
    #[must_use]
    pub fn scoped<S: Into<String>>(allowed: impl IntoIterator<Item = S>) -> Self {
        let scope = Scope::Files(allowed.into_iter().map(Into::into).collect());
        Policy { scope, ignored: Ignored::Allowed, ..Policy::binding(Binds::Always) }
    }

    fn binding(strictest: Binds) -> Self {
        Policy {
            protected: names::protected(strictest).map(|row| Folded::new(row.pattern, row.why)).collect(),
            scope: Scope::Everything,
            ignored: Ignored::Refused,
            configuration: Configuration::All,
        }
    }

    /// Protects what these gitignore patterns match, relative to the root, whatever its case and Unicode form.
    ///
    /// One list: a `!` pattern takes back what an earlier one of the same call protects. A list with `[`, `?` or letters beyond ASCII
    /// is also matched letter for letter, since `[[:upper:]]` matches no name without its case; it then takes back only what it takes
    /// back both ways.
    #[must_use]
    pub fn protect<S: AsRef<str>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.protect_as("the configuration's `protect` list", patterns)
    }

    /// The same for files that are protected for another reason, which the refusal names.
    #[must_use]
    pub fn protect_as<S: AsRef<str>>(mut self, what: &str, patterns: impl IntoIterator<Item = S>) -> Self {
        let lines: Vec<String> = patterns.into_iter().map(|p| p.as_ref().to_owned()).collect();
        if !lines.is_empty() {
            self.protected.push(Folded::new(&lines.join("\n"), what));
        }
        self
    }

    /// Allows only what these gitignore patterns match, letter for letter (the role tables of S3 and S4).
    #[must_use]
    pub fn only<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        let lines: Vec<String> = patterns.into_iter().map(|p| p.as_ref().to_owned()).collect();
        self.scope = Scope::Matching(Patterns::parse(lines.join("\n").as_bytes()));
        self
    }

    /// Whether a file that git ignores may be written.
    #[must_use]
    pub fn ignored(mut self, ignored: Ignored) -> Self {
        self.ignored = ignored;
        self
    }

    /// Which git configuration decides what is ignored.
    #[must_use]
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// What can be said of the path without looking at any disk: its characters, the protected names, the scope.
    pub fn refuses(&self, path: &str) -> Option<Refusal> {
        self.check(path.as_bytes()).err()
    }

    pub(crate) fn check<'a>(&self, path: &'a [u8]) -> Result<&'a str, Refusal> {
        let text = crate::lexical::check(path).map_err(|code| {
            // The one protected name that is told by its characters.
            let detail = if code == Code::Protected { "a spelling of .gitmodules" } else { "" };
            Refusal::with(code, path, detail)
        })?;
        if let Some(what) = self.protects(text) {
            return Err(Refusal::with(Code::Protected, path, what));
        }
        if !self.scope.contains(text) {
            return Err(Refusal::new(Code::OutOfScope, path));
        }
        Ok(text)
    }

    /// What the protected name is that covers `path`, if one does. Whether it may be written for other reasons is not asked.
    pub fn protects(&self, path: &str) -> Option<&str> {
        let folded = fold(path);
        self.protected.iter().find(|name| name.covers(path, &folded)).map(|name| name.what.as_str())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::new()
    }
}

impl Scope {
    fn contains(&self, path: &str) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Files(files) => files.contains(path),
            Scope::Matching(patterns) => patterns.covers(path, Kind::File, Case::Sensitive),
        }
    }
}
