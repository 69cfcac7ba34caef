//! A run as a person sees it: one live line while the model thinks, then a line for each thing that
//! happened.

mod counts;
mod printed;
mod progress;

use code_commit_engine::{
    Answered, Built, Changed, Event, GRADER, IGNORED_FILES, Observer, Problem, Progress, Ran,
};

use crate::live::LiveLine;
use crate::output::{BAD, DIM, GOOD, Output, Volume, WARN, printable, printable_name};
use crate::phrases::{self, last_lines};
pub use counts::Counts;
use printed::Printed;
pub use printed::{Printout, ReadPrintout};
use progress::{Status, received};

/// This many files that a build changed are named.
const NAMED: usize = 10;

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
            .live
            .above(|| self.output.note(&format!("{head}  {text}")));
    }

    fn under(&self, text: &str) {
        let indent = self.counts.indent();
        self.status
            .live
            .above(|| self.output.note(&format!("{:indent$}{text}", "")));
    }

    fn warn(&self, problem: &Problem) {
        self.status
            .live
            .above(|| self.output.warn(&problem.message));
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
            self.status.live.clear();
        }
        match line {
            Event::Answered(answered) => self.answered(answered),
            Event::Unanswered(none) => {
                self.bad(&format!("no reply: {}", printable(&none.cause.message)));
            }
            Event::Applied(of) => {
                let reasons = of.no_change.iter().map(|reason| printable(reason.trim()));
                reasons.for_each(|reason| self.line(&format!("nothing to change: {reason}")));
                // The summary marks what the build names: it is often what the work is about.
                let warnings = of.warnings.iter().filter(|one| one.code != GRADER);
                self.changed(&of.changes, warnings);
            }
            Event::Looked(looked) => {
                let failed = looked.failed.iter().map(code_commit_timeline::condition);
                failed.for_each(|one| {
                    self.bad(&format!("condition not met: {}", printable_name(&one)));
                });
            }
            Event::Broke(broke) => self.bad(&printable_name(&broke.message)),
            Event::Rejected(rejected) => self.refused("reply", &rejected.problems),
            Event::Built(built) => self.built(built),
            Event::Restored(restored) => {
                let text = format!("{} before the run", phrases::restored(restored.paths.len()));
                self.status.live.above(|| self.output.note(&text));
            }
            Event::Written(of) => {
                self.changed(&of.changes, &of.warnings);
                self.status
                    .begin(self.counts.head(self.now), "running commands");
            }
            Event::Refused(refused) => self.refused("proposal", &refused.problems),
            Event::Ran(ran) => self.ran(ran),
            Event::RolledBack(rolled_back) => {
                self.status.live.clear();
                let mut warnings = rolled_back.warnings.iter();
                let what = if warnings.any(|one| one.code == IGNORED_FILES) {
                    "what git does not ignore"
                } else {
                    "the tree"
                };
                self.line(&format!("rolled back: {what} is restored"));
                rolled_back.warnings.iter().for_each(|one| self.warn(one));
            }
            // The number of the attempt is not known yet.
            Event::Resumed { .. } if self.counts.has_preflight() => {
                self.output.note("continuing the run that was not finished");
            }
            Event::Ended { .. } => self.status.live.clear(),
            // A warning is also an event; the rest is only for the record.
            _ => {}
        }
    }

    fn changed<'p>(&self, changes: &[Changed], warnings: impl IntoIterator<Item = &'p Problem>) {
        let text = phrases::changes(changes);
        text.iter().for_each(|text| self.line(text));
        warnings.into_iter().for_each(|warning| self.warn(warning));
    }

    fn answered(&mut self, answered: &Answered) {
        self.status.live.clear();
        let took = phrases::took(answered.elapsed_ms);
        let size = phrases::bytes(answered.reply.stored.bytes);
        let tokens = phrases::tokens(&answered.usage);
        self.line(&format!("replied in {took}: {size}{tokens}"));
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
            self.status.live.above(|| self.output.warn(&text));
        }
    }

    fn refused(&self, what: &str, problems: &[Problem]) {
        let text = format!("{what} refused, nothing was written:");
        self.line(&self.output.paint_note(WARN, &text));
        let problems = problems.iter().map(|one| printable_name(&one.message));
        problems.for_each(|text| self.under(&text));
    }

    fn built(&mut self, built: &Built) {
        self.rest();
        let took = phrases::took(built.elapsed_ms);
        by_build(built).iter().for_each(|text| self.under(text));
        if built.passed() {
            let text = format!("build passed ({took})");
            return self.line(&self.output.paint_note(GOOD, &text));
        }
        let ended = phrases::ended(built.ended);
        self.bad(&format!("build failed: {ended} ({took})"));
        if let Some(hint) = phrases::hint(built.ended) {
            self.under(hint);
        }
        if let Some(printout) = (self.read)(&built.output.stored.file) {
            // Very long output is cut to its beginning and end.
            self.last_lines(&printout.text, Some(printout.is_whole));
        }
    }

    fn ran(&mut self, ran: &Ran) {
        self.rest();
        let command = printable_name(&ran.argv.join(" "));
        let took = phrases::took(ran.elapsed_ms);
        if ran.passed() {
            let good = self.output.paint_note(GOOD, "ok:");
            return self.line(&format!("{good} {command} ({took})"));
        }
        let ended = phrases::ended(ran.ended);
        self.bad(&format!("{command}: {ended} ({took})"));
        self.last_lines(&format!("{}{}", ran.stdout.text, ran.stderr.text), None);
    }

    /// Prints what follows the last complete line.
    fn rest(&mut self) {
        self.status.live.clear();
        let rest = self.printed.rest();
        self.print(rest.as_deref());
    }

    fn print(&self, lines: Option<&str>) {
        if let Some(lines) = lines {
            self.status.live.above(|| self.output.note_block(lines));
        }
    }

    /// The lines of a command's output that say why it failed. Nothing if `--verbose` has already shown all of it. Lines
    /// that are left out are counted if the log has them.
    fn last_lines(&self, text: &str, is_whole: Option<bool>) {
        if self.output.volume == Volume::Verbose {
            return;
        }
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let (named, last) = last_lines(&lines);
        let under = |line: &&str| self.under(&printable(line));
        named.iter().for_each(under);
        let skipped = lines.len() - last.len();
        if let Some(is_whole) = is_whole.filter(|_| skipped > 0) {
            let more = if is_whole {
                phrases::count(skipped as u64, "more line")
            } else {
                "more".to_owned()
            };
            self.under(&self.output.paint_note(DIM, &format!("… {more} in the log")));
        }
        last.iter().for_each(under);
    }
}

/// What a build changed besides. Warnings tell what of it was restored.
fn by_build(built: &Built) -> Vec<String> {
    let changed =
        |file: &Changed| Some(format!("{} {}", file.letter()?, printable_name(&file.path)));
    let changed: Vec<String> = built.changes.iter().filter_map(changed).collect();
    let changed = (!changed.is_empty())
        .then(|| format!("the build changed: {}", phrases::first(&changed, NAMED)));
    let ignored = Some(built.ignored_bytes).filter(|bytes| *bytes > 0);
    let ignored = ignored.map(phrases::bytes);
    let ignored = ignored.map(|bytes| format!("the build wrote {bytes} of ignored files"));
    changed.into_iter().chain(ignored).collect()
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
                let received = received(*bytes, *is_thinking, *text_bytes, files);
                self.status.now(received);
            }
            Progress::Spent { usd } => self.status.spent(*usd),
            Progress::Waiting { wait, reason, .. } => {
                let (reason, wait) = (printable(reason), phrases::seconds(*wait));
                let text = format!("{reason}; trying again in {wait}");
                self.line(&self.output.paint_note(WARN, &text));
            }
            Progress::CountingDown { left, .. } => {
                let left = phrases::seconds(*left);
                let text = format!("out of quota, asking again in {left}");
                self.status.now(text);
            }
            Progress::Said { text, .. } => {
                self.status
                    .live
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
