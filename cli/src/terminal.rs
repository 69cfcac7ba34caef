//! A run as a person sees it: one live line while the model thinks, then a line for each thing that happened.

pub mod live;
pub mod phrases;
pub mod printed;

use std::time::Duration;

use parser::ErrorCode;
use perform::{CallFact, Event, Fact, Observer, Problem, Text};

use crate::output::{BAD, DIM, GOOD, Output, Volume, WARN, printable};
use live::LiveLine;
use printed::Printed;

/// At most so many lines of a failed build are repeated on the terminal; the log has them all.
const BUILD_LINES: usize = 12;

/// Renders the events of one run on standard error.
#[derive(Debug)]
pub struct Terminal {
    output: Output,
    model: String,
    rounds: u32,
    /// Where the run is recorded.
    log: String,
    /// The file there with the last answer.
    answer: String,
    live: LiveLine,
    printed: Printed,
}

impl Terminal {
    /// For a run of at most `rounds` rounds with `model`, which is recorded in the folder `log`.
    pub fn new(output: Output, model: String, rounds: u32, log: String) -> Self {
        let live = LiveLine::new(output.live);
        Self { output, model, rounds, log, answer: String::new(), live, printed: Printed::default() }
    }

    fn line(&self, round: u32, text: &str) {
        let head = self.output.paint_note(DIM, &format!("round {round}/{}", self.rounds));
        self.live.above(|| self.output.note(&format!("{head}  {text}")));
    }

    fn under(&self, text: &str) {
        self.live.above(|| self.output.note(&format!("           {text}")));
    }

    fn warn(&self, problem: &Problem) {
        self.live.above(|| self.output.warn(&printable(&problem.message)));
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Call(call) => self.call(call),
            Fact::Applied { round, changes, warnings, no_change } => {
                if let Some(reason) = no_change {
                    self.line(*round, &format!("nothing to change: {}", printable(reason.trim())));
                }
                changes.iter().for_each(|change| self.line(*round, &phrases::change(change)));
                warnings.iter().for_each(|warning| self.warn(warning));
            }
            Fact::Rejected { round, problems, .. } => {
                let text = self.output.paint_note(WARN, "reply refused, nothing was written:");
                self.line(*round, &text);
                problems.iter().for_each(|problem| self.under(&printable(&problem.message)));
                // What a model says in place of files is what a person needs to read.
                let nothing_in_it = ErrorCode::NothingActionable.as_str();
                if problems.iter().any(|problem| problem.code == nothing_in_it) {
                    self.under(&format!(
                        "what it says is in {}/{}",
                        printable(&self.log),
                        printable(&self.answer)
                    ));
                }
            }
            Fact::Built { round, ended, output, elapsed_ms, .. } => {
                self.live.clear();
                let rest = self.printed.rest();
                self.print(rest.as_deref());
                let took = phrases::seconds(Duration::from_millis(*elapsed_ms));
                if fact.is_passed_build() {
                    self.line(*round, &self.output.paint_note(GOOD, &format!("the build passes ({took})")));
                } else {
                    let text = format!("the build fails: {} ({took})", phrases::ended(*ended));
                    self.line(*round, &self.output.paint_note(BAD, &text));
                    if let Some(remedy) = phrases::remedy(*ended) {
                        self.under(remedy);
                    }
                    self.last_lines(output);
                }
            }
            Fact::Restored { paths } => {
                let text = format!("{} before the run", phrases::files_as_they_were(paths.len()));
                self.live.above(|| self.output.note(&text));
            }
            // A warning is an event of its own, too.
            Fact::Warned { .. } | Fact::Resumed | Fact::Ended { .. } => {}
        }
    }

    fn call(&mut self, call: &CallFact) {
        match call {
            CallFact::Answered { round, usage, elapsed_ms, reply, served_model, .. } => {
                self.live.clear();
                self.answer.clone_from(&reply.stored.file);
                let took = phrases::seconds(Duration::from_millis(*elapsed_ms));
                let size = phrases::bytes(reply.stored.bytes);
                self.line(*round, &format!("answered in {took}: {size}{}", phrases::tokens(usage)));
                self.other_model(served_model.as_deref());
            }
            CallFact::Unanswered { round, cause } => {
                self.live.clear();
                let text = format!("no answer: {}", printable(&cause.message));
                self.line(*round, &self.output.paint_note(BAD, &text));
            }
            CallFact::Asked { .. } | CallFact::Attempted { .. } => {}
        }
    }

    /// Services send requests for models that they have given up to others, at the others' price.
    fn other_model(&self, served: Option<&str>) {
        let asked = self.model.split_once('/').map_or(self.model.as_str(), |(_, name)| name);
        if let Some(other) = served.filter(|served| !served.trim_start_matches("models/").starts_with(asked))
        {
            let text = format!(
                "{} answered in the place of {}; its price counts",
                printable(other),
                printable(asked)
            );
            self.live.above(|| self.output.warn(&text));
        }
    }

    fn print(&self, lines: Option<&str>) {
        if let Some(lines) = lines {
            self.live.above(|| self.output.note_block(lines));
        }
    }

    /// The end of a build's output, unless `--verbose` has shown all of it.
    fn last_lines(&self, output: &Text) {
        if self.output.volume == Volume::Verbose {
            return;
        }
        let text = output.as_str();
        let lines = || text.trim_end().lines();
        let skipped = lines().count().saturating_sub(BUILD_LINES);
        if skipped > 0 {
            // Of very much output only the ends are here.
            let is_whole = output.whole_bytes() == text.len();
            let more = if is_whole { phrases::count(skipped as u64, "more line") } else { "more".to_owned() };
            self.under(&self.output.paint_note(DIM, &format!("… {more} in the log")));
        }
        lines().skip(skipped).for_each(|line| self.under(&printable(line)));
    }
}

impl Observer for Terminal {
    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::AskBegins { round, prompt_bytes } => {
                let size = phrases::bytes(*prompt_bytes);
                self.line(*round, &format!("asking {} ({size})", printable(&self.model)));
                self.live.begin(&format!("round {round}/{}  waiting for the model", self.rounds));
            }
            Event::Receiving { bytes, .. } => {
                self.live.say(&format!("receiving, {}", phrases::bytes(*bytes)));
            }
            Event::Waiting { round, wait, reason } => {
                let text = format!("{}; trying again in {}", printable(reason), phrases::seconds(*wait));
                self.line(*round, &self.output.paint_note(WARN, &text));
            }
            Event::Said { text, .. } => {
                self.live.above(|| self.output.report_prose(&printable(text.trim_end())));
            }
            Event::BuildBegins { round } => {
                self.live.begin(&format!("round {round}/{}  building", self.rounds));
            }
            Event::BuildPrints { bytes } => {
                if self.output.volume == Volume::Verbose {
                    let lines = self.printed.whole_lines(bytes);
                    self.print(lines.as_deref());
                }
            }
            Event::Warning(problem) => self.warn(problem),
            Event::Fact(fact) => self.fact(fact),
        }
    }
}
