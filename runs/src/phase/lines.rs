//! Live output of a phase, and its last words, for people and programs.

use code_commit_agent::Event as AgentEvent;
use code_commit_engine::{Committed, Event, Outcome, Text, Turned, WasRead};
use code_commit_logging::RunFolder;
use code_commit_loop_phase::FAILED_SPECS;
use code_commit_loop_phase::failed::is_failure;
use code_commit_perform::{AgentWatch, Observer, Progress, output_text};
use code_commit_report::{BAD, DIM, LastWords, Output, phrases, printable, whole_lines};
use code_commit_timeline::Reason;
use serde_json::json;

use crate::agents::{as_changed, worth_a_look};

/// What the agents do.
#[derive(Debug)]
pub(super) struct Lines {
    output: Output,
    /// The agent's unfinished line.
    open: String,
}

impl Lines {
    pub(super) fn new(output: Output) -> Self {
        let open = String::new();
        Self { output, open }
    }

    fn line(&self, role: &str, text: &str) {
        let head = self.output.paint_note(DIM, &format!("[{role}]"));
        self.output.note(&format!("{head} {}", printable(text)));
    }

    fn lines(&self, role: &str, text: &str) {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.for_each(|line| self.line(role, line));
    }
}

impl AgentWatch for Lines {
    fn begins(&mut self, role: &str, number: u32) {
        self.open.clear();
        self.line(role, &format!("turn {number} begins"));
    }

    fn left_out(&mut self, repository: &str, folder: &str) {
        let folder = printable(folder);
        self.output.warn(&format!(
            "{folder} in {repository} is a repository of its own: it is not committed"
        ));
    }

    fn sees(&mut self, role: &str, event: &AgentEvent) {
        self.output
            .object(&json!({ "event": "agent", "role": role, "what": event }));
        if let AgentEvent::Text(text) = event {
            let lines = whole_lines(&mut self.open, text);
            return self.lines(role, &lines);
        }
        let open = std::mem::take(&mut self.open);
        self.lines(role, &open);
        if let AgentEvent::ToolCall { name, argument, .. } = event {
            self.line(
                role,
                &format!("{name} {}", argument.as_deref().unwrap_or_default()),
            );
        }
        if let AgentEvent::ToolResult {
            ok: false, message, ..
        } = event
        {
            let why = message.as_deref().unwrap_or("the tool does not say why");
            self.line(role, &format!("failed: {why}"));
        }
        if let AgentEvent::Retry { reason, .. } = event {
            self.line(role, &format!("tries again: {reason}"));
        }
    }
}

/// Lines of the failing contracts that are shown after a verification.
const MOST_LINES: usize = 12;

/// What is recorded.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) output: Output,
    pub(super) run: RunFolder,
}

impl Facts {
    /// What the verifier has found (S3 §Communication Channel).
    fn contracts(&self, text: &Text) {
        let text = output_text(&self.run, &text.stored.file);
        let Some(text) = text.ok().filter(|text| is_failure(text.as_str())) else {
            return;
        };
        let head = self.output.paint_note(BAD, "contracts fail:");
        self.output.note(&head);
        let lines = text.as_str().lines();
        let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
        phrases::first_lines(&lines.join("\n"), MOST_LINES, FAILED_SPECS)
            .iter()
            .for_each(|line| self.output.note(&format!("  {line}")));
    }
}

impl Observer for Facts {
    fn see(&mut self, progress: &Progress<'_>) {
        let output = &self.output;
        if let Progress::Warning(problem) = progress {
            output.warn(&problem.message);
        }
        let Progress::Recorded { line, json } = progress else {
            return;
        };
        output.object(&json!({ "event": "fact", "fact": json }));
        if let Event::Turned(turned) = line {
            turned_out(turned, output);
        }
        if let Event::WasRead(WasRead {
            place,
            text: Some(text),
            ..
        }) = line
            && place.file == FAILED_SPECS
        {
            self.contracts(text);
        }
        if let Event::Announced(announced) = line
            && let Some(phases) = code_commit_loop_phase::specs_changed(&announced.event)
        {
            let phases: Vec<String> = phases.iter().map(u64::to_string).collect();
            output.warn(&format!(
                "the specs of phase {} changed: what was built and verified for the old ones does not count",
                phases.join(", ")
            ));
        }
        if let Event::Committed(Committed {
            repository: Some(repository),
            message: Some(message),
            ..
        }) = line
        {
            output.note(&format!("committed in {repository}: {message}"));
        }
    }
}

/// How a turn ended, how long it took, what it used, and what a person should look at.
fn turned_out(turned: &Turned, output: &Output) {
    let role = &turned.role;
    let seconds = turned.elapsed_ms.div_ceil(1000);
    let each = turned.usage.iter().map(|used| used.usage.total());
    let sum = each
        .reduce(|sum, one| Some(sum?.saturating_add(one?)))
        .flatten();
    let tokens = sum.map_or("tokens unknown".to_owned(), |sum| {
        phrases::count(sum, "token")
    });
    let end = turned.end.to_string();
    let end = printable(&end);
    output.note(&format!("the {role} {end} ({seconds} s, {tokens})"));
    for path in &turned.put_back {
        let path = printable(path);
        output.warn(&format!(
            "{path} may not be changed by the {role}: it was restored"
        ));
    }
    if !turned.put_back.is_empty() {
        output.note(&as_changed(turned.number));
    }
    worth_a_look(&turned.changed)
        .iter()
        .for_each(|warning| output.warn(warning));
}

/// How a phase ended, and why.
pub(super) fn last_words(phase: u32, outcome: &Outcome, reason: Option<Reason>) -> LastWords {
    let words = LastWords::of(outcome, reason, "iteration", "");
    let verdict = match outcome {
        Outcome::Done { rounds } => format!("Phase {phase} passed in iteration {rounds}"),
        Outcome::NeedsPerson { cause, .. } => format!("Phase {phase} is stuck: {}", cause.message),
        Outcome::ModelUnavailable { cause, .. } | Outcome::Unfit { cause, .. } => {
            format!("Phase {phase} stopped: {}", cause.message)
        }
        Outcome::AttemptsUsedUp { .. } => words.verdict,
    };
    LastWords { verdict, ..words }
}
