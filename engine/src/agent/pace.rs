//! How a turn goes on that its agent could not finish: in its own session, with another agent, or after a wait. One place for
//! all loops.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::files::AgentLoop;
use super::turn::{Turn, TurnAdvice, Turned};
use crate::Wait;

/// The maximum number of waits in one turn. Each is at least twice as long as the one before it.
const QUOTA_WAITS: u32 = 10;

/// The agents of a role besides its first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agents {
    /// Those that work where the first one cannot.
    pub others: u32,
    /// Those for repairs, one for each; the last one also for all further repairs.
    pub stronger: u32,
}

impl Agents {
    /// Whether the first one is the only one.
    #[must_use]
    pub fn is_one(&self) -> bool {
        *self == Self::default()
    }

    /// The agents to ask in turn, by number: 0, then the others, then the stronger ones, as lists of models are asked.
    fn order(self, repairs: u32) -> Vec<u32> {
        let skipped = if repairs == 0 {
            self.stronger
        } else {
            (repairs - 1).min(self.stronger.saturating_sub(1))
        };
        let stronger = (skipped..self.stronger).map(|number| 1 + self.others + number);
        stronger.chain(0..=self.others).collect()
    }
}

/// What to do after an attempt.
#[derive(Debug)]
pub enum Next {
    /// Nothing more helps: the loop judges the turn.
    Judge,
    /// The same agent does it again.
    Again,
    /// Another agent does it, in a session of its own.
    Other,
    /// Wait, and if that is possible ask for the turn again.
    Wait(Wait),
}

/// The attempts of one turn.
#[derive(Debug)]
pub struct Pace {
    order: Vec<u32>,
    at: usize,
    waits: u32,
    /// When the first quota is renewed.
    soonest: Option<u64>,
    /// Sessions that were cut off, by agent.
    sessions: BTreeMap<u32, String>,
}

impl Pace {
    /// After this many failures of the work itself.
    pub fn new(agents: Agents, repairs: u32) -> Self {
        Self {
            order: agents.order(repairs),
            at: 0,
            waits: 0,
            soonest: None,
            sessions: BTreeMap::new(),
        }
    }

    fn choice(&self) -> u32 {
        self.order.get(self.at).copied().unwrap_or_default()
    }

    /// The turn as its next agent does it.
    #[must_use]
    pub fn lead<P: AgentLoop>(&self, turn: Turn<P>) -> Turn<P> {
        let choice = self.choice();
        Turn {
            choice,
            goes_on: self.sessions.get(&choice).cloned(),
            ..turn
        }
    }

    /// After an attempt has ended.
    pub fn after(&mut self, turned: &Turned) -> Next {
        let (choice, end) = (self.choice(), &turned.end);
        if end.then == TurnAdvice::Renew && self.sessions.remove(&choice).is_some() {
            return Next::Again;
        }
        if end.then == TurnAdvice::Repeat {
            self.keep(choice, turned);
            return Next::Again;
        }
        if let TurnAdvice::WaitUntil(when) = end.then {
            self.keep(choice, turned);
            self.soonest = Some(self.soonest.map_or(when, |soonest| soonest.min(when)));
        } else if !end.asks_for_another {
            return Next::Judge;
        }
        if self.at + 1 < self.order.len() {
            self.at += 1;
            return Next::Other;
        }
        self.at = 0;
        match self.soonest.take() {
            Some(until_unix) if self.waits < QUOTA_WAITS => {
                let at_least_secs = 1 << self.waits;
                self.waits += 1;
                Next::Wait(Wait {
                    until_unix,
                    at_least_secs,
                    why: end.said.clone(),
                })
            }
            Some(_) | None => Next::Judge,
        }
    }

    /// What was cut off goes on where it was, if its session is known.
    fn keep(&mut self, choice: u32, turned: &Turned) {
        let session = turned.session.clone();
        self.sessions.remove(&choice);
        self.sessions
            .extend(session.map(|session| (choice, session)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_asked_as_models_are() {
        let agents = Agents {
            others: 1,
            stronger: 2,
        };
        let orders: Vec<_> = (0..4).map(|repairs| agents.order(repairs)).collect();
        assert_eq!(
            orders,
            [vec![0, 1], vec![2, 3, 0, 1], vec![3, 0, 1], vec![3, 0, 1]]
        );
        assert_eq!(Agents::default().order(3), [0]);
    }
}
