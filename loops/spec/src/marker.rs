//! Which role may emit which marker (S4 §Marker Availability).

use code_commit_engine::Named;
use code_commit_prompt::spec::Who;
use serde::{Deserialize, Serialize};

/// An agent of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Makes the plan.
    Planning,
    /// Implements one task of it.
    Implementing,
    /// Compares the result with the specs.
    Reviewing,
    /// Looks for problems that a person should see, in idle time.
    Audit,
}

/// A person has to settle something: the loop ends at once (S4 §Spec Issue Handling).
pub const SPEC_ISSUE: &str = "SPEC_ISSUE";
pub(crate) const PLAN_COMPLETE: &str = "PLAN_COMPLETE";
pub(crate) const PROGRESS: &str = "PROGRESS";
pub(crate) const DONE: &str = "DONE";
pub(crate) const APPROVED: &str = "APPROVED";
pub(crate) const REQUEST_CHANGES: &str = "REQUEST_CHANGES";

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [
        Self::Planning,
        Self::Implementing,
        Self::Reviewing,
        Self::Audit,
    ];

    /// Its name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Implementing => "implementing",
            Self::Reviewing => "reviewing",
            Self::Audit => "audit",
        }
    }

    /// The role with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Its name in `prompt`.
    pub(crate) fn who(self) -> Who {
        match self {
            Self::Planning => Who::Planning,
            Self::Implementing => Who::Implementing,
            Self::Reviewing => Who::Reviewing,
            Self::Audit => Who::Audit,
        }
    }

    /// The markers that are recognized in its text; all others are plain text.
    pub fn markers(self) -> &'static [&'static str] {
        match self {
            Self::Planning => &[SPEC_ISSUE, PLAN_COMPLETE],
            Self::Implementing => &["NOTE", SPEC_ISSUE, PROGRESS, DONE],
            Self::Reviewing => &[SPEC_ISSUE, APPROVED, REQUEST_CHANGES],
            Self::Audit => &["TO_BE_DISCUSSED"],
        }
    }

    /// The markers that end its turn, the most cautious first.
    pub fn terminal(self) -> &'static [&'static str] {
        match self {
            Self::Planning => &[SPEC_ISSUE, PLAN_COMPLETE],
            Self::Implementing => &[SPEC_ISSUE, PROGRESS, DONE],
            Self::Reviewing => &[SPEC_ISSUE, REQUEST_CHANGES, APPROVED],
            Self::Audit => &[],
        }
    }
}

impl Named for Role {
    fn name(self) -> &'static str {
        self.name()
    }
}

#[cfg(test)]
mod tests {
    use code_commit_prompt::spec::system;

    use super::*;

    #[test]
    fn a_role_is_taught_the_markers_that_are_read_out_of_its_text_and_no_others() {
        for role in Role::ALL {
            let text = system(role.who(), "docs/specs");
            for name in Role::ALL.into_iter().flat_map(Role::markers) {
                let taught = text.contains(&format!("<{name}>"));
                assert_eq!(taught, role.markers().contains(name), "{role:?} {name}");
            }
            assert!(
                role.terminal()
                    .iter()
                    .all(|name| role.markers().contains(name))
            );
        }
    }

    #[test]
    fn a_role_is_found_by_its_name() {
        assert!(
            Role::ALL
                .iter()
                .all(|role| Role::named(role.name()) == Some(*role))
        );
        assert_eq!(Role::named("builder"), None);
    }
}
