//! The events of a run, with the seed's names (S4 §Loop Stream).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A phase of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "every event has its iteration; `content` is a text"
)]
pub enum PhaseEvent {
    /// An iteration begins: plan, implement, review.
    IterationStart {
        /// Which, from 1.
        iteration: u32,
        /// The maximum number of iterations.
        max_iterations: u32,
    },
    /// The planning agent's turn.
    PlanningStart { iteration: u32 },
    /// An implementing agent's turn.
    ImplementingStart { iteration: u32 },
    /// The reviewing agent's turn.
    ReviewingStart { iteration: u32 },
    /// The specs were edited since the turn before; agents and verdicts go by the new ones.
    SpecsChanged { iteration: u32 },
    /// A quota is used up; the run continues when it is renewed.
    QuotaWaitStart {
        iteration: u32,
        /// When that is, in seconds since 1970 (UTC).
        until_unix: u64,
    },
    /// The reviewer approved. The last event of a run.
    LoopApproved { iteration: u32 },
    /// A person has to settle something in the specs. The last event of a run.
    LoopSpecIssue {
        iteration: u32,
        content: String,
        /// The file with it, below `.cuggino/spec-issues/`.
        filename: String,
    },
    /// All iterations are used up. The last event of a run.
    LoopMaxIterations {
        iteration: u32,
        /// The last review, for a person to judge. Empty in older journals.
        #[serde(default)]
        review: String,
    },
}

impl PhaseEvent {
    /// Whether it is followed by a turn.
    pub(crate) fn begins_turn(&self) -> bool {
        matches!(
            self,
            Self::PlanningStart { .. }
                | Self::ImplementingStart { .. }
                | Self::ReviewingStart { .. }
        )
    }

    /// Whether it ends the run.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::LoopApproved { .. } | Self::LoopSpecIssue { .. } | Self::LoopMaxIterations { .. }
        )
    }

    /// Its form in the journal and in NDJSON.
    pub fn to_json(&self) -> Value {
        // Strings and numbers always have a JSON form.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads it from the journal; `None` for an event of another loop.
    pub fn of_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_and_fields_of_the_seed() {
        let issue = PhaseEvent::LoopSpecIssue {
            iteration: 1,
            content: "X?".into(),
            filename: "ID.md".into(),
        };
        let start = PhaseEvent::IterationStart {
            iteration: 1,
            max_iterations: 10,
        };
        insta::assert_snapshot!(format!("{}\n{}", start.to_json(), issue.to_json()), @r#"
        {"event":"IterationStart","iteration":1,"maxIterations":10}
        {"content":"X?","event":"LoopSpecIssue","filename":"ID.md","iteration":1}
        "#);
        assert_eq!(PhaseEvent::of_json(&issue.to_json()), Some(issue));
    }
}
