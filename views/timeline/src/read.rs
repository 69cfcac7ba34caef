//! Lines of a journal, read as steps.

use code_commit_engine::{
    Attempted, Broke, Changed, CheckpointResult, Checkpointed, Committed, Condition, Event, Looked,
    Problem, TurnBegins, WasRead,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::step::{Call, Change, Command, Remark, RunView, Step, Tone, What};

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
        let is_turn = self
            .open
            .as_ref()
            .is_some_and(|(_, call)| call.role.is_some());
        let is_resumed = matches!(line, Event::Resumed { .. }) && !is_turn;
        if is_resumed || matches!(line, Event::Asked(_) | Event::TurnBegins(_)) {
            self.cut_off();
        }
        self.round = line.round().unwrap_or(self.round);
        match line {
            Event::Asked(of) => self.begin(Call::asked(of)),
            Event::Attempted(attempted) => self.attempted(attempted),
            Event::Answered(of) => self.end(|call| call.answered(of)),
            Event::Unanswered(of) => self.end(|call| call.unanswered(of)),
            Event::TurnBegins(begins) => self.begins(begins),
            Event::Turned(of) => self.end(|call| call.turned(of)),
            Event::Applied(of) => self.change(&of.changes, &of.warnings, of.no_change.clone()),
            Event::Written(of) => self.change(&of.changes, &of.warnings, None),
            Event::Rejected(of) => self.refusal(&of.problems),
            Event::Refused(of) => self.refusal(&of.problems),
            Event::Built(built) => self.command(built.elapsed_ms, built.into()),
            Event::Ran(ran) => self.command(ran.elapsed_ms, ran.into()),
            Event::ShellRan(ran) => self.command(ran.elapsed_ms, ran.into()),
            Event::Committed(of) => self.committed(of),
            Event::WasRead(of) if of.place.file == FAILED_SPECS => self.failed_specs(of),
            other => self.other(other),
        }
    }

    fn warned(&mut self, warning: &Problem) {
        self.tell(Remark {
            tone: Tone::Warning,
            text: warning.message.clone(),
            warning: Some(warning.clone()),
            ..Remark::default()
        });
    }

    /// Lines that end the run or are one sentence.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other lines of a journal are not for a person"
    )]
    fn other(&mut self, line: &Event) {
        match line {
            Event::Checkpointed(of) => self.checkpointed(of),
            Event::Announced(of) => self.announced(&of.event),
            Event::NotCommitted(of) => {
                self.remark(Tone::Bad, &format!("not committed: {}", of.message));
            }
            Event::Broke(Broke { message }) => self.remark(Tone::Bad, message),
            Event::Warned { warning } => self.warned(warning),
            Event::LimitReached(of) => self.remark(Tone::Bad, &of.cause.message),
            Event::Looked(Looked { failed }) => {
                for condition in failed {
                    self.remark(
                        Tone::Bad,
                        &format!("condition not met: {}", self::condition(condition)),
                    );
                }
            }
            Event::Measured(of) if !(of.changes.is_empty() && of.put_back.is_empty()) => {
                self.command(0, of.into());
            }
            Event::Ended { outcome, holds_for } => {
                self.steps.outcome = Some(outcome.clone());
                self.steps.holds_for = holds_for.clone();
            }
            Event::Resumed { .. } => {
                self.steps.outcome = None;
                self.remark(Tone::Warning, "the run was stopped, and continued here");
            }
            Event::Restored(_) => self.restored("every file of the run was restored"),
            Event::RolledBack(of) => {
                self.restored(
                    "rolled back: the tree is restored to its state before the first attempt",
                );
                of.warnings
                    .iter()
                    .for_each(|warning| self.remark(Tone::Warning, &warning.message));
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

    fn remark(&mut self, tone: Tone, text: &str) {
        self.tell(Remark {
            tone,
            text: text.to_owned(),
            ..Remark::default()
        });
    }

    fn tell(&mut self, remark: Remark) {
        self.push(0, What::Remark(remark));
    }

    fn restored(&mut self, text: &str) {
        let text = text.to_owned();
        self.tell(Remark {
            tone: Tone::Warning,
            text,
            is_restore: true,
            ..Remark::default()
        });
    }

    fn begin(&mut self, call: Call) {
        self.open = Some((self.now, call));
    }

    fn attempted(&mut self, attempted: &Attempted) {
        if let Some((_, call)) = &mut self.open {
            call.attempts.push(attempted.attempt.clone());
        }
    }

    fn begins(&mut self, begins: &TurnBegins) {
        self.count(&begins.role);
        self.begin(Call::begins(begins));
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
        let took = began
            .and_then(|began| u64::try_from(self.now - began).ok())
            .unwrap_or(call.elapsed_ms);
        self.push(took, What::Call(Box::new(call)));
    }

    /// A call that began and has no end: the run was killed while it was open, or still works on it.
    fn cut_off(&mut self) {
        if self.open.is_some() {
            self.end(Call::cut_off);
        }
    }

    fn change(&mut self, changes: &[Changed], problems: &[Problem], no_change: Option<String>) {
        let (changes, problems) = (changes.to_vec(), problems.to_vec());
        self.push(
            0,
            What::Change(Change {
                is_refused: false,
                changes,
                problems,
                no_change,
            }),
        );
    }

    fn refusal(&mut self, problems: &[Problem]) {
        let change = Change {
            is_refused: true,
            problems: problems.to_vec(),
            ..Change::default()
        };
        self.push(0, What::Change(change));
    }

    fn command(&mut self, took_ms: u64, command: Command) {
        self.push(took_ms, What::Command(command));
    }

    /// Belongs to the turn before it.
    fn failed_specs(&mut self, of: &WasRead) {
        let calls = self.steps.all.iter_mut().rev().map(|step| &mut step.what);
        let mut call = calls.filter_map(|what| match what {
            What::Call(call) => Some(call),
            What::Change(_) | What::Command(_) | What::Remark(_) => None,
        });
        if let Some(call) = call.next() {
            call.failed_specs = of.text.as_ref().map(|text| text.stored.clone());
        }
    }

    fn committed(&mut self, of: &Committed) {
        let Some(commit) = &of.commit else { return };
        let message = of.message.as_deref().and_then(|text| text.lines().next());
        self.commit(commit, message, of.repository.as_deref());
    }

    fn checkpointed(&mut self, of: &Checkpointed) {
        match &of.checkpoint {
            CheckpointResult::Made { commit } => {
                self.commit(commit, of.message.lines().next(), Some(&of.repository));
            }
            CheckpointResult::Nothing => {}
            CheckpointResult::Failed { error } => {
                self.remark(Tone::Bad, &format!("not committed: {error}"));
            }
        }
    }

    fn commit(&mut self, commit: &str, message: Option<&str>, repository: Option<&str>) {
        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
        self.tell(Remark {
            tone: Tone::Good,
            text: format!("committed as {commit}{message}"),
            commit: Some(commit.to_owned()),
            repository: repository.map(str::to_owned),
            ..Remark::default()
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
            self.remark(Tone::Warning, reason);
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
