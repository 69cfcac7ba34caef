//! Lines of a journal, read as steps.

use code_commit_engine::{
    Attempted, Broke, Changed, CheckpointResult, Checkpointed, Committed, Condition, Line, Looked,
    Problem, TurnBegins, WasRead,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::step::{Call, Change, Command, Event, Step, Steps, Tone, What};

impl Steps {
    /// Reads the lines of a journal, each with the time at which it was written (RFC 3339). Lines that say nothing to a
    /// person are left out.
    pub fn of<'l>(lines: impl IntoIterator<Item = (&'l str, &'l Line)>) -> Self {
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
    pub fn untimed<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Self {
        Self::of(lines.into_iter().map(|line| ("", line)))
    }
}

/// The verifier's list of failed contracts (S3 §Communication Channel).
const FAILED_SPECS: &str = "failed_specs.md";

#[derive(Default)]
struct Reader {
    steps: Steps,
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
    fn learn(&mut self, line: &Line) {
        // A resumed run records that a turn was cut off.
        let is_turn = self
            .open
            .as_ref()
            .is_some_and(|(_, call)| call.role.is_some());
        let is_resumed = matches!(line, Line::Resumed { .. }) && !is_turn;
        if is_resumed || matches!(line, Line::Asked(_) | Line::TurnBegins(_)) {
            self.cut_off();
        }
        self.round = line.round().unwrap_or(self.round);
        match line {
            Line::Asked(of) => self.begin(Call::asked(of)),
            Line::Attempted(attempted) => self.attempted(attempted),
            Line::Answered(of) => self.end(|call| call.answered(of)),
            Line::Unanswered(of) => self.end(|call| call.unanswered(of)),
            Line::TurnBegins(begins) => self.begins(begins),
            Line::Turned(of) => self.end(|call| call.turned(of)),
            Line::Applied(of) => self.change(&of.changes, &of.warnings, of.no_change.clone()),
            Line::Written(of) => self.change(&of.changes, &of.warnings, None),
            Line::Rejected(of) => self.refusal(&of.problems),
            Line::Refused(of) => self.refusal(&of.problems),
            Line::Built(built) => self.command(built.elapsed_ms, built.into()),
            Line::Ran(ran) => self.command(ran.elapsed_ms, ran.into()),
            Line::ShellRan(ran) => self.command(ran.elapsed_ms, ran.into()),
            Line::Committed(of) => self.committed(of),
            Line::WasRead(of) if of.place.file == FAILED_SPECS => self.failed_specs(of),
            other => self.other(other),
        }
    }

    fn warned(&mut self, warning: &Problem) {
        self.tell(Event {
            tone: Tone::Warning,
            text: warning.message.clone(),
            warning: Some(warning.clone()),
            ..Event::default()
        });
    }

    /// Lines that end the run or are one sentence.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other lines of a journal are not for a person"
    )]
    fn other(&mut self, line: &Line) {
        match line {
            Line::Checkpointed(of) => self.checkpointed(of),
            Line::Announced(of) => self.announced(&of.event),
            Line::NotCommitted(of) => {
                self.event(Tone::Bad, &format!("not committed: {}", of.message));
            }
            Line::Broke(Broke { message }) => self.event(Tone::Bad, message),
            Line::Warned { warning } => self.warned(warning),
            Line::LimitReached(of) => self.event(Tone::Bad, &of.cause.message),
            Line::Looked(Looked { failed }) => {
                for condition in failed {
                    self.event(
                        Tone::Bad,
                        &format!("condition not met: {}", self::condition(condition)),
                    );
                }
            }
            Line::Measured(of) if !(of.changes.is_empty() && of.put_back.is_empty()) => {
                self.command(0, of.into());
            }
            Line::Ended { outcome, holds_for } => {
                self.steps.outcome = Some(outcome.clone());
                self.steps.holds_for = holds_for.clone();
            }
            Line::Resumed { .. } => {
                self.steps.outcome = None;
                self.event(Tone::Warning, "the run was stopped, and continued here");
            }
            Line::Restored(_) => self.restored("every file of the run was restored"),
            Line::RolledBack(of) => {
                self.restored(
                    "rolled back: the tree is restored to its state before the first attempt",
                );
                of.warnings
                    .iter()
                    .for_each(|warning| self.event(Tone::Warning, &warning.message));
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

    fn event(&mut self, tone: Tone, text: &str) {
        self.tell(Event {
            tone,
            text: text.to_owned(),
            ..Event::default()
        });
    }

    fn tell(&mut self, event: Event) {
        self.push(0, What::Event(event));
    }

    fn restored(&mut self, text: &str) {
        let text = text.to_owned();
        self.tell(Event {
            tone: Tone::Warning,
            text,
            is_restore: true,
            ..Event::default()
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
            What::Change(_) | What::Command(_) | What::Event(_) => None,
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
                self.event(Tone::Bad, &format!("not committed: {error}"));
            }
        }
    }

    fn commit(&mut self, commit: &str, message: Option<&str>, repository: Option<&str>) {
        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
        self.tell(Event {
            tone: Tone::Good,
            text: format!("committed as {commit}{message}"),
            commit: Some(commit.to_owned()),
            repository: repository.map(str::to_owned),
            ..Event::default()
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
            self.event(Tone::Warning, reason);
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
