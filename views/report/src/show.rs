//! The record of a run, printed line by line for a person.

use code_commit_engine::{Built, Changed, Committed, GRADER, HoldsFor, Line, Problem};
use code_commit_timeline::Steps;

use crate::output::{BAD, DIM, GOOD, Output, WARN, printable};
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
        now = round_of(one).unwrap_or(now);
        line(what, now, one, output);
    }
}

/// The same for one line.
#[expect(clippy::wildcard_enum_match_arm, reason = "other lines of a journal are not for a person")]
pub fn line(what: &str, now: u32, recorded: &Line, output: &Output) {
    let head = if now == 0 { "preflight".to_owned() } else { format!("{what} {now}") };
    let say = |text: &str| output.report_prose(&format!("{}  {text}", output.paint(DIM, &head)));
    let warn = |problem: &Problem| say(&output.paint(WARN, &printable(&problem.message)));
    let wrote = |changes: &[Changed], warnings: &[Problem]| {
        changes.iter().for_each(|change| say(&phrases::change(change)));
        warnings.iter().filter(|warning| warning.code != GRADER).for_each(warn);
    };
    match recorded {
        Line::Asked(_) | Line::Attempted(_) | Line::Answered(_) | Line::Unanswered(_) => {
            phrases::call(recorded, output).iter().for_each(|text| say(text));
        }
        Line::Applied(applied) => {
            if let Some(reason) = &applied.no_change {
                say(&format!("nothing to change: {}", printable(reason.trim())));
            }
            wrote(&applied.changes, &applied.warnings);
        }
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
        Line::Looked(looked) if !looked.failed.is_empty() => {
            say(&output.paint(BAD, "not as the order wants it:"));
            looked.failed.iter().for_each(|condition| say(&printable(&phrases::condition(condition))));
        }
        Line::Written(written) => wrote(&written.changes, &written.warnings),
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
        Line::Broke(broke) => say(&output.paint(BAD, &printable(&broke.message))),
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
        _ => {}
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other lines of a journal are not for a person")]
pub(crate) fn round_of(line: &Line) -> Option<u32> {
    match line {
        Line::Asked(asked) => Some(asked.round),
        Line::Answered(answered) => Some(answered.round),
        Line::Unanswered(none) => Some(none.round),
        Line::Applied(applied) => Some(applied.round),
        Line::Rejected(rejected) => Some(rejected.round),
        Line::Built(built) => Some(built.round),
        Line::BaselineBuilt(built) => Some(built.round),
        Line::Written(written) => Some(written.attempt),
        Line::Refused(refused) => Some(refused.attempt),
        _ => None,
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
