//! What a person, or a program, sees of a run while it goes on. The one module of the spec loop that writes to the terminal.

mod ear;

use std::cell::RefCell;
use std::rc::Rc;

use code_commit_agent::Event;
use code_commit_engine::{CheckpointResult, Line, ShellRan, Turned};
use code_commit_logging::RunFolder;
use code_commit_loop_spec::watch::WatchEvent;
use code_commit_loop_spec::{PhaseEvent, TBD};
use code_commit_perform::{Observer, output_text};

pub(super) use self::ear::{Ear, in_session};
use crate::agents::{as_changed, worth_a_look};
use crate::spec::events;
use crate::spec::workspace::put_back;
use code_commit_report::{
    BAD, DIM, GOOD, Output, STRONG, Volume, WARN, live::LiveLine, phrases, printable, whole_lines,
};
use serde_json::json;

/// Prints. Clones share one screen.
#[derive(Debug, Clone)]
pub struct Lines {
    output: Output,
    specs: String,
    screen: Rc<RefCell<Screen>>,
}

#[derive(Debug)]
struct Screen {
    live: LiveLine,
    iteration: u32,
    /// Words of the agent that have not come to the end of their line.
    open: String,
    /// Where the run is recorded.
    run: Option<RunFolder>,
}

impl Lines {
    /// On standard output; as JSON if that is asked for.
    /// `specs` is the folder of the specs.
    pub fn new(output: Output, specs: &str) -> Self {
        let live = LiveLine::new(output.live && !output.json);
        let screen = Screen {
            live,
            iteration: 0,
            open: String::new(),
            run: None,
        };
        Self {
            output,
            specs: specs.to_owned(),
            screen: Rc::new(RefCell::new(screen)),
        }
    }

    /// From now on these are the lines of the run in this folder.
    pub fn of_run(&self, folder: &RunFolder) {
        self.screen.borrow_mut().run = Some(folder.clone());
    }

    fn printed(&self, line: &Line) -> String {
        let Line::ShellRan(ran) = line else {
            return String::new();
        };
        let run = self.screen.borrow().run.clone();
        let text = run.and_then(|run| output_text(&run, &ran.output.stored.file).ok());
        text.map(|text| text.as_str().to_owned())
            .unwrap_or_default()
    }

    fn say(&self, text: &str) {
        if self.output.volume > Volume::Quiet {
            self.screen.borrow().live.above(|| self.output.report(text));
        }
    }

    fn verbose(&self, text: &str) {
        if self.output.volume == Volume::Verbose {
            self.say(text);
        }
    }

    fn head(&self, head: &str, text: &str) {
        self.say(&format!(
            "{} {text}",
            self.output.paint(STRONG, &format!("[{head}]"))
        ));
    }

    fn phase(&self, event: &PhaseEvent) {
        match event {
            PhaseEvent::IterationStart {
                iteration,
                max_iterations,
            } => {
                self.screen.borrow_mut().iteration = *iteration;
                self.head(
                    "Loop",
                    &format!("=== Iteration {iteration}/{max_iterations} ==="),
                );
            }
            PhaseEvent::PlanningStart { .. } => self.head("Planning", "Starting..."),
            PhaseEvent::ImplementingStart { .. } => self.head("Implementing", "Starting..."),
            PhaseEvent::ReviewingStart { .. } => self.head("Reviewing", "Starting..."),
            PhaseEvent::SpecsChanged { .. } => {
                let said = "The specs were edited: agents go by them as they are now";
                self.head("Loop", &self.output.paint(WARN, said));
            }
            PhaseEvent::QuotaWaitStart { until_unix, .. } => {
                let seconds = i64::try_from(*until_unix).unwrap_or(i64::MAX);
                let when = jiff::Timestamp::from_second(seconds)
                    .map(|when| when.to_string())
                    .unwrap_or_default();
                self.head(
                    "Loop",
                    &self
                        .output
                        .paint(WARN, &format!("Quota used up; waiting until {when}")),
                );
            }
            PhaseEvent::LoopApproved { .. } => {
                self.head("Loop", &self.output.paint(GOOD, "Approved"));
            }
            PhaseEvent::LoopSpecIssue {
                content, filename, ..
            } => {
                let file = format!(
                    "{}/{}/{filename}",
                    code_commit_loop_spec::STORE,
                    code_commit_loop_spec::ISSUES
                );
                self.head(
                    "Loop",
                    &self.output.paint(BAD, &format!("Spec issue: {file}")),
                );
                self.say(printable(content).trim_end());
            }
            PhaseEvent::LoopMaxIterations { iteration, review } => {
                self.head(
                    "Loop",
                    &self.output.paint(
                        BAD,
                        &format!(
                            "Maximum of {} reached",
                            phrases::count(u64::from(*iteration), "iteration")
                        ),
                    ),
                );
                self.say(printable(review).trim_end());
            }
        }
    }

    fn ran(&self, ShellRan { name, ended, .. }: &ShellRan, output: &str) {
        let head = if name == code_commit_loop_spec::SETUP {
            "Setup"
        } else {
            "Check"
        };
        match ended.exit_code() {
            Some(code) => self.head(head, &format!("Completed (exit {code})")),
            None => self.head(head, &format!("Failed: it {ended}")),
        }
        self.verbose(printable(output).trim_end());
    }

    fn checkpoint(&self, message: &str, checkpoint: &CheckpointResult) {
        match checkpoint {
            CheckpointResult::Made { commit } => {
                let short: String = commit.chars().take(7).collect();
                let subject = printable(message.lines().next().unwrap_or_default());
                self.head("Commit", &format!("{short} {subject}"));
            }
            CheckpointResult::Failed { error } => {
                self.head(
                    "Commit",
                    &self
                        .output
                        .paint(BAD, &format!("Failed: {}", printable(error))),
                );
            }
            CheckpointResult::Nothing => {}
        }
    }

    fn turn_is_over(&self, turned: &Turned) {
        self.end_of_text();
        self.screen.borrow_mut().live.clear();
        for path in &turned.put_back {
            self.output.warn(&put_back(path, &turned.role, &self.specs));
        }
        if !turned.put_back.is_empty() {
            self.output.note(&as_changed(turned.number));
        }
        worth_a_look(&turned.changed)
            .iter()
            .for_each(|warning| self.output.warn(warning));
    }

    fn end_of_text(&self) {
        let text = std::mem::take(&mut self.screen.borrow_mut().open);
        if !text.trim().is_empty() {
            self.verbose(printable(text.trim_end()).as_str());
        }
    }

    /// Whole lines at once.
    fn text(&self, piece: &str) {
        let lines = whole_lines(&mut self.screen.borrow_mut().open, piece);
        if !lines.trim().is_empty() {
            self.verbose(printable(lines.trim_end()).as_str());
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what an agent does besides is not shown"
    )]
    fn event(&self, event: &Event) {
        if let Event::Text(text) = event {
            return self.text(text);
        }
        self.end_of_text();
        match event {
            Event::ToolCall {
                name,
                argument: Some(argument),
                ..
            } => {
                self.say(&format!("▶ {}: {}", printable(name), printable(argument)));
            }
            Event::ToolCall {
                name,
                argument: None,
                ..
            } => self.say(&format!("▶ {}", printable(name))),
            Event::ToolResult {
                ok: true, message, ..
            } => {
                let text = printable(message.as_deref().unwrap_or_default());
                self.verbose(&self.output.paint(DIM, format!("  ✓ {text}").trim_end()));
            }
            Event::ToolResult {
                ok: false, message, ..
            } => {
                let text = printable(message.as_deref().unwrap_or("failed"));
                self.verbose(&self.output.paint(WARN, &format!("  ✗ {text}")));
            }
            Event::Retry { reason, .. } => {
                self.verbose(&format!("the service failed: {}", printable(reason)));
            }
            Event::Note(text) => self.verbose(&printable(text)),
            _ => {}
        }
    }

    /// What the watch says of itself.
    pub fn watch(&self, event: &WatchEvent) {
        if let Ok(value) = serde_json::to_value(event) {
            self.output.object(&value);
        }
        let head = match event {
            WatchEvent::AuditStarted
            | WatchEvent::AuditEnded
            | WatchEvent::AuditInterrupted
            | WatchEvent::TbdItemFound { .. } => "Audit",
            WatchEvent::BacklogEmpty
            | WatchEvent::ChangeDetected
            | WatchEvent::DebounceComplete
            | WatchEvent::ProcessingItem { .. }
            | WatchEvent::ItemCompleted { .. }
            | WatchEvent::ItemRetained { .. }
            | WatchEvent::ItemParked { .. }
            | WatchEvent::SpecIssueWaiting { .. } => "Watch",
        };
        let text = match event {
            WatchEvent::BacklogEmpty => "Backlog empty, waiting...".to_owned(),
            WatchEvent::ChangeDetected => "Change detected, waiting for it to settle...".to_owned(),
            WatchEvent::DebounceComplete => "Settled".to_owned(),
            WatchEvent::ProcessingItem { filename } => {
                format!("Processing {}", printable(filename))
            }
            WatchEvent::ItemCompleted { filename } => format!("Completed {}", printable(filename)),
            WatchEvent::ItemRetained { filename, reason } => {
                format!("Kept {}: {reason}", printable(filename))
            }
            WatchEvent::ItemParked { filename, reason } => {
                format!("{} {reason}", printable(filename))
            }
            WatchEvent::SpecIssueWaiting { filenames } => {
                let count = phrases::count(filenames.len() as u64, "spec issue");
                format!("Waiting for {count}: {}", printable(&filenames.join(", ")))
            }
            WatchEvent::AuditStarted => "Starting...".to_owned(),
            WatchEvent::AuditEnded => "Ended".to_owned(),
            WatchEvent::AuditInterrupted => "Interrupted".to_owned(),
            WatchEvent::TbdItemFound { filename, .. } => {
                format!("To be discussed: {TBD}/{filename}")
            }
        };
        self.head(head, &text);
    }
}

impl Lines {
    /// A line of the journal.
    pub fn recorded(&self, line: &Line) {
        let iteration = self.screen.borrow().iteration;
        let printed = self.printed(line);
        if let Some(value) = events::line(iteration, line, &printed) {
            self.output.object(&value);
        }
        if let Line::Announced(announced) = line
            && let Some(event) = PhaseEvent::of_json(&announced.event)
        {
            self.phase(&event);
        } else if let Line::ShellRan(ran) = line {
            self.ran(ran, &printed);
        } else if let Line::Checkpointed(point) = line {
            self.checkpoint(&point.message, &point.checkpoint);
        } else if let Line::Turned(turned) = line {
            self.turn_is_over(turned);
        }
    }
}

impl Observer for Lines {
    fn see(&mut self, event: &code_commit_perform::Event<'_>) {
        if let code_commit_perform::Event::Warning(problem) = event {
            self.output
                .object(&json!({ "event": "warning", "problem": problem }));
            self.output.warn(&problem.message);
        }
        if let code_commit_perform::Event::Line { line, .. } = event {
            self.recorded(line);
        }
    }
}
