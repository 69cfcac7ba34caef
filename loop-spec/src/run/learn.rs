//! What the loop makes of what has happened.

use std::sync::Arc;

use perform::{AgentFact, AgentStep, Ended, Outcome, Turned};

use crate::judge::{Verdict, judge};
use crate::marker::{DONE, REQUEST_CHANGES};
use crate::run::{IDLE_TASKS, LOG, SpecLoop};
use crate::{CommitScope, Files, PROJECT, Patience, PhaseEvent, Role, SETUP};

impl SpecLoop {
    pub(super) fn learn_turn(&mut self, turned: &Turned) {
        self.turn = turned.number + 1;
        self.used.add(turned);
        self.session.clone_from(&turned.session);
        self.last_end = Some(turned.end.clone());
        self.put_back.retain(|(role, _)| *role != self.role);
        if !turned.put_back.is_empty() {
            self.put_back.push((self.role, turned.put_back.clone()));
        }
        let verdict = judge(self.role, turned);
        if !matches!(verdict, Verdict::Quota(_)) {
            self.waits = 0;
        }
        let cut_off = self.used.cut_off(turned, &self.inputs.limits);
        match verdict {
            Verdict::SpecIssue(content) => self.stop_for_person(content),
            Verdict::Said { marker, content } => self.heard(marker, content, turned),
            Verdict::Silent(why) => self.ask_again(&why),
            Verdict::Lost(why) => match cut_off {
                Some(passed) => self.stop_at(&passed),
                None => self.try_fresh(&why),
            },
            Verdict::Quota(until) if self.inputs.patience == Patience::Wait => self.wait(until),
            Verdict::Quota(_) => self.stop(&format!("the agent {}", turned.end)),
            Verdict::Stop(why) => self.stop(&why),
        }
    }

    pub(super) fn heard(&mut self, marker: &'static str, content: String, turned: &Turned) {
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

    pub(super) fn push_checkpoint(&mut self) {
        let said = self.said.as_ref().map(|(_, content)| content.trim()).unwrap_or_default();
        let message = if said.is_empty() { "a task of the plan is done" } else { said };
        let spare = match self.inputs.commit {
            Some(CommitScope::Run) => Arc::clone(&self.spare),
            Some(CommitScope::All) | None => Arc::from([]),
        };
        let (repository, message) = (PROJECT.to_owned(), message.to_owned());
        self.push(AgentStep::Checkpoint { repository, message, spare });
    }

    pub(super) fn after_task(&mut self) {
        let all_done = self.said.take().is_some_and(|(marker, _)| marker == DONE);
        if all_done || self.idle_tasks >= IDLE_TASKS {
            self.idle_tasks = 0;
            self.begin_with_check(Role::Reviewing);
        } else {
            self.begin_with_check(Role::Implementing);
        }
    }

    /// The plan becomes the session file (S4 §File Creation Flow).
    pub(super) fn learn_plan(&mut self, text: Option<&str>) {
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

    pub(super) fn learn_review(&mut self, text: Option<&str>) {
        let content = self.said.take().map(|(_, content)| content).unwrap_or_default();
        let written = text.filter(|text| !text.trim().is_empty());
        let silent = "The reviewing agent requested changes and did not say which: look for what does not match the specs.";
        let content = if content.trim().is_empty() { silent } else { &content };
        if self.iteration < self.inputs.max_iterations {
            match written {
                Some(_) => self.has_review = true,
                None => self.push_review(content),
            }
            return self.begin_iteration();
        }
        let (iteration, outcome) = (self.iteration, Outcome::AttemptsUsedUp { rounds: self.iteration });
        // The file goes with the session: whoever is to judge has to see it now.
        let review = written.unwrap_or(content).trim().to_owned();
        self.end(outcome, Some(&PhaseEvent::LoopMaxIterations { iteration, review }));
    }

    /// The next plan is to answer this.
    pub(super) fn push_review(&mut self, review: &str) {
        let text = format!("{}\n", review.trim_end()).into();
        self.push(AgentStep::Write { place: self.files.review(), text });
        self.has_review = true;
    }

    pub(super) fn learn_line(&mut self, name: &str, ended: Ended, output: &Arc<str>) {
        if name == SETUP {
            // What it printed is on record and nowhere else: no agent is to read it (S4 §Setup Output Handling), and all of them work in
            // the folder of the session's files.
            return self.begin_with_check(Role::Implementing);
        }
        self.check = Some(ended.to_string());
        self.push(AgentStep::Write { place: self.files.check(), text: Arc::clone(output) });
        self.begin_checked();
    }
}

/// Whether a fact is what a step ends in.
pub(super) fn answers(fact: &AgentFact, step: &AgentStep) -> bool {
    match step {
        AgentStep::List { .. } => matches!(fact, AgentFact::Listed { .. }),
        AgentStep::Turn { .. } => matches!(fact, AgentFact::Turned(_)),
        AgentStep::Shell { .. } => matches!(fact, AgentFact::Ran { .. }),
        AgentStep::Commit { .. } => matches!(fact, AgentFact::Committed { .. }),
        AgentStep::Survey { .. } => matches!(fact, AgentFact::Surveyed { .. }),
        AgentStep::Checkpoint { .. } => matches!(fact, AgentFact::Checkpointed { .. }),
        AgentStep::Wait { .. } => matches!(fact, AgentFact::Waited { .. }),
        AgentStep::Announce(told) => matches!(fact, AgentFact::Announced { event } if event == told),
        AgentStep::Read(wanted) => matches!(fact, AgentFact::WasRead { place, .. } if place == wanted),
        AgentStep::Write { place: wanted, .. }
        | AgentStep::Append { place: wanted, .. }
        | AgentStep::Delete(wanted) => matches!(fact, AgentFact::Wrote { place } if place == wanted),
    }
}
