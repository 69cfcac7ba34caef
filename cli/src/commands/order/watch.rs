//! An order as a person sees it while it is carried out.

use std::time::Duration;

use loop_order::is_probe;
use perform::{CallFact, Event, IGNORED_FILES, Observer, OrderFact, Problem};

use crate::commands::order::show;
use crate::output::{BAD, DIM, GOOD, Output, Volume, WARN, printable};
use crate::terminal::live::LiveLine;
use crate::terminal::phrases;
use crate::terminal::printed::Printed;

/// At most so many lines of a failed command are repeated on the terminal; the run folder has them all.
const SHOWN_LINES: usize = 12;

/// Renders the events of one run on standard error.
#[derive(Debug)]
pub struct OrderTerminal {
    output: Output,
    model: String,
    attempts: u32,
    attempt: u32,
    live: LiveLine,
    printed: Printed,
}

impl OrderTerminal {
    /// For a run of at most `attempts` attempts with `model`.
    pub fn new(output: Output, model: String, attempts: u32) -> Self {
        let live = LiveLine::new(output.live);
        Self { output, model, attempts, attempt: 0, live, printed: Printed::default() }
    }

    fn head(&self) -> String {
        if self.attempt == 0 {
            "preflight".to_owned()
        } else {
            format!("attempt {}/{}", self.attempt, self.attempts)
        }
    }

    fn line(&self, text: &str) {
        let head = self.output.paint_note(DIM, &self.head());
        self.live.above(|| self.output.note(&format!("{head}  {text}")));
    }

    fn under(&self, text: &str) {
        self.live.above(|| self.output.note(&format!("             {text}")));
    }

    fn bad(&self, text: &str) {
        self.line(&self.output.paint_note(BAD, text));
    }

    fn problems(&self, problems: &[Problem]) {
        problems.iter().for_each(|problem| self.under(&printable(&problem.message)));
    }

    fn fact(&mut self, fact: &OrderFact) {
        // A run that goes on has no question to the model at its beginning.
        self.attempt = attempt_of(fact).unwrap_or(self.attempt);
        match fact {
            OrderFact::Call(call) => self.call(call),
            OrderFact::Looked { failed } if failed.is_empty() => {}
            OrderFact::Looked { failed } => {
                self.bad("not as the order wants it:");
                failed.iter().for_each(|condition| self.under(&printable(&show::words(condition))));
            }
            OrderFact::Written { changes, warnings, .. } => {
                changes.iter().for_each(|change| self.line(&phrases::change(change)));
                let warn = |warning: &Problem| self.output.warn(&printable(&warning.message));
                self.live.above(|| warnings.iter().for_each(warn));
                self.live.begin(&format!("{}  running commands", self.head()));
            }
            OrderFact::Refused { problems, .. } => {
                self.line(&self.output.paint_note(WARN, "proposal refused, nothing was written:"));
                self.problems(problems);
            }
            OrderFact::Ran { .. } => {
                let rest = self.printed.rest();
                self.print(rest.as_deref());
                self.ran(fact);
            }
            OrderFact::RolledBack { warnings } => {
                self.live.clear();
                let is_whole = warnings.iter().all(|warning| warning.code != IGNORED_FILES);
                let what = if is_whole { "the tree" } else { "what git does not ignore" };
                self.line(&format!("rolled back: {what} is as it was"));
                warnings.iter().for_each(|warning| self.output.warn(&printable(&warning.message)));
            }
            OrderFact::Broke { message } => self.bad(&printable(message)),
            // In which attempt is not known yet.
            OrderFact::Resumed => self.output.note("going on with the run that was not finished"),
            OrderFact::Ended { .. } => self.live.clear(),
            // A warning is an event of its own, too.
            OrderFact::Warned { .. }
            | OrderFact::Stamped { .. }
            | OrderFact::Kept { .. }
            | OrderFact::Measured { .. }
            | OrderFact::Committed { .. }
            | OrderFact::NotCommitted { .. } => {}
        }
    }

    fn print(&self, lines: Option<&str>) {
        if let Some(lines) = lines {
            self.live.above(|| self.output.note_block(lines));
        }
    }

    fn ran(&self, fact: &OrderFact) {
        let OrderFact::Ran { log, argv, ended, stdout, stderr, elapsed_ms, .. } = fact else { return };
        let command = printable(&argv.join(" "));
        let took = phrases::seconds(Duration::from_millis(*elapsed_ms));
        match (fact.is_passed_command(), is_probe(log)) {
            (true, true) => {
                self.bad(&format!("{command} succeeds, but must fail before the change ({took})"));
            }
            (true, false) => {
                self.line(&format!("{} {command} ({took})", self.output.paint_note(GOOD, "ok:")));
            }
            (false, true) => {
                let good = self.output.paint_note(GOOD, "ok:");
                self.line(&format!("{good} {command} fails, as it must before the change ({took})"));
            }
            (false, false) => {
                self.bad(&format!("{command}: {} ({took})", phrases::ended(*ended)));
                self.last_lines(&format!("{}{}", stdout.text, stderr.text));
            }
        }
    }

    fn call(&self, call: &CallFact) {
        match call {
            CallFact::Answered { usage, elapsed_ms, reply, .. } => {
                self.live.clear();
                let took = phrases::seconds(Duration::from_millis(*elapsed_ms));
                let size = phrases::bytes(reply.stored.bytes);
                self.line(&format!("answered in {took}: {size}{}", phrases::tokens(usage)));
            }
            CallFact::Unanswered { cause, .. } => {
                self.live.clear();
                self.bad(&format!("no answer: {}", printable(&cause.message)));
            }
            CallFact::Asked { .. } | CallFact::Attempted { .. } => {}
        }
    }

    /// The end of what a command printed, unless `--verbose` has shown all of it.
    fn last_lines(&self, text: &str) {
        if self.output.volume == Volume::Verbose {
            return;
        }
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let skipped = lines.len().saturating_sub(SHOWN_LINES);
        lines.iter().skip(skipped).for_each(|line| self.under(&printable(line)));
    }
}

/// The attempt that what happened belongs to, where it says so.
fn attempt_of(fact: &OrderFact) -> Option<u32> {
    if let OrderFact::Written { attempt, .. } | OrderFact::Refused { attempt, .. } = fact {
        return Some(*attempt);
    }
    show::attempt_of(fact)
}

impl Observer<OrderFact> for OrderTerminal {
    fn see(&mut self, event: &Event<'_, OrderFact>) {
        match event {
            Event::AskBegins { round, prompt_bytes } => {
                self.attempt = *round;
                let size = phrases::bytes(*prompt_bytes);
                self.line(&format!("asking {} ({size})", printable(&self.model)));
                self.live.begin(&format!("{}  waiting for the model", self.head()));
            }
            Event::Receiving { bytes, .. } => {
                self.live.say(&format!("receiving, {}", phrases::bytes(*bytes)));
            }
            Event::Waiting { wait, reason, .. } => {
                let text = format!("{}; trying again in {}", printable(reason), phrases::seconds(*wait));
                self.line(&self.output.paint_note(WARN, &text));
            }
            Event::BuildPrints { bytes } if self.output.volume == Volume::Verbose => {
                let lines = self.printed.whole_lines(bytes);
                self.print(lines.as_deref());
            }
            Event::Warning(problem) => self.live.above(|| self.output.warn(&printable(&problem.message))),
            Event::Fact(fact) => self.fact(fact),
            Event::BuildPrints { .. } | Event::Said { .. } | Event::BuildBegins { .. } => {}
        }
    }
}
