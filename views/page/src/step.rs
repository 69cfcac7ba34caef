//! One step of a run, as the page shows it.

use code_commit_engine::{Cause, Changed, Ended, Problem};
use code_commit_report::phrases;
use code_commit_timeline::{Call, Change, Command, Event, FileEdit, Step, Tone, What};

use crate::diff::Diff;
use crate::run::took;
use crate::text::{Folded, Texts, plain};

/// What a step shows: a heading, sentences, files, texts to unfold.
pub(crate) struct StepView {
    /// `good`, `bad`, `warn` or `plain`.
    pub(crate) class: &'static str,
    pub(crate) title: String,
    /// Tokens, cost, time.
    pub(crate) about: String,
    pub(crate) lines: Vec<LineView>,
    pub(crate) texts: Vec<Folded>,
    /// What it changed, folded.
    pub(crate) diffs: Vec<Diff>,
}

/// One sentence.
pub(crate) struct LineView {
    pub(crate) class: &'static str,
    pub(crate) text: String,
    /// The stable code of a problem.
    pub(crate) code: String,
}

impl LineView {
    fn new(class: &'static str, text: &str) -> Self {
        Self {
            class,
            text: plain(text).into_owned(),
            code: String::new(),
        }
    }

    fn why(cause: &Cause) -> Self {
        Self {
            code: plain(&cause.code).into_owned(),
            ..Self::new("bad", &cause.message)
        }
    }

    fn of(class: &'static str, problem: &Problem) -> Self {
        let line = problem
            .line
            .map(|line| format!("line {line}: "))
            .unwrap_or_default();
        let code = plain(&problem.code).into_owned();
        Self {
            code,
            ..Self::new(class, &format!("{line}{}", problem.message))
        }
    }
}

/// Shows a step. `diff` makes the diff of a change.
pub(crate) fn view(
    step: &Step,
    texts: &Texts<'_>,
    diff: &dyn Fn(&FileEdit<'_>) -> Diff,
) -> StepView {
    let mut view = match &step.what {
        What::Call(call) => of_call(call, texts),
        What::Change(change) => of_change(change),
        What::Command(command) => of_command(command, texts),
        What::Event(event) => of_event(event),
    };
    let by_command = matches!(step.what, What::Command(_));
    let edits = step
        .changes()
        .iter()
        .filter(|change| change.letter().is_some());
    view.diffs = edits
        .map(|change| diff(&edit(change, by_command)))
        .collect();
    if step.elapsed_ms() > 0 {
        let time = took(step.elapsed_ms());
        view.about = if view.about.is_empty() {
            time
        } else {
            format!("{}, {time}", view.about)
        };
    }
    view
}

fn edit(change: &Changed, by_command: bool) -> FileEdit<'_> {
    FileEdit {
        path: &change.path,
        before: change.before_sha256.as_deref(),
        after: change.after_sha256.as_deref(),
        before_mode: change.before_mode,
        after_mode: change.after_mode,
        by_command,
    }
}

impl StepView {
    fn new(class: &'static str, title: &str) -> Self {
        let title = plain(title).into_owned();
        Self {
            class,
            title,
            about: String::new(),
            lines: Vec::new(),
            texts: Vec::new(),
            diffs: Vec::new(),
        }
    }

    fn say(&mut self, class: &'static str, text: &str) {
        self.lines.push(LineView::new(class, text));
    }

    fn files(&mut self, verb: &str, changes: &[Changed]) {
        for change in changes {
            if let Some(letter) = change.letter() {
                self.say("file", &format!("{verb}{letter} {}", change.path));
            }
        }
    }

    fn restored(&mut self, paths: &[String]) {
        for path in paths {
            self.say(
                "warn",
                &format!("restored, since it may not be changed here: {path}"),
            );
        }
    }
}

fn of_call(call: &Call, texts: &Texts<'_>) -> StepView {
    let who = match (&call.role, &call.served_model) {
        (Some(role), Some(model)) => format!("The {role} agent ({model})"),
        (Some(role), None) => format!("The {role} agent"),
        (None, Some(model)) => model.clone(),
        (None, None) => "The model".to_owned(),
    };
    let is_complete = call
        .finish
        .as_deref()
        .is_none_or(|finish| finish == "complete");
    let (class, ended) = match &call.failed {
        Some(_) => ("bad", "gave no usable reply"),
        None if is_complete => (
            "plain",
            if call.role.is_some() {
                "worked"
            } else {
                "replied"
            },
        ),
        None => ("bad", "gave a reply that was cut off"),
    };
    let mut view = StepView::new(class, &format!("{who} {ended}"));
    let tokens = phrases::tokens(&call.tokens());
    view.about = format!("{}{tokens}", phrases::cost(call.cost_usd));
    for retry in call.retries() {
        view.say("warn", &format!("a request failed: {retry}"));
    }
    if let Some(cause) = &call.failed {
        view.lines.push(LineView::why(cause));
        cause
            .remedy
            .iter()
            .for_each(|remedy| view.say("plain", &format!("help: {remedy}")));
    }
    for marker in &call.markers {
        view.say("plain", &format!("{}: {}", marker.name, marker.content));
    }
    for denial in &call.denials {
        let argument = denial.argument.as_deref().unwrap_or_default();
        view.say("warn", &format!("refused: {} {argument}", denial.tool));
    }
    call.changed
        .iter()
        .for_each(|path| view.say("file", &format!("changed {path}")));
    view.restored(&call.put_back);
    let prompt = call
        .prompt
        .as_ref()
        .and_then(|stored| texts.folded("Prompt", &stored.file, false));
    let answer = call
        .answer
        .as_ref()
        .and_then(|stored| texts.folded("Reply", &stored.file, false));
    view.texts.extend([prompt, answer].into_iter().flatten());
    view
}

fn of_change(change: &Change) -> StepView {
    if change.is_refused {
        let mut view = StepView::new(
            "bad",
            "The reply was refused, and nothing of it was written",
        );
        view.lines.extend(
            change
                .problems
                .iter()
                .map(|problem| LineView::of("bad", problem)),
        );
        return view;
    }
    let title = match (&change.no_change, change.changes.is_empty()) {
        (Some(_), true) => "The reply says that nothing has to change",
        _ => "The reply was written",
    };
    let mut view = StepView::new("plain", title);
    change
        .no_change
        .iter()
        .for_each(|reason| view.say("plain", reason.trim()));
    view.files("", &change.changes);
    view.lines.extend(
        change
            .problems
            .iter()
            .map(|problem| LineView::of("warn", problem)),
    );
    view
}

fn of_command(command: &Command, texts: &Texts<'_>) -> StepView {
    let ended = match command.ended {
        Some(Ended::Exited(0)) => ": exit code 0".to_owned(),
        Some(ended) => format!(": {}", phrases::ended(ended)),
        None if command.output.is_empty() && !command.changes.is_empty() => String::new(),
        None => ": did not run".to_owned(),
    };
    let class = match (command.is_good, command.decides()) {
        (_, false) => "plain",
        (true, true) => "good",
        (false, true) => "bad",
    };
    let mut view = StepView::new(class, &format!("{}{ended}", command.name));
    if command.seal_broken {
        view.say("bad", "it changed files that decide whether it passes");
    }
    view.files("the command changed ", &command.changes);
    view.restored(&command.put_back);
    if command.ignored_bytes > 0 {
        view.say(
            "plain",
            &format!(
                "it wrote {} of ignored files",
                phrases::bytes(command.ignored_bytes)
            ),
        );
    }
    let output = command
        .output
        .iter()
        .filter_map(|file| texts.folded("Output", file, !command.is_good));
    view.texts.extend(output);
    view
}

fn of_event(event: &Event) -> StepView {
    let class = match event.tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Warning => "warn",
        Tone::Bad => "bad",
    };
    let mut view = StepView::new(class, &event.text);
    view.files("", &event.changes);
    view
}
