//! `state.json`: where the loop is, for people and for a harness that starts without a journal.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Phases that have passed.
    pub phases_completed: BTreeSet<u32>,
    /// Titles of the phases that were seen.
    pub phase_titles: BTreeMap<u32, String>,
    /// What is worked on.
    pub current: Current,
    /// When this was written, RFC 3339.
    pub last_updated: Option<String>,
}

/// What is worked on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Current {
    /// The phase; none before the first.
    pub phase: Option<u32>,
    /// The iteration, from 1; 0 before the first.
    pub verifier_iteration: u32,
    /// How it stands.
    pub status: Status,
    /// Whether the builder's turn of this iteration is done.
    pub builder_done: bool,
    /// Whether the verifier's is.
    pub verifier_done: bool,
}

/// How a phase stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing is open.
    #[default]
    Clean,
    /// The builder's turn.
    Building,
    /// The verifier's turn.
    Verifying,
    /// The verifier found contracts that do not hold.
    ContractsFailed,
    /// It found some in every iteration there may be.
    Stuck,
    /// The phase has passed.
    Completed,
}

impl State {
    /// The open phase has passed.
    pub fn complete(&mut self, phase: u32, at: String) {
        self.phases_completed.insert(phase);
        self.current.status = Status::Completed;
        (self.current.builder_done, self.current.verifier_done) = (true, true);
        self.last_updated = Some(at);
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // A map with number keys and strings always has a JSON form.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_fields_of_the_seed_and_comes_back_from_it() {
        let state = State {
            phases_completed: [1].into(),
            phase_titles: [(1, "Login".to_owned()), (2, "Cart".to_owned())].into(),
            current: Current {
                phase: Some(2),
                verifier_iteration: 3,
                status: Status::ContractsFailed,
                builder_done: true,
                verifier_done: true,
            },
            last_updated: Some("2026-11-21T09:30:05.042Z".to_owned()),
        };
        insta::assert_snapshot!(state.to_json(), @r#"
        {
          "phases_completed": [
            1
          ],
          "phase_titles": {
            "1": "Login",
            "2": "Cart"
          },
          "current": {
            "phase": 2,
            "verifier_iteration": 3,
            "status": "contracts_failed",
            "builder_done": true,
            "verifier_done": true
          },
          "last_updated": "2026-11-21T09:30:05.042Z"
        }
        "#);
        assert_eq!(serde_json::from_str::<State>(&state.to_json()).unwrap(), state);
        assert_eq!(serde_json::from_str::<State>("{}").unwrap(), State::default());
    }
}
