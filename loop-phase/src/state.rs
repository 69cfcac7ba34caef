//! `state.json`: the state of the loop, for people and for a harness that starts without a journal.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Phases that have passed.
    pub phases_completed: BTreeSet<u32>,
    /// For which specs each of them has passed: a SHA-256 over the specs up to it. A pass without one
    /// holds for any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_for: BTreeMap<u32, String>,
    /// Titles of the phases seen so far.
    pub phase_titles: BTreeMap<u32, String>,
    /// The phase in progress.
    pub current: Current,
    /// When the file was written, RFC 3339.
    pub last_updated: Option<String>,
}

/// The phase in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Current {
    /// Its number; `None` before the first.
    pub phase: Option<u32>,
    /// The iteration, from 1; 0 before the first.
    pub verifier_iteration: u32,
    /// Its status.
    pub status: Status,
    /// Whether the builder's turn of this iteration is done.
    pub builder_done: bool,
    /// Whether the verifier's is.
    pub verifier_done: bool,
}

/// The status of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing is open.
    #[default]
    Clean,
    /// The builder is working.
    Building,
    /// The verifier is working.
    Verifying,
    /// The verifier found contracts that do not hold.
    ContractsFailed,
    /// The verifier found some in the last possible iteration, too.
    Stuck,
    /// The phase has passed.
    Completed,
}

impl State {
    /// A phase has passed for the specs with this hash.
    pub fn complete(&mut self, phase: u32, specs_sha256: String, at: String) {
        self.phases_completed.insert(phase);
        self.passed_for.insert(phase, specs_sha256);
        if self.current.phase == Some(phase) {
            self.current.status = Status::Completed;
            (self.current.builder_done, self.current.verifier_done) = (true, true);
        }
        self.last_updated = Some(at);
    }

    /// A phase counts as not passed, and begins anew.
    pub fn reopen(&mut self, phase: u32, at: String) {
        self.phases_completed.remove(&phase);
        self.passed_for.remove(&phase);
        self.current = Current { phase: Some(phase), ..Current::default() };
        self.last_updated = Some(at);
    }

    /// Whether the phase has passed for the specs with this hash.
    pub fn has_passed(&self, phase: u32, specs_sha256: &str) -> bool {
        let is_for_these = || self.passed_for.get(&phase).is_none_or(|specs| specs == specs_sha256);
        self.phases_completed.contains(&phase) && is_for_these()
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Number keys and strings always have a JSON form.
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
            passed_for: [(1, "abc".to_owned())].into(),
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
          "passed_for": {
            "1": "abc"
          },
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
