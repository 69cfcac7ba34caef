//! One run: plan, implement, review, and again until it is approved (S4 §Main Loop Flow).

mod ask;
mod end;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::judge::{Verdict, judge};
use crate::marker::{DONE, REQUEST_CHANGES};
use crate::{CHECK, CommitScope, Files, Inputs, PROJECT, Patience, PhaseEvent, Role, SETUP};
use engine::{AgentFact, AgentStep, Checkpoint, Ended, Loop, Next, Outcome, Place, Turned, Uncommitted};

/// Tasks in a row that change nothing; then the reviewer has a look.
const IDLE_TASKS: u32 = 5;
/// Separates the plan from the markers in the session file.
const LOG: &str = "\n# Progress Log\n\n";

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
    /// How the last turn ended.
    end_code: &'static str,
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
            idle_tasks: 0,
            head: None,
            spare: Arc::from([]),
            has_review: false,
            check: None,
            said: None,
            put_back: Vec::new(),
            session: None,
            end_code: "ok",
            outcome: Outcome::AttemptsUsedUp { rounds: 0 },
        };
        if new.inputs.commit.is_some() {
            new.push(AgentStep::Survey { repository: PROJECT.to_owned() });
        } else {
            new.begin_iteration();
        }
        new
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

    fn learn_turn(&mut self, turned: &Turned) {
        self.turn = turned.number + 1;
        self.session.clone_from(&turned.session);
        self.end_code = turned.end.code();
        self.put_back.retain(|(role, _)| *role != self.role);
        if !turned.put_back.is_empty() {
            self.put_back.push((self.role, turned.put_back.clone()));
        }
        match judge(self.role, turned) {
            Verdict::SpecIssue(content) => self.stop_for_person(content),
            Verdict::Said { marker, content } => self.heard(marker, content, turned),
            Verdict::Silent(why) => self.ask_again(&why),
            Verdict::Lost(why) => self.try_fresh(&why),
            Verdict::Quota(until) if self.inputs.patience == Patience::Wait => self.wait(until),
            Verdict::Quota(_) => self.stop(&format!("the agent {}", turned.end)),
            Verdict::Stop(why) => self.stop(&why),
        }
    }

    fn heard(&mut self, marker: &'static str, content: String, turned: &Turned) {
        match self.role {
            Role::Planning => self.push(AgentStep::Read(self.files.plan())),
            Role::Implementing => {
                self.idle_tasks = if turned.changed.is_empty() { self.idle_tasks + 1 } else { 0 };
                self.said = Some((marker, content));
                if self.inputs.commit.is_some() { self.push_checkpoint() } else { self.after_task() }
            }
            Role::Reviewing | Role::Audit if marker == REQUEST_CHANGES => {
                self.said = Some((marker, content));
                self.push(AgentStep::Read(self.files.review()));
            }
            Role::Reviewing | Role::Audit => {
                let (iteration, outcome) = (self.iteration, Outcome::Done { rounds: self.iteration });
                self.end(outcome, Some(&PhaseEvent::LoopApproved { iteration }));
            }
        }
    }

    fn push_checkpoint(&mut self) {
        let said = self.said.as_ref().map(|(_, content)| content.trim()).unwrap_or_default();
        let message = if said.is_empty() { "a task of the plan is done" } else { said };
        let spare = match self.inputs.commit {
            Some(CommitScope::Run) => Arc::clone(&self.spare),
            Some(CommitScope::All) | None => Arc::from([]),
        };
        let (repository, message) = (PROJECT.to_owned(), message.to_owned());
        self.push(AgentStep::Checkpoint { repository, message, spare });
    }

    fn after_task(&mut self) {
        let all_done = self.said.take().is_some_and(|(marker, _)| marker == DONE);
        if all_done || self.idle_tasks >= IDLE_TASKS {
            self.idle_tasks = 0;
            self.begin_with_check(Role::Reviewing);
        } else {
            self.begin_with_check(Role::Implementing);
        }
    }

    /// The plan becomes the session file (S4 §File Creation Flow).
    fn learn_plan(&mut self, text: Option<&str>) {
        let Some(plan) = text.filter(|text| !text.trim().is_empty()) else {
            let file = Files::path(&self.files.plan());
            return self.ask_again(&format!("the plan file `{file}` is not there or is empty."));
        };
        let session = format!("{}\n{LOG}", plan.trim_end()).into();
        self.push(AgentStep::Write { place: self.files.session(), text: session });
        self.push(AgentStep::Delete(self.files.plan()));
        self.push(AgentStep::Delete(self.files.review()));
        self.has_review = false;
        match self.inputs.setup.clone() {
            Some(line) => self.push_line(SETUP, &line),
            None => self.begin_with_check(Role::Implementing),
        }
    }

    fn learn_review(&mut self, text: Option<&str>) {
        let content = self.said.take().map(|(_, content)| content).unwrap_or_default();
        if text.is_none_or(|text| text.trim().is_empty()) {
            let text = format!("{content}\n").into();
            self.push(AgentStep::Write { place: self.files.review(), text });
        }
        self.has_review = true;
        if self.iteration < self.inputs.max_iterations {
            return self.begin_iteration();
        }
        let (iteration, outcome) = (self.iteration, Outcome::AttemptsUsedUp { rounds: self.iteration });
        self.end(outcome, Some(&PhaseEvent::LoopMaxIterations { iteration }));
    }

    fn learn_line(&mut self, name: &str, ended: Ended, output: &Arc<str>) {
        let text = Arc::clone(output);
        if name == SETUP {
            self.push(AgentStep::Write { place: self.files.setup(), text });
            return self.begin_with_check(Role::Implementing);
        }
        self.check = Some(ended.to_string());
        self.push(AgentStep::Write { place: self.files.check(), text });
        self.begin_checked();
    }

    fn learn_checkpoint(&mut self, checkpoint: &Checkpoint) {
        // That a commit failed does not stop the loop (S4 §Auto-Commit).
        let (Checkpoint::Made { .. } | Checkpoint::Nothing | Checkpoint::Failed { .. }) = checkpoint;
        self.after_task();
    }

    fn is_plan(&self, place: &Place) -> bool {
        *place == self.files.plan()
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
            AgentFact::Ran { name, ended, output, .. } => self.learn_line(name, *ended, &output.share()),
            AgentFact::Checkpointed { checkpoint, .. } => self.learn_checkpoint(checkpoint),
            AgentFact::WasRead { place, text } => {
                let text = text.as_ref().map(engine::Text::as_str);
                if self.is_plan(place) { self.learn_plan(text) } else { self.learn_review(text) }
            }
            AgentFact::Listed { .. }
            | AgentFact::TurnBegins { .. }
            | AgentFact::Committed { .. }
            | AgentFact::Announced { .. }
            | AgentFact::Waited { .. }
            | AgentFact::Wrote { .. }
            | AgentFact::Ended { .. } => {}
        }
    }
}

/// Whether a fact is what a step ends in.
fn answers(fact: &AgentFact, step: &AgentStep) -> bool {
    match (step, fact) {
        (AgentStep::Turn { .. }, AgentFact::Turned(_))
        | (AgentStep::Shell { .. }, AgentFact::Ran { .. })
        | (AgentStep::Survey { .. }, AgentFact::Surveyed { .. })
        | (AgentStep::Checkpoint { .. }, AgentFact::Checkpointed { .. })
        | (AgentStep::Wait { .. }, AgentFact::Waited { .. }) => true,
        (AgentStep::Announce(told), AgentFact::Announced { event }) => told == event,
        (AgentStep::Read(wanted), AgentFact::WasRead { place, .. })
        | (AgentStep::Write { place: wanted, .. } | AgentStep::Delete(wanted), AgentFact::Wrote { place }) => {
            wanted == place
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
