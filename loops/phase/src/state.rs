//! `state.json`: the state of the loop, for people and for a harness that starts without a journal.

use std::collections::{BTreeMap, BTreeSet};

use code_commit_engine::HoldsFor;
use serde::{Deserialize, Serialize};

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Phases that have passed.
    pub phases_completed: BTreeSet<u32>,
    /// What each pass holds for: specs, verifier, source. A pass without an entry holds for any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub passes: BTreeMap<u32, HoldsFor>,
    /// What the open phase is stuck on: while that is the same, nobody is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck_on: Option<HoldsFor>,
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

/// Why a pass does not hold any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// The specs have changed.
    Specs,
    /// The verifier has: its prompt or its commands.
    Decider,
}

impl State {
    /// A phase has passed.
    pub fn complete(&mut self, phase: u32, pass: HoldsFor, at: String) {
        self.phases_completed.insert(phase);
        self.passes.insert(phase, pass);
        if self.current.phase == Some(phase) {
            self.current.status = Status::Completed;
            (self.current.builder_done, self.current.verifier_done) = (true, true);
            self.stuck_on = None;
        }
        self.last_updated = Some(at);
    }

    /// A phase counts as not passed, and begins anew.
    pub fn reopen(&mut self, phase: u32, at: String) {
        self.phases_completed.remove(&phase);
        self.passes.remove(&phase);
        self.current = Current { phase: Some(phase), ..Current::default() };
        self.stuck_on = None;
        self.last_updated = Some(at);
    }

    /// What the pass of a phase was given for and is another now; `None` if the phase has not passed, or if its
    /// pass holds. The source does not count: later phases change it.
    pub fn stale(&self, phase: u32, now: &HoldsFor) -> Option<Stale> {
        let pass = self.passes.get(&phase).filter(|_| self.phases_completed.contains(&phase))?;
        let differs = |then: &Option<String>, now: &Option<String>| then.is_some() && then != now;
        if differs(&pass.specification, &now.specification) {
            Some(Stale::Specs)
        } else {
            differs(&pass.decider, &now.decider).then_some(Stale::Decider)
        }
    }

    /// Whether the phase has passed, for these specs and with this verifier.
    pub fn has_passed(&self, phase: u32, now: &HoldsFor) -> bool {
        self.phases_completed.contains(&phase) && self.stale(phase, now).is_none()
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

    fn holds_for(specs: &str, decider: &str) -> HoldsFor {
        HoldsFor { tree: None, specification: Some(specs.to_owned()), decider: Some(decider.to_owned()) }
    }

    #[test]
    fn a_pass_holds_for_its_specs_and_its_verifier() {
        let mut state = State::default();
        assert!(!state.has_passed(1, &holds_for("a", "b")));
        state.complete(1, holds_for("a", "b"), "t".to_owned());
        assert!(state.has_passed(1, &holds_for("a", "b")));
        assert_eq!(state.stale(1, &holds_for("x", "y")), Some(Stale::Specs));
        assert_eq!(state.stale(1, &holds_for("a", "y")), Some(Stale::Decider));
        state.passes.clear();
        assert!(state.has_passed(1, &holds_for("x", "y")), "an older file says only that it has passed");
        state.reopen(1, "t".to_owned());
        assert!(!state.has_passed(1, &holds_for("a", "b")));
    }

    #[test]
    fn the_file_has_the_fields_of_the_seed_and_comes_back_from_it() {
        let state = State {
            phases_completed: [1].into(),
            passes: [(1, holds_for("abc", "def"))].into(),
            stuck_on: None,
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
          "passes": {
            "1": {
              "specification": "abc",
              "decider": "def"
            }
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
