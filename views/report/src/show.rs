//! The record of a run, printed line by line for a person.

use code_commit_engine::{Applied, Asked, Built, Committed, GRADER, HoldsFor, Line, Problem, Written};
use code_commit_timeline::Steps;

use crate::output::{BAD, DIM, GOOD, Output, Style, WARN, printable};
use crate::phrases;

/// What a verdict holds for, shortened like git's hashes; nothing if there was no verdict.
pub fn holds_for(of: &HoldsFor, output: &Output) {
    let HoldsFor { tree, specification, decider } = of;
    let named = [("tree", tree), ("specification", specification), ("decider", decider)];
    let part = |(name, hash): (&str, &Option<String>)| Some(format!("{name} {}", hash.as_ref()?.get(..12)?));
    let parts: Vec<String> = named.into_iter().filter_map(part).collect();
    if !parts.is_empty() {
        output.report_below(&format!("holds for: {}", parts.join(", ")), "holds for: ".len());
    }
}

/// The last round or attempt in which the model was asked; 0 if it never was.
pub fn rounds_asked(lines: &[Line]) -> u32 {
    Steps::untimed(lines).rounds_asked()
}

/// Prints what is of interest in these lines, each with its round or attempt: `what` says which of
/// the two the run counts.
pub fn lines(what: &str, recorded: &[Line], output: &Output) {
    let mut now = 0;
    for one in recorded {
        now = one.round().unwrap_or(now);
        line(what, now, one, output);
    }
}

/// The same for one line.
#[expect(clippy::wildcard_enum_match_arm, reason = "other lines of a journal are not for a person")]
pub fn line(what: &str, now: u32, recorded: &Line, output: &Output) {
    let head = if now == 0 { "preflight".to_owned() } else { format!("{what} {now}") };
    let say = |text: &str| output.report_prose(&format!("{}  {text}", output.paint(DIM, &head)));
    let warn = |problem: &Problem| say(&output.paint(WARN, &printable(&problem.message)));
    tell(recorded, |told| match told {
        Told::Line(style, text) => say(&output.paint(style, &text)),
        Told::Under(text) => say(&text),
        Told::Warning(problem) => warn(problem),
    });
    match recorded {
        Line::Rejected(rejected) => {
            for problem in &rejected.problems {
                let text = format!("refused: {} [{}]", printable(&problem.message), problem.code);
                say(&output.paint(WARN, &text));
            }
        }
        Line::Built(built) => {
            let style = if built.passed() { GOOD } else { BAD };
            let text = format!("build: {}, {}", phrases::ended(built.ended), built.output.stored.file);
            say(&output.paint(style, &text));
            by_build(built).iter().for_each(|text| say(text));
        }
        Line::BaselineBuilt(built) => say(&output.paint(BAD, &phrases::baseline(built))),
        Line::Refused(refused) => {
            say(&output.paint(WARN, "proposal refused, nothing was written:"));
            refused.problems.iter().for_each(warn);
        }
        Line::Ran(ran) => {
            let must_fail = ran.is_probe();
            let style = if ran.passed() == must_fail { BAD } else { GOOD };
            let ended = output.paint(style, &phrases::ended(ran.ended));
            let wrong = if must_fail && ran.passed() { ", but must fail before the change" } else { "" };
            say(&format!("{}: {ended}{wrong}, {}", printable(&ran.argv.join(" ")), ran.stdout.file));
        }
        Line::RolledBack(rolled_back) => {
            say("rolled back");
            rolled_back.warnings.iter().for_each(warn);
        }
        Line::Committed(Committed { commit: Some(commit), .. }) => {
            say(&format!("committed as {}", printable(commit)));
        }
        Line::NotCommitted(why) => {
            say(&output.paint(BAD, &format!("not committed: {}", printable(&why.message))));
        }
        Line::Warned { warning } => {
            let head = output.paint(WARN, "warning:");
            output.report_prose(&format!("{head} {}", printable(&warning.message)));
        }
        Line::Restored(restored) => {
            output.report(&format!("restored: {}", phrases::count(restored.paths.len() as u64, "file")));
        }
        Line::Resumed { .. } => output.report("resumed: the prompt is sent again"),
        Line::Ended { outcome, holds_for: of } => {
            output.report(&format!("ended: {}", outcome.code()));
            holds_for(of, output);
        }
        other => call(other, output).iter().for_each(|text| say(text)),
    }
}

/// The result of a model's call, if there is something to say.
#[expect(clippy::wildcard_enum_match_arm, reason = "other lines of a journal are not for a person")]
fn call(line: &Line, output: &Output) -> Option<String> {
    match line {
        Line::Asked(Asked { prompt, .. }) => {
            Some(format!("asked: {}, {}", prompt.file, phrases::bytes(prompt.bytes)))
        }
        Line::Attempted(attempted) => {
            let attempt = &attempted.attempt;
            let message = printable(attempt.message.as_ref()?);
            Some(output.paint(WARN, &format!("request {} failed: {message}", attempt.number)))
        }
        Line::Answered(answered) => {
            let by = printable(answered.served_model.as_deref().unwrap_or("the model"));
            let (tokens, cost) = (phrases::tokens(&answered.usage), phrases::cost(answered.cost_usd));
            Some(format!("{by} answered: {}{tokens}, {cost}", answered.reply.stored.file))
        }
        _ => None,
    }
}

/// A part of what a line says wherever it is printed.
pub(crate) enum Told<'l> {
    Line(Style, String),
    /// A detail of the line before.
    Under(String),
    Warning(&'l Problem),
}

/// Tells the lines that read alike while a run works and afterwards.
#[expect(clippy::wildcard_enum_match_arm, reason = "other lines are phrased where they are printed")]
pub(crate) fn tell<'l>(line: &'l Line, mut say: impl FnMut(Told<'l>)) {
    match line {
        Line::Unanswered(none) => {
            say(Told::Line(BAD, format!("no answer: {}", printable(&none.cause.message))));
        }
        Line::Applied(Applied { no_change, changes, warnings, .. }) => {
            if let Some(reason) = no_change {
                let text = format!("nothing to change: {}", printable(reason.trim()));
                say(Told::Line(Style::new(), text));
            }
            changes.iter().for_each(|change| say(Told::Line(Style::new(), phrases::change(change))));
            // The summary marks what the build names: it is often what the work is about.
            warnings.iter().filter(|warning| warning.code != GRADER).for_each(|one| say(Told::Warning(one)));
        }
        Line::Written(Written { changes, warnings, .. }) => {
            changes.iter().for_each(|change| say(Told::Line(Style::new(), phrases::change(change))));
            warnings.iter().for_each(|one| say(Told::Warning(one)));
        }
        Line::Looked(looked) if !looked.failed.is_empty() => {
            say(Told::Line(BAD, "not as the order wants it:".to_owned()));
            looked.failed.iter().for_each(|one| say(Told::Under(printable(&phrases::condition(one)))));
        }
        Line::Broke(broke) => say(Told::Line(BAD, printable(&broke.message))),
        _ => {}
    }
}

/// What a build changed besides. Warnings tell what of it was restored.
pub(crate) fn by_build(built: &Built) -> Vec<String> {
    let changed = built.changes.iter();
    let changed = changed.filter_map(|file| Some(format!("{} {}", file.letter()?, printable(&file.path))));
    let changed: Vec<String> = changed.collect();
    let changed =
        (!changed.is_empty()).then(|| format!("the build changed: {}", phrases::first(&changed, NAMED)));
    let ignored = (built.ignored_bytes > 0)
        .then(|| format!("the build wrote {} of ignored files", phrases::bytes(built.ignored_bytes)));
    changed.into_iter().chain(ignored).collect()
}

/// This many files of a build are named.
const NAMED: usize = 10;
