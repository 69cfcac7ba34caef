//! The files of a session (S4 §Session Files).

use perform::Place;

/// The dot folder.
pub const STORE: &str = ".cuggino";
/// Session files, and the name of their place.
pub const WIP: &str = "wip";
/// Spec issues, and the name of their place.
pub const ISSUES: &str = "spec-issues";
/// Tasks that wait.
pub const BACKLOG: &str = "backlog";
/// Findings of the audit.
pub const TBD: &str = "tbd";
/// Findings that a person has dismissed.
pub const MEMORY: &str = "memory.md";

/// The names of one session's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    id: String,
}

impl Files {
    /// Of the session `id`, a `UUIDv7`.
    pub fn of(id: &str) -> Self {
        Self { id: id.to_owned() }
    }

    /// The plan and its progress log.
    pub fn session(&self) -> Place {
        self.wip("md")
    }

    /// The plan while it is made.
    pub fn plan(&self) -> Place {
        self.wip("plan.md")
    }

    /// The review.
    pub fn review(&self) -> Place {
        self.wip("review.md")
    }

    /// What the last check printed.
    pub fn check(&self) -> Place {
        self.wip("check.txt")
    }

    /// The spec issue that ended the session.
    pub fn issue(&self) -> Place {
        Place::new(ISSUES, format!("{}.md", self.id))
    }

    /// Everything that is removed when the session ends.
    pub fn all(&self) -> [Place; 4] {
        [self.session(), self.plan(), self.review(), self.check()]
    }

    /// A file's path from the project's root, as prompts name it.
    pub fn path(place: &Place) -> String {
        format!("{STORE}/{}/{}", place.place, place.file)
    }

    fn wip(&self, end: &str) -> Place {
        Place::new(WIP, format!("{}.{end}", self.id))
    }
}
