//! One run: plan, implement, review, and again until it is approved (S4 §Main Loop Flow).

mod ask;
mod end;
mod learn;

use std::collections::VecDeque;
use std::sync::Arc;

use agent::End;

use crate::{CHECK, Files, Inputs, PROJECT, PhaseEvent, Role};
use learn::answers;
use perform::{AgentFact, AgentLimits, AgentStep, AgentUsage, Loop, Next, Outcome, Uncommitted};

/// Tasks in a row that change nothing; then the reviewer has a look.
const IDLE_TASKS: u32 = 5;
/// Separates the plan from the markers in the session file.
pub const LOG: &str = "\n# Progress Log\n\n";

/// How often the turn at hand was tried in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tries {
    resumed: bool,
    fresh: bool,
}

/// S4 as a value.
#[derive(Debug)]
pub struct SpecLoop {
    inputs: Inputs,
    files: Files,
    /// What is certain to be done next; when it is empty, the run is over.
    steps: VecDeque<AgentStep>,
    role: Role,
    iteration: u32,
    /// The next turn, and the next line of the user.
    turn: u32,
    shell: u32,
    /// The last turn that was begun, in a run that goes on after a kill.
    begun: u32,
    tries: Tries,
    /// For a quota, since a turn last ended otherwise.
    waits: u32,
    idle_tasks: u32,
    head: Option<String>,
    spare: Arc<[Uncommitted]>,
    has_review: bool,
    /// How the last check ended.
    check: Option<String>,
    /// Marks what the turn at hand said, for the commit and what follows it.
    said: Option<(&'static str, String)>,
    put_back: Vec<(Role, Vec<String>)>,
    session: Option<String>,
    used: AgentUsage,
    /// How the last turn ended.
    last_end: Option<End>,
    outcome: Outcome,
}

impl SpecLoop {
    /// A run that is about to begin.
    #[must_use]
    pub fn new(inputs: Inputs) -> Self {
        let mut new = Self {
            files: Files::of(&inputs.id),
            inputs,
            steps: VecDeque::new(),
            role: Role::Planning,
            iteration: 0,
            turn: 1,
            shell: 1,
            begun: 0,
            tries: Tries::default(),
            waits: 0,
            idle_tasks: 0,
            head: None,
            spare: Arc::from([]),
            has_review: false,
            check: None,
            said: None,
            put_back: Vec::new(),
            session: None,
            used: AgentUsage::default(),
            last_end: None,
            outcome: Outcome::AttemptsUsedUp { rounds: 0 },
        };
        if let Some(review) = new.inputs.review.clone() {
            new.push_review(&review);
        }
        if new.inputs.commit.is_some() {
            new.push(AgentStep::Survey { repository: PROJECT.to_owned() });
        } else {
            new.begin_iteration();
        }
        new
    }

    /// From now on the run may use so much; what it has used counts.
    pub fn limit(&mut self, limits: AgentLimits) {
        self.inputs.limits = limits;
        let turn = self.steps.iter().position(|step| matches!(step, AgentStep::Turn { .. }));
        if let (Some(turn), Some(passed)) = (turn, self.used.passed(&limits)) {
            self.steps.truncate(turn);
            self.stop_at(&passed);
        }
    }

    fn push(&mut self, step: AgentStep) {
        self.steps.push_back(step);
    }

    fn announce(&mut self, event: &PhaseEvent) {
        self.push(AgentStep::Announce(event.to_json()));
    }

    fn begin_iteration(&mut self) {
        self.iteration += 1;
        let (iteration, max_iterations) = (self.iteration, self.inputs.max_iterations);
        self.announce(&PhaseEvent::IterationStart { iteration, max_iterations });
        self.announce(&PhaseEvent::PlanningStart { iteration });
        self.begin_turn(Role::Planning);
    }

    /// An implementing or reviewing turn, after the check if there is one.
    fn begin_with_check(&mut self, role: Role) {
        self.role = role;
        match self.inputs.check.clone() {
            Some(line) => self.push_line(CHECK, &line),
            None => self.begin_checked(),
        }
    }

    fn begin_checked(&mut self) {
        let iteration = self.iteration;
        self.announce(&match self.role {
            Role::Reviewing => PhaseEvent::ReviewingStart { iteration },
            Role::Planning | Role::Implementing | Role::Audit => PhaseEvent::ImplementingStart { iteration },
        });
        self.begin_turn(self.role);
    }

    fn push_line(&mut self, name: &str, line: &str) {
        self.push(AgentStep::Shell { number: self.shell, name: name.to_owned(), line: line.into() });
        self.shell += 1;
    }
}

impl Loop for SpecLoop {
    type Step = AgentStep;
    type Fact = AgentFact;

    fn next(&self) -> Next<AgentStep> {
        match self.steps.front() {
            Some(step) => Next::Do(self.renumbered(step)),
            None => Next::Stop(self.outcome.clone()),
        }
    }

    fn learn(&mut self, fact: &AgentFact) {
        if let AgentFact::TurnBegins { number, .. } = fact {
            self.begun = *number;
        }
        if let AgentFact::CutOff { usage, cost_usd, elapsed_ms, .. } = fact {
            self.used.add_cut_off(usage, *cost_usd, *elapsed_ms);
        }
        if matches!(fact, AgentFact::Resumed) {
            return self.reopen();
        }
        if !self.steps.front().is_some_and(|step| answers(fact, step)) {
            return;
        }
        self.steps.pop_front();
        match fact {
            AgentFact::Surveyed { head, uncommitted, .. } => {
                self.head.clone_from(head);
                self.spare = uncommitted.as_slice().into();
                self.begin_iteration();
            }
            AgentFact::Turned(turned) => self.learn_turn(turned),
            AgentFact::Ran { name, ended, output, elapsed_ms, .. } => {
                self.used.add_time(*elapsed_ms);
                self.learn_line(name, *ended, &output.share());
            }
            // That a commit failed does not stop the loop (S4 §Auto-Commit).
            AgentFact::Checkpointed { .. } => self.after_task(),
            AgentFact::WasRead { place, text, .. } => {
                let text = text.as_ref().map(perform::Text::as_str);
                if *place == self.files.plan() { self.learn_plan(text) } else { self.learn_review(text) }
            }
            AgentFact::Listed { .. }
            | AgentFact::TurnBegins { .. }
            | AgentFact::CutOff { .. }
            | AgentFact::Committed { .. }
            | AgentFact::Announced { .. }
            | AgentFact::Waited { .. }
            | AgentFact::Wrote { .. }
            | AgentFact::Resumed
            | AgentFact::Ended { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
