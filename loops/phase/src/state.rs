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
    /// The identities of the tests that decided the passes. A pass without one holds for any tests.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tests: BTreeMap<u32, String>,
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
    /// SHA-256 over the specs that it is worked on by; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specs: Option<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    /// The specs have changed.
    Specs,
    /// The verifier has: its prompt or its commands.
    Decider,
    /// The tests that decided have.
    Tests,
    /// The source has, since the newest phase passed.
    Source,
}

impl State {
    /// A phase has passed.
    pub fn complete(&mut self, phase: u32, pass: HoldsFor, tests: Option<String>, at: String) {
        self.phases_completed.insert(phase);
        self.passes.insert(phase, pass);
        self.tests.remove(&phase);
        self.tests.extend(tests.map(|tests| (phase, tests)));
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
        self.tests.remove(&phase);
        self.current = Current {
            phase: Some(phase),
            ..Current::default()
        };
        self.stuck_on = None;
        self.last_updated = Some(at);
    }

    /// What the pass of a phase was given for and is another now; `None` if the phase has not passed, or if its
    /// pass holds. Source and tests do not count: later phases change them.
    pub fn stale(&self, phase: u32, now: &HoldsFor) -> Option<Stale> {
        let pass = self
            .passes
            .get(&phase)
            .filter(|_| self.phases_completed.contains(&phase))?;
        let differs = |then: &Option<String>, now: &Option<String>| then.is_some() && then != now;
        if differs(&pass.specification, &now.specification) {
            Some(Stale::Specs)
        } else {
            differs(&pass.decider, &now.decider).then_some(Stale::Decider)
        }
    }

    /// Which of source and tests is another one than the newest pass was given for: a verification is about all
    /// phases up to its own. `None` while another phase is open, whose verification is about them.
    pub fn moved_on(&self, phase: u32, source: Option<&str>, tests: Option<&str>) -> Option<Stale> {
        if self
            .current
            .phase
            .is_some_and(|open| open != phase && !self.phases_completed.contains(&open))
        {
            return None;
        }
        let is_now = |then: Option<&String>, now: Option<&str>| {
            then.is_none_or(|then| Some(then.as_str()) == now)
        };
        let why = |passed: &u32, pass: &HoldsFor| {
            let of_tests = (!is_now(self.tests.get(passed), tests)).then_some(Stale::Tests);
            if is_now(pass.tree.as_ref(), source) {
                of_tests
            } else {
                Some(Stale::Source)
            }
        };
        let given = self.phases_completed.range(phase..);
        given
            .filter_map(|passed| Some(why(passed, self.passes.get(passed)?)))
            .min()
            .flatten()
    }

    /// Whether the phase has passed, for these specs and with this verifier.
    pub fn has_passed(&self, phase: u32, now: &HoldsFor) -> bool {
        self.phases_completed.contains(&phase) && self.stale(phase, now).is_none()
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Number keys and strings always have a JSON form.
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds_for(specs: &str, decider: &str) -> HoldsFor {
        HoldsFor {
            tree: None,
            specification: Some(specs.to_owned()),
            decider: Some(decider.to_owned()),
        }
    }

    #[test]
    fn a_pass_holds_for_its_specs_and_its_verifier() {
        let mut state = State::default();
        assert!(!state.has_passed(1, &holds_for("a", "b")));
        state.complete(1, holds_for("a", "b"), None, "t".to_owned());
        assert!(state.has_passed(1, &holds_for("a", "b")));
        assert_eq!(state.stale(1, &holds_for("x", "y")), Some(Stale::Specs));
        assert_eq!(state.stale(1, &holds_for("a", "y")), Some(Stale::Decider));
        state.passes.clear();
        assert!(
            state.has_passed(1, &holds_for("x", "y")),
            "an older file says only that it has passed"
        );
        state.reopen(1, "t".to_owned());
        assert!(!state.has_passed(1, &holds_for("a", "b")));
    }

    #[test]
    fn a_pass_holds_for_source_and_tests_until_a_later_one_is_given_for_others() {
        let pass = |tree: &str| HoldsFor {
            tree: Some(tree.to_owned()),
            ..holds_for("a", "b")
        };
        let mut state = State::default();
        let tests = |name: &str| Some(name.to_owned());
        state.complete(1, pass("one"), tests("t1"), "t".to_owned());
        assert_eq!(state.moved_on(1, Some("one"), Some("t1")), None);
        assert_eq!(
            state.moved_on(1, Some("sabotage"), Some("t1")),
            Some(Stale::Source)
        );
        assert_eq!(
            state.moved_on(1, Some("one"), Some("t2")),
            Some(Stale::Tests)
        );
        state.complete(2, pass("two"), tests("t2"), "t".to_owned());
        assert_eq!(
            state.moved_on(1, Some("two"), Some("t2")),
            None,
            "phase 2 was verified with phase 1"
        );
        assert_eq!(
            state.moved_on(2, Some("one"), Some("t1")),
            Some(Stale::Source)
        );
        state.current.phase = Some(3);
        assert_eq!(
            state.moved_on(2, Some("three"), Some("t3")),
            None,
            "phase 3 will be verified with both"
        );
        state.current.phase = Some(2);
        state.complete(2, HoldsFor::default(), None, "t".to_owned());
        assert_eq!(
            state.moved_on(2, Some("x"), Some("y")),
            None,
            "an older file does not say"
        );
    }

    #[test]
    fn the_file_has_the_fields_of_the_seed_and_comes_back_from_it() {
        let state = State {
            phases_completed: [1].into(),
            passes: [(1, holds_for("abc", "def"))].into(),
            tests: BTreeMap::new(),
            stuck_on: None,
            phase_titles: [(1, "Login".to_owned()), (2, "Cart".to_owned())].into(),
            current: Current {
                phase: Some(2),
                verifier_iteration: 3,
                status: Status::ContractsFailed,
                builder_done: true,
                verifier_done: true,
                specs: None,
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
        assert_eq!(
            serde_json::from_str::<State>(&state.to_json()).unwrap(),
            state
        );
        assert_eq!(
            serde_json::from_str::<State>("{}").unwrap(),
            State::default()
        );
    }
}
