//! The files of a session (S4 §Session Files).

use code_commit_engine::{At, Named as _};

use crate::Place;

/// The dot folder.
pub const STORE: &str = ".cuggino";
/// The place with the session files.
pub const WIP: &str = "wip";
/// The place with the spec issues.
pub const ISSUES: &str = "spec-issues";
/// Tasks waiting to be processed.
pub const BACKLOG: &str = "backlog";
/// Findings of the audit.
pub const TBD: &str = "tbd";
/// Findings that a person dismissed.
pub const MEMORY: &str = "memory.md";

/// The names of one session's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    id: String,
}

impl Files {
    /// The files of session `id`, a `UUIDv7`.
    pub fn of(id: &str) -> Self {
        Self { id: id.to_owned() }
    }

    /// The plan and its progress log.
    pub fn session(&self) -> At<Place> {
        self.wip("md")
    }

    /// The plan, until it becomes the session file.
    pub fn plan(&self) -> At<Place> {
        self.wip("plan.md")
    }

    /// The review.
    pub fn review(&self) -> At<Place> {
        self.wip("review.md")
    }

    /// The output of the last check.
    pub fn check(&self) -> At<Place> {
        self.wip("check.txt")
    }

    /// The spec issue that ended the session.
    pub fn issue(&self) -> At<Place> {
        At::new(Place::SpecIssues, format!("{}.md", self.id))
    }

    /// Everything that is removed when the session ends.
    pub fn all(&self) -> [At<Place>; 4] {
        [self.session(), self.plan(), self.review(), self.check()]
    }

    /// A file's path relative to the project's root, as prompts name it.
    pub fn path(at: &At<Place>) -> String {
        format!("{STORE}/{}/{}", at.place.name(), at.file)
    }

    fn wip(&self, end: &str) -> At<Place> {
        At::new(Place::Wip, format!("{}.{end}", self.id))
    }
}
