//! The steps of a run, printed for a person.

use std::time::Duration;

use code_commit_engine::{Changed, GRADER, Problem};
use code_commit_timeline::{Call, Change, Command, Remark, RunView, Step, Tone, What};

use crate::output::{BAD, DIM, GOOD, Output, Style, WARN, printable, printable_name};
use crate::phrases;

/// This many files of a command are named.
const NAMED: usize = 10;

/// Prints what happened, each step with its round: `what` is the loop's word for one.
pub fn steps(what: &str, steps: &RunView, output: &Output) {
    for step in &steps.all {
        let head = if step.round == 0 {
            "preflight".to_owned()
        } else {
            format!("{what} {}", step.round)
        };
        let head = output.paint(DIM, &head);
        for (style, text) in told(step) {
            output.report_prose(&format!(
                "{head}  {}",
                output.paint(style, &printable(&text))
            ));
        }
    }
}

type Told = Vec<(Style, String)>;

fn told(step: &Step) -> Told {
    match &step.what {
        What::Call(of) => call(of),
        What::Change(of) => change(of),
        What::Command(of) => command(of),
        What::Remark(of) => remark(of),
    }
}

fn call(of: &Call) -> Told {
    let mut told = Told::new();
    if let (Some(prompt), None) = (&of.prompt, &of.role) {
        told.push((
            Style::new(),
            format!("asked: {}, {}", prompt.file, phrases::bytes(prompt.bytes)),
        ));
    }
    let failed = of
        .attempts
        .iter()
        .filter_map(|attempt| Some((attempt.number, attempt.message.as_ref()?)));
    told.extend(failed.map(|(number, why)| (WARN, format!("request {number} failed: {why}"))));
    let cost = phrases::cost(of.cost_usd);
    told.push(match (&of.turned, &of.answer, &of.failed) {
        (Some(turned), ..) => {
            let took = phrases::seconds(Duration::from_millis(turned.elapsed_ms));
            let (role, end, file) = (&turned.role, &turned.end, &turned.answer.stored.file);
            (
                Style::new(),
                format!("the {role} agent {end}: {file}, {took}, {cost}"),
            )
        }
        (None, Some(answer), _) => {
            let by = of.served_model.as_deref().unwrap_or("the model");
            let tokens = phrases::tokens(&of.tokens());
            (
                Style::new(),
                format!("{by} replied: {}{tokens}, {cost}", answer.file),
            )
        }
        (None, None, why) => {
            let why = why.as_ref().map_or("it is unfinished", |why| &why.message);
            (BAD, format!("no reply: {why}"))
        }
    });
    told
}

fn change(of: &Change) -> Told {
    if of.is_refused {
        let refused = |problem: &Problem| {
            let message = printable_name(&problem.message);
            format!("refused: {message} [{}]", problem.code)
        };
        return of
            .problems
            .iter()
            .map(|problem| (WARN, refused(problem)))
            .collect();
    }
    let reason = of
        .no_change
        .iter()
        .map(|reason| format!("nothing to change: {}", reason.trim()));
    let written = of.changes.iter().map(phrases::change);
    let told = reason.chain(written).map(|text| (Style::new(), text));
    // The summary marks what the build names: it is often what the work is about.
    let warnings = of.problems.iter().filter(|problem| problem.code != GRADER);
    told.chain(warnings.map(|problem| (WARN, printable_name(&problem.message))))
        .collect()
}

fn command(of: &Command) -> Told {
    let how = of
        .ended
        .map_or_else(String::new, |ended| format!(": {}", phrases::ended(ended)));
    let file = of
        .output
        .first()
        .map(|file| format!(", {file}"))
        .unwrap_or_default();
    let style = match of.is_good {
        _ if !of.decides() => Style::new(),
        true => GOOD,
        false => BAD,
    };
    let mut told = vec![(style, format!("{}{how}{file}", printable_name(&of.name)))];
    let who = if of.is_build() { "the build" } else { "they" };
    let by_it = by_command(who, &of.changes, of.ignored_bytes);
    told.extend(by_it.into_iter().map(|text| (Style::new(), text)));
    told
}

fn remark(of: &Remark) -> Told {
    let style = match of.tone {
        Tone::Plain => Style::new(),
        Tone::Good => GOOD,
        Tone::Warning => WARN,
        Tone::Bad => BAD,
    };
    let text = match &of.warning {
        Some(_) => printable_name(&of.text),
        None => of.text.clone(),
    };
    vec![(style, text)]
}

/// What a command changed besides. Warnings tell what of it was restored.
pub(crate) fn by_command(who: &str, changes: &[Changed], ignored_bytes: u64) -> Vec<String> {
    let changed =
        |file: &Changed| Some(format!("{} {}", file.letter()?, printable_name(&file.path)));
    let changed: Vec<String> = changes.iter().filter_map(changed).collect();
    let changed = (!changed.is_empty())
        .then(|| format!("{who} changed: {}", phrases::first(&changed, NAMED)));
    let ignored = (ignored_bytes > 0).then(|| {
        format!(
            "{who} wrote {} of ignored files",
            phrases::bytes(ignored_bytes)
        )
    });
    changed.into_iter().chain(ignored).collect()
}
