//! What a run may write: protected names, scope, and whether ignored files are allowed.

use code_commit_repo::Configuration;
use std::collections::BTreeSet;

use code_commit_names::{Binds, Writer};

use crate::fold::{Folded, fold};
use crate::patterns::Choice;
use crate::refusal::{Code, Refusal};

/// What a run may write. Every policy refuses `.git`, the harness's own state and its configuration.
///
/// ```
/// let policy = code_commit_guard::Policy::commit().protect(["tests/**"]);
/// let refusal = policy.refuses("Tests/it.rs").expect("protected names match by case folding");
/// assert_eq!(refusal.code(), code_commit_guard::Code::Protected);
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    protected: Vec<Folded>,
    flagged: Vec<Folded>,
    scope: Scope,
    /// The root's path in the project that the protected names refer to, with a final slash; empty if it is that.
    within: String,
    runs_later: RunsLater,
    /// Whether a file that git ignores is refused.
    pub(crate) heeds_ignore: bool,
    pub(crate) configuration: Configuration,
}

/// What may be written at all.
#[derive(Debug, Clone)]
enum Scope {
    Everything,
    /// Only these files, even those that git ignores.
    Files(BTreeSet<String>),
    /// The last of these entries that fits decides.
    Entries(Vec<String>),
}

impl Scope {
    fn holds(&self, path: &str) -> bool {
        let entries = match self {
            Self::Everything => return true,
            Self::Files(files) => return files.contains(path),
            Self::Entries(entries) => entries,
        };
        let fits = |entry: &str| {
            entry == "/" || entry == path || (entry.ends_with('/') && path.starts_with(entry))
        };
        let last = entries
            .iter()
            .rev()
            .find(|entry| fits(entry.strip_prefix('!').unwrap_or(entry)));
        last.is_some_and(|entry| !entry.starts_with('!'))
    }
}

/// What becomes of names that a program runs later without being asked.
#[derive(Debug, Clone)]
enum RunsLater {
    /// Whoever asked for the change sees that it is flagged.
    Flagged,
    /// Nobody asked for it, except for what these patterns match.
    RefusedUnless(Choice),
}

impl Policy {
    /// The minimum: protects `.git`, the harness's own files, `build.sh`, keys, and whatever git ignores.
    #[must_use]
    pub fn new() -> Self {
        Policy::binding(Binds::Unscoped)
    }

    /// Also protects the critical files of S1 §Parsing the Response.
    #[must_use]
    pub fn commit() -> Self {
        Policy::binding(Binds::Commit)
    }

    /// Also protects the records that S0 keeps at the root (S0 §Logging), and allows ignored files.
    #[must_use]
    pub fn implement() -> Self {
        Policy {
            heeds_ignore: false,
            ..Policy::binding(Binds::Implement)
        }
    }

    /// What a build may change: everything except what a user or the harness writes, and what a program runs later
    /// without being asked. Lock files, which builds update, are allowed.
    #[must_use]
    pub fn build(strictest: Binds) -> Self {
        let kept = code_commit_names::protected(strictest)
            .filter(|row| row.writer() != Some(Writer::Build));
        let protected = kept.map(|row| Folded::new(row.pattern, row.why)).collect();
        let runs_later = RunsLater::RefusedUnless(Choice::default());
        Policy {
            protected,
            runs_later,
            ..Policy::binding(strictest)
        }
    }

    /// For [`build`](Self::build): allows what these gitignore patterns match, relative to the root, although a
    /// program runs it later. A repository cannot allow it to itself: the patterns come from a person.
    #[must_use]
    pub fn may_write<S: AsRef<str>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        let patterns: Vec<S> = patterns.into_iter().collect();
        Policy {
            runs_later: RunsLater::RefusedUnless(Choice::of(&patterns)),
            ..self
        }
    }

    /// Allows only these files, with exactly this spelling (S2 `allowed_files`: explicit relative
    /// paths, no patterns).
    ///
    /// The list was written by a user, so it may name files that git ignores or that other
    /// policies protect, but never `.git` or the harness's own files.
    #[must_use]
    pub fn scoped<S: Into<String>>(allowed: impl IntoIterator<Item = S>) -> Self {
        let scope = Scope::Files(allowed.into_iter().map(Into::into).collect());
        Policy {
            scope,
            heeds_ignore: false,
            ..Policy::binding(Binds::Always)
        }
    }

    /// What a role of agents may touch, relative to its root: files, or folders with a final `/`, `/` for everything. The
    /// last entry that fits decides, and a leading `!` negates it. A role works as a person does: without protected names, every name that
    /// the disk can hold is allowed, and so are symlinks and what runs later.
    #[must_use]
    pub fn role<S: Into<String>>(entries: impl IntoIterator<Item = S>) -> Self {
        Policy {
            protected: Vec::new(),
            scope: Scope::Entries(entries.into_iter().map(Into::into).collect()),
            heeds_ignore: false,
            ..Policy::binding(Binds::Always)
        }
    }

    /// Whether it is a [role](Self::role)'s.
    pub fn is_of_role(&self) -> bool {
        matches!(self.scope, Scope::Entries(_))
    }

    /// The root is this folder, with a final slash, of the project that the protected names refer to.
    #[must_use]
    pub fn within(self, folder: impl Into<String>) -> Self {
        let within = folder.into();
        Policy { within, ..self }
    }

    /// Whether it protects any name.
    pub fn protects_any(&self) -> bool {
        !self.protected.is_empty()
    }

    fn binding(strictest: Binds) -> Self {
        Policy {
            protected: code_commit_names::off_limits(strictest)
                .map(|row| Folded::new(row.pattern, row.why))
                .collect(),
            flagged: Vec::new(),
            scope: Scope::Everything,
            within: String::new(),
            runs_later: RunsLater::Flagged,
            heeds_ignore: true,
            configuration: Configuration::All,
        }
    }

    /// Protects what these gitignore patterns match, relative to the root, regardless of case and
    /// Unicode form.
    ///
    /// Each call is one list: a `!` pattern only re-includes what an earlier pattern of the same
    /// call protects. A list with `[`, `?` or non-ASCII letters is also matched exactly as written,
    /// because no folded name matches `[[:upper:]]`; a path is then re-included only if both ways
    /// agree.
    #[must_use]
    pub fn protect<S: AsRef<str>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.protect_as("the configuration's `protect` list", patterns)
    }

    /// Protects these patterns, and gives `what` as the reason for the refusal.
    #[must_use]
    pub fn protect_as<S: AsRef<str>>(
        mut self,
        what: &str,
        patterns: impl IntoIterator<Item = S>,
    ) -> Self {
        let lines: Vec<String> = patterns
            .into_iter()
            .map(|p| p.as_ref().to_owned())
            .collect();
        if !lines.is_empty() {
            self.protected.push(Folded::new(&lines.join("\n"), what));
        }
        self
    }

    /// Allows what these gitignore patterns match, but gives this reason to review it.
    #[must_use]
    pub fn flag_as<S: AsRef<str>>(
        mut self,
        what: &str,
        patterns: impl IntoIterator<Item = S>,
    ) -> Self {
        let lines: Vec<String> = patterns
            .into_iter()
            .map(|p| p.as_ref().to_owned())
            .collect();
        if !lines.is_empty() {
            self.flagged.push(Folded::new(&lines.join("\n"), what));
        }
        self
    }

    /// Why the user should review a change of `path`, if the policy says so.
    pub fn flags(&self, path: &str) -> Option<&str> {
        let folded = fold(path);
        self.flagged
            .iter()
            .find(|name| name.covers(path, &folded))
            .map(|name| name.what.as_str())
    }

    /// Sets which git configuration decides what is ignored.
    #[must_use]
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// The refusal that needs no access to the disk: characters, protected names, scope.
    pub fn refuses(&self, path: &str) -> Option<Refusal> {
        self.refuses_bytes(path.as_bytes())
    }

    /// As [`refuses`](Self::refuses), of a name that may be no text.
    pub fn refuses_bytes(&self, path: &[u8]) -> Option<Refusal> {
        self.check(path).err()
    }

    pub(crate) fn check<'a>(&self, path: &'a [u8]) -> Result<&'a str, Refusal> {
        if self.is_of_role() {
            let text = String::from_utf8_lossy(path);
            // A name that cannot be judged may be a protected one.
            let odd = crate::lexical::check(path).err();
            if let Some(code) = odd.filter(|code| self.protects_any() && *code != Code::DotGit) {
                return Err(Refusal::new(code, path));
            }
            if let Some(what) = self.protects(&text) {
                return Err(Refusal::with(Code::Protected, path, what));
            }
            let is_in_scope = self.scope.holds(&text);
            // It is never written by name.
            let text = std::str::from_utf8(path).unwrap_or_default();
            return if is_in_scope {
                Ok(text)
            } else {
                Err(Refusal::new(Code::OutOfScope, path))
            };
        }
        let text = crate::lexical::check(path).map_err(|code| {
            // The only protected name that the character checks detect.
            let detail = if code == Code::Protected {
                "a spelling of .gitmodules"
            } else {
                ""
            };
            Refusal::with(code, path, detail)
        })?;
        if let Some(what) = self.protects(text) {
            return Err(Refusal::with(Code::Protected, path, what));
        }
        if !self.scope.holds(text) {
            return Err(Refusal::new(Code::OutOfScope, path));
        }
        if let RunsLater::RefusedUnless(allowed) = &self.runs_later
            && let Some(row) = code_commit_names::runs_later(&fold(text))
            && !allowed.covers(text)
        {
            return Err(Refusal::with(Code::RunsLater, path, row.why));
        }
        Ok(text)
    }

    /// A description of the protected name that covers `path`, if any. Does not check whether the
    /// path may be written for other reasons.
    pub fn protects(&self, path: &str) -> Option<&str> {
        let path = &*format!("{}{path}", self.within);
        let folded = fold(path);
        self.protected
            .iter()
            .find(|name| name.covers(path, &folded))
            .map(|name| name.what.as_str())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::new()
    }
}
