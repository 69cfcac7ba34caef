//! Lines of a journal, read as steps.

use code_commit_engine::{Changed, CheckpointResult, Condition, Event, Problem, WasRead};
use jiff::Timestamp;
use serde_json::Value;

use crate::step::{Call, Change, Remark, RunView, Step, Tone, What};

impl RunView {
    /// Reads the lines of a journal, each with the time at which it was written (RFC 3339). Lines that say nothing to a
    /// person are left out.
    pub fn of<'l>(lines: impl IntoIterator<Item = (&'l str, &'l Event)>) -> Self {
        let mut reader = Reader::default();
        let mut ends = Vec::new();
        for (at, line) in lines {
            let at = at.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond);
            ends.push(at);
            reader.now = at;
            reader.learn(line);
        }
        reader.cut_off();
        let Reader { mut steps, .. } = reader;
        steps.from_ms = ends.first().copied().unwrap_or_default();
        steps.to_ms = ends.last().copied().unwrap_or_default();
        steps
    }

    /// The steps of these lines, without times.
    pub fn untimed<'l>(lines: impl IntoIterator<Item = &'l Event>) -> Self {
        Self::of(lines.into_iter().map(|line| ("", line)))
    }
}

/// The verifier's list of failed contracts (S3 §Communication Channel).
const FAILED_SPECS: &str = "failed_specs.md";

#[derive(Default)]
struct Reader {
    steps: RunView,
    now: i64,
    round: u32,
    /// A call that has begun, and when.
    open: Option<(i64, Call)>,
    /// The role whose turn begins a round: the first one of a run without announced iterations.
    leader: Option<String>,
    last_role: Option<String>,
    announces: bool,
}

impl Reader {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other lines of a journal are not for a person"
    )]
    fn learn(&mut self, line: &Event) {
        // A resumed run records that a turn was cut off.
        let is_turn = self.open.as_ref().is_some_and(|(_, of)| of.role.is_some());
        let is_resumed = matches!(line, Event::Resumed { .. }) && !is_turn;
        if is_resumed || matches!(line, Event::Asked(_) | Event::TurnBegins(_)) {
            self.cut_off();
        }
        self.round = line.round().unwrap_or(self.round);
        match line {
            Event::Asked(of) => self.open = Some((self.now, Call::asked(of))),
            Event::Attempted(of) => {
                let call = self.open.iter_mut().map(|(_, call)| call);
                call.for_each(|call| call.attempts.push(of.attempt.clone()));
            }
            Event::Answered(of) => self.end(|call| call.answered(of)),
            Event::Unanswered(of) => self.end(|call| call.unanswered(of)),
            Event::TurnBegins(of) => {
                self.count(&of.role);
                self.open = Some((self.now, Call::begins(of)));
            }
            Event::Turned(of) => self.end(|call| call.turned(of)),
            Event::Applied(of) => self.written(&of.changes, &of.warnings, of.no_change.clone()),
            Event::Written(of) => self.written(&of.changes, &of.warnings, None),
            Event::Rejected(of) => self.refused(&of.problems),
            Event::Refused(of) => self.refused(&of.problems),
            Event::Built(of) => self.push(of.elapsed_ms, What::Command(of.into())),
            Event::Ran(of) => self.push(of.elapsed_ms, What::Command(of.into())),
            Event::ShellRan(of) => self.push(of.elapsed_ms, What::Command(of.into())),
            Event::Measured(of) if !(of.changes.is_empty() && of.put_back.is_empty()) => {
                self.push(0, What::Command(of.into()));
            }
            Event::Committed(of) => {
                let message = of.message.as_deref().unwrap_or_default();
                if let Some(commit) = &of.commit {
                    self.commit(commit, message, of.repository.as_deref());
                }
            }
            Event::Checkpointed(of) => match &of.checkpoint {
                CheckpointResult::Made { commit } => {
                    self.commit(commit, &of.message, Some(&of.repository));
                }
                CheckpointResult::Nothing => {}
                CheckpointResult::Failed { error } => self.bad(format!("not committed: {error}")),
            },
            Event::NotCommitted(of) => self.bad(format!("not committed: {}", of.message)),
            Event::WasRead(of) if of.place.file == FAILED_SPECS => self.failed_specs(of),
            Event::Announced(of) => self.announced(&of.event),
            Event::Broke(of) => self.bad(&*of.message),
            Event::LimitReached(of) => self.bad(&*of.cause.message),
            Event::Looked(of) => {
                let failed = of.failed.iter().map(condition);
                failed.for_each(|one| self.bad(format!("condition not met: {one}")));
            }
            Event::Warned { warning } => self.tell(Remark {
                warning: Some(warning.clone()),
                ..Remark::new(Tone::Warning, &*warning.message)
            }),
            Event::Resumed { .. } => {
                self.steps.outcome = None;
                self.warn("the run was stopped, and continued here");
            }
            Event::Restored(_) => self.restored("every file of the run was restored"),
            Event::RolledBack(of) => {
                self.restored(
                    "rolled back: the tree is restored to its state before the first attempt",
                );
                of.warnings.iter().for_each(|one| self.warn(&one.message));
            }
            Event::Ended { outcome, holds_for } => {
                self.steps.outcome = Some(outcome.clone());
                self.steps.holds_for = holds_for.clone();
            }
            _ => {}
        }
    }

    fn push(&mut self, took_ms: u64, what: What) {
        let took = i64::try_from(took_ms).unwrap_or_default();
        let (from_ms, to_ms) = (self.now - took, self.now);
        self.steps.all.push(Step {
            round: self.round,
            from_ms,
            to_ms,
            what,
        });
    }

    fn tell(&mut self, remark: Remark) {
        self.push(0, What::Remark(remark));
    }

    fn bad(&mut self, text: impl Into<String>) {
        self.tell(Remark::new(Tone::Bad, text));
    }

    fn warn(&mut self, text: &str) {
        self.tell(Remark::new(Tone::Warning, text));
    }

    fn restored(&mut self, text: &str) {
        self.tell(Remark {
            is_restore: true,
            ..Remark::new(Tone::Warning, text)
        });
    }

    /// A round of agents begins with the role that begins the run, once another one has worked.
    fn count(&mut self, role: &str) {
        let leader = self.leader.get_or_insert_with(|| role.to_owned());
        let is_next = role == leader && self.last_role.as_ref() != Some(leader);
        if is_next && !self.announces {
            self.round += 1;
        }
        self.last_role = Some(role.to_owned());
    }

    fn end(&mut self, ended: impl FnOnce(Call) -> Call) {
        let (began, call) = self.open.take().unzip();
        let call = ended(call.unwrap_or_default());
        let took = began.and_then(|began| u64::try_from(self.now - began).ok());
        self.push(took.unwrap_or(call.elapsed_ms), What::Call(Box::new(call)));
    }

    /// A call that began and has no end: the run was killed while it was open, or still works on it.
    fn cut_off(&mut self) {
        if self.open.is_some() {
            self.end(Call::cut_off);
        }
    }

    fn written(&mut self, changes: &[Changed], problems: &[Problem], no_change: Option<String>) {
        self.push(
            0,
            What::Change(Change {
                is_refused: false,
                changes: changes.to_vec(),
                problems: problems.to_vec(),
                no_change,
            }),
        );
    }

    fn refused(&mut self, problems: &[Problem]) {
        let change = Change {
            is_refused: true,
            problems: problems.to_vec(),
            ..Change::default()
        };
        self.push(0, What::Change(change));
    }

    /// Belongs to the turn before it.
    fn failed_specs(&mut self, of: &WasRead) {
        let mut steps = self.steps.all.iter_mut().rev();
        let call = steps.find_map(|step| match &mut step.what {
            What::Call(call) => Some(call),
            What::Change(_) | What::Command(_) | What::Remark(_) => None,
        });
        if let Some(call) = call {
            call.failed_specs = of.text.as_ref().map(|text| text.stored.clone());
        }
    }

    fn commit(&mut self, commit: &str, message: &str, repository: Option<&str>) {
        let message = message.lines().next();
        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
        self.tell(Remark {
            commit: Some(commit.to_owned()),
            repository: repository.map(str::to_owned),
            ..Remark::new(Tone::Good, format!("committed as {commit}{message}"))
        });
    }

    /// Specs announce their iterations (S4 §Event Category System).
    fn announced(&mut self, event: &Value) {
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let iteration = event
            .get("iteration")
            .and_then(Value::as_u64)
            .and_then(|n| u32::try_from(n).ok());
        if let (Some("IterationStart"), Some(iteration)) = (text("event"), iteration) {
            (self.announces, self.round) = (true, iteration);
        }
        if let (Some("RetryStart" | "QuotaWaitStart"), Some(reason)) =
            (text("event"), text("reason"))
        {
            self.warn(reason);
        }
    }
}

/// A condition as an order writes it.
pub fn condition(condition: &Condition) -> String {
    match condition {
        Condition::FileExists(path) => format!("file_exists: {path}"),
        Condition::FileAbsent(path) => format!("file_absent: {path}"),
    }
}
