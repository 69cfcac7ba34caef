//! A run as a person sees it: one live line while the model thinks, then a line for each thing that
//! happened.

mod counts;
mod printed;
mod progress;

use std::time::Duration;

use code_commit_engine::{
    Answered, Applied, Built, Changed, Condition, Event, GRADER, IGNORED_FILES, Observer, Problem,
    Progress, Ran, Stored, Written,
};
use code_commit_timeline::names_failure;

use crate::live::LiveLine;
use crate::output::{BAD, DIM, GOOD, Output, Volume, WARN, printable, printable_name};
use crate::phrases;
use crate::show::by_command;
pub use counts::Counts;
use printed::Printed;
pub use printed::{Printout, ReadPrintout};
use progress::Status;

/// At most this many lines of a failed command are repeated on the terminal; the record has all of
/// them.
const SHOWN_LINES: usize = 12;
/// At most this many lines above them.
const SHOWN_FAILURES: usize = 3;

/// Renders the events of one run on standard error.
pub struct Terminal {
    output: Output,
    model: String,
    counts: Counts,
    now: u32,
    read: ReadPrintout,
    status: Status,
    printed: Printed,
}

impl Terminal {
    /// For a run with `model`. `read` reads from the record.
    pub fn new(output: Output, model: String, counts: Counts, read: ReadPrintout) -> Self {
        let status = Status::new(LiveLine::new(output.live));
        Self {
            output,
            model,
            counts,
            now: 0,
            read,
            status,
            printed: Printed::default(),
        }
    }

    fn line(&self, text: &str) {
        let head = self.output.paint_note(DIM, &self.counts.head(self.now));
        self.status
            .above(|| self.output.note(&format!("{head}  {text}")));
    }

    fn under(&self, text: &str) {
        let indent = self.counts.indent();
        self.status
            .above(|| self.output.note(&format!("{:indent$}{text}", "")));
    }

    fn warn(&self, problem: &Problem) {
        self.status.above(|| self.output.warn(&problem.message));
    }

    fn bad(&self, text: &str) {
        self.line(&self.output.paint_note(BAD, text));
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other lines of a journal are not for a person"
    )]
    fn recorded(&mut self, line: &Event) {
        // A resumed run does not begin with a request to the model.
        self.now = line.round().unwrap_or(self.now);
        if matches!(line, Event::Unanswered(_)) {
            self.status.clear();
        }
        match line {
            Event::Answered(answered) => self.answered(answered),
            Event::Unanswered(none) => {
                self.bad(&format!("no reply: {}", printable(&none.cause.message)));
            }
            Event::Applied(Applied {
                no_change,
                changes,
                warnings,
                ..
            }) => {
                let reasons = no_change.iter().map(|reason| printable(reason.trim()));
                reasons.for_each(|reason| self.line(&format!("nothing to change: {reason}")));
                // The summary marks what the build names: it is often what the work is about.
                let warnings = warnings.iter().filter(|warning| warning.code != GRADER);
                self.changed(changes, warnings);
            }
            Event::Looked(looked) => self.lacking(&looked.failed),
            Event::Broke(broke) => self.bad(&printable_name(&broke.message)),
            Event::Rejected(rejected) => self.refused("reply", &rejected.problems),
            Event::Built(built) => self.built(built),
            Event::Restored(restored) => {
                let text = format!("{} before the run", phrases::restored(restored.paths.len()));
                self.status.above(|| self.output.note(&text));
            }
            Event::Written(Written {
                changes, warnings, ..
            }) => {
                self.changed(changes, warnings);
                self.status
                    .begin(self.counts.head(self.now), "running commands");
            }
            Event::Refused(refused) => self.refused("proposal", &refused.problems),
            Event::Ran(ran) => self.ran(ran),
            Event::RolledBack(rolled_back) => {
                self.status.clear();
                let is_whole = rolled_back
                    .warnings
                    .iter()
                    .all(|warning| warning.code != IGNORED_FILES);
                let what = if is_whole {
                    "the tree"
                } else {
                    "what git does not ignore"
                };
                self.line(&format!("rolled back: {what} is restored"));
                rolled_back
                    .warnings
                    .iter()
                    .for_each(|warning| self.warn(warning));
            }
            // The number of the attempt is not known yet.
            Event::Resumed { .. } if matches!(self.counts, Counts::Attempts(_)) => {
                self.output.note("continuing the run that was not finished");
            }
            Event::Ended { .. } => self.status.clear(),
            // A warning is also an event; the rest is only for the record.
            _ => {}
        }
    }

    fn lacking(&self, failed: &[Condition]) {
        let wanted = failed.iter().map(code_commit_timeline::condition);
        wanted.for_each(|one| {
            self.bad(&format!("condition not met: {}", printable_name(&one)));
        });
    }

    fn changed<'p>(&self, changes: &[Changed], warnings: impl IntoIterator<Item = &'p Problem>) {
        phrases::changes(changes)
            .iter()
            .for_each(|text| self.line(text));
        warnings.into_iter().for_each(|warning| self.warn(warning));
    }

    fn answered(&mut self, answered: &Answered) {
        self.status.clear();
        let took = phrases::seconds(Duration::from_millis(answered.elapsed_ms));
        let size = phrases::bytes(answered.reply.stored.bytes);
        self.line(&format!(
            "replied in {took}: {size}{}",
            phrases::tokens(&answered.usage)
        ));
        self.other_model(answered.served_model.as_deref());
    }

    /// Services redirect requests for retired models to other models, at their prices.
    fn other_model(&self, served: Option<&str>) {
        let asked = self
            .model
            .split_once('/')
            .map_or(self.model.as_str(), |(_, name)| name);
        if let Some(other) =
            served.filter(|served| !served.trim_start_matches("models/").starts_with(asked))
        {
            let text = format!("{other} replied instead of {asked}; its price applies");
            self.status.above(|| self.output.warn(&text));
        }
    }

    fn refused(&self, what: &str, problems: &[Problem]) {
        self.line(
            &self
                .output
                .paint_note(WARN, &format!("{what} refused, nothing was written:")),
        );
        problems
            .iter()
            .for_each(|problem| self.under(&printable_name(&problem.message)));
    }

    fn built(&mut self, built: &Built) {
        self.rest();
        let took = phrases::seconds(Duration::from_millis(built.elapsed_ms));
        by_command("the build", &built.changes, built.ignored_bytes)
            .iter()
            .for_each(|text| self.under(text));
        if built.passed() {
            return self.line(
                &self
                    .output
                    .paint_note(GOOD, &format!("build passed ({took})")),
            );
        }
        self.bad(&format!(
            "build failed: {} ({took})",
            phrases::ended(built.ended)
        ));
        if let Some(hint) = phrases::hint(built.ended) {
            self.under(hint);
        }
        self.last_lines_of(&built.output.stored);
    }

    fn ran(&mut self, ran: &Ran) {
        self.rest();
        let Ran {
            argv,
            ended,
            stdout,
            stderr,
            elapsed_ms,
            ..
        } = ran;
        let command = printable_name(&argv.join(" "));
        let took = phrases::seconds(Duration::from_millis(*elapsed_ms));
        let good = self.output.paint_note(GOOD, "ok:");
        if ran.passed() {
            self.line(&format!("{good} {command} ({took})"));
        } else {
            self.bad(&format!("{command}: {} ({took})", phrases::ended(*ended)));
            self.last_lines(&format!("{}{}", stdout.text, stderr.text), None);
        }
    }

    /// Prints what follows the last complete line.
    fn rest(&mut self) {
        self.status.clear();
        let rest = self.printed.rest();
        self.print(rest.as_deref());
    }

    fn print(&self, lines: Option<&str>) {
        if let Some(lines) = lines {
            self.status.above(|| self.output.note_block(lines));
        }
    }

    fn last_lines_of(&self, output: &Stored) {
        if let Some(printout) = (self.read)(&output.file) {
            // Very long output is cut to its beginning and end.
            self.last_lines(&printout.text, Some(printout.is_whole));
        }
    }

    /// The end of a command's output, and above it the first lines that name a failure: the end of a test runner's says
    /// how many failed and not which. Nothing if `--verbose` has already shown all of it. Lines that are left out are
    /// counted if the log has them.
    fn last_lines(&self, text: &str, is_whole: Option<bool>) {
        if self.output.volume == Volume::Verbose {
            return;
        }
        let lines = || text.trim_end().lines();
        let skipped = lines().count().saturating_sub(SHOWN_LINES);
        lines()
            .take(skipped)
            .filter(|line| names_failure(line))
            .take(SHOWN_FAILURES)
            .for_each(|line| self.under(&printable(line)));
        if let Some(is_whole) = is_whole.filter(|_| skipped > 0) {
            let more = if is_whole {
                phrases::count(skipped as u64, "more line")
            } else {
                "more".to_owned()
            };
            self.under(&self.output.paint_note(DIM, &format!("… {more} in the log")));
        }
        lines()
            .skip(skipped)
            .for_each(|line| self.under(&printable(line)));
    }
}

impl Observer for Terminal {
    fn see(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::AskBegins {
                round,
                prompt_bytes,
                model,
            } => {
                self.now = *round;
                self.model.clone_from(model);
                let size = phrases::bytes(*prompt_bytes);
                self.line(&format!("asking {} ({size})", printable(&self.model)));
                self.status
                    .begin(self.counts.head(self.now), "waiting for the model");
            }
            Progress::Receiving {
                bytes,
                is_thinking,
                text_bytes,
                files,
                ..
            } => {
                self.status
                    .received(*bytes, *is_thinking, *text_bytes, files);
            }
            Progress::Spent { usd } => self.status.spent(*usd),
            Progress::Waiting { wait, reason, .. } => {
                let text = format!(
                    "{}; trying again in {}",
                    printable(reason),
                    phrases::seconds(*wait)
                );
                self.line(&self.output.paint_note(WARN, &text));
            }
            Progress::CountingDown { left, .. } => {
                self.status.now(format!(
                    "out of quota, asking again in {}",
                    phrases::countdown(*left)
                ));
            }
            Progress::Said { text, .. } => {
                self.status
                    .above(|| self.output.report_prose(&printable(text.trim_end())));
            }
            Progress::BuildBegins { round } => {
                self.now = *round;
                self.status.begin(self.counts.head(self.now), "building");
            }
            Progress::BuildPrints { bytes } if self.output.volume == Volume::Verbose => {
                let lines = self.printed.whole_lines(bytes);
                self.print(lines.as_deref());
            }
            Progress::BuildPrints { bytes } => self.status.printed(bytes),
            Progress::Warning(problem) => self.warn(problem),
            Progress::Recorded { line, .. } => self.recorded(line),
        }
    }
}
