//! One step of a run, as the page shows it.

use code_commit_engine::{Cause, Changed, Ended, Problem, Stored};
use code_commit_parser::ErrorCode;
use code_commit_report::phrases;
use code_commit_timeline::{Call, Change, Command, FileEdit, Remark, Step, Tone, What};

use crate::diff::Diff;
use crate::run::took;
use crate::text::{Folded, Texts, plain};

/// What a step shows: a heading, sentences, files, texts to unfold.
#[derive(Default)]
pub(crate) struct StepView {
    /// `good`, `bad`, `warn` or `plain`.
    pub(crate) class: &'static str,
    /// How it leaves its round, in a few words; `None` if it decides nothing.
    pub(crate) result: Option<String>,
    /// The class of its part of the timeline; empty if it has none.
    pub(crate) bar: &'static str,
    pub(crate) title: String,
    /// Tokens, cost, time.
    pub(crate) about: String,
    pub(crate) lines: Vec<LineView>,
    pub(crate) texts: Vec<Folded>,
    /// What it changed, folded.
    pub(crate) diffs: Vec<Diff>,
    /// The lines of its texts that say why it failed.
    pub(crate) why: String,
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
            text: plain(text.trim_end()).into_owned(),
            code: String::new(),
        }
    }

    fn cause(cause: &Cause) -> Self {
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

/// Shows a step. `diff` makes the diff of a change, and `before` is the step before it.
pub(crate) fn view(
    step: &Step,
    before: Option<&StepView>,
    texts: &Texts<'_>,
    diff: &dyn Fn(&FileEdit<'_>) -> Diff,
) -> StepView {
    let mut view = match &step.what {
        What::Call(call) => of_call(call, texts),
        What::Change(change) if change.is_refused => refused(change, before),
        What::Change(change) => written(change),
        What::Command(command) => of_command(command, texts),
        What::Remark(remark) => of_remark(remark),
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
    pub(crate) fn new(class: &'static str, title: &str) -> Self {
        let title = plain(title).into_owned();
        Self {
            class,
            title,
            ..Self::default()
        }
    }

    /// Whether everything that `other` says is among its lines.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let mut lines = other.lines.iter().filter(|line| line.class == "bad");
        let says = |text: &str| self.title == text || self.lines.iter().any(|l| l.text == text);
        lines.all(|line| says(&line.text))
    }

    /// Its sentences without files and warnings.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &LineView> {
        let is_reason = |line: &&LineView| matches!(line.class, "bad" | "plain");
        self.lines.iter().filter(is_reason)
    }

    fn say(&mut self, class: &'static str, text: &str) {
        self.lines.push(LineView::new(class, text));
    }

    /// Why there is no result, and what can be done.
    pub(crate) fn cause(&mut self, cause: &Cause) {
        self.lines.push(LineView::cause(cause));
        if let Some(remedy) = &cause.remedy {
            self.say("plain", &format!("help: {remedy}"));
        }
    }

    fn problems(&mut self, class: &'static str, problems: &[Problem]) {
        let problems = problems.iter().map(|one| LineView::of(class, one));
        self.lines.extend(problems);
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

/// Markers with which an agent says that the work is not done, and what it did.
const OBJECTIONS: [(&str, &str); 2] = [
    ("REQUEST_CHANGES", "requested changes"),
    ("SPEC_ISSUE", "found an issue in the specs"),
];

fn of_call(call: &Call, texts: &Texts<'_>) -> StepView {
    let who = match (&call.role, &call.served_model) {
        (Some(role), Some(model)) => format!("The {role} agent ({model})"),
        (Some(role), None) => format!("The {role} agent"),
        (None, Some(model)) => model.clone(),
        (None, None) => "The model".to_owned(),
    };
    // A file without an entry names no contract.
    let is_entry = |list: &Folded| list.head.to_uppercase().contains("SPEC");
    let failed_specs = call
        .failed_specs
        .as_ref()
        .and_then(|list| texts.folded("Failed contracts", &list.file, true))
        .filter(is_entry);
    let said = call.markers.last();
    let objected = OBJECTIONS
        .iter()
        .find(|(marker, _)| said.is_some_and(|said| said.name == *marker));
    let is_whole = |finish: &str| finish == "complete";
    let is_cut_off = !call.finish.as_deref().is_none_or(is_whole);
    let (class, ended) = match (&call.role, objected) {
        _ if call.failed.is_some() => ("bad", "gave no usable reply"),
        _ if is_cut_off => ("bad", "gave a reply that was cut off"),
        _ if failed_specs.is_some() => ("bad", "found contracts that fail"),
        (_, Some((_, objected))) => ("bad", *objected),
        (Some(_), None) => ("plain", "worked"),
        (None, None) => ("plain", "replied"),
    };
    let mut view = StepView::new(class, &format!("{who} {ended}"));
    view.bar = "call";
    if call.failed.is_some() {
        view.bar = "bad";
    }
    view.result = match (&call.failed, &call.role) {
        (Some(cause), _) => Some(cause.code.clone()),
        (None, Some(_)) if failed_specs.is_some() => Some("contracts failed".to_owned()),
        (None, Some(role)) => Some(said.map_or_else(
            || format!("{role} worked"),
            |marker| marker.name.to_lowercase().replace('_', " "),
        )),
        (None, None) => None,
    };
    let tokens = phrases::tokens(&call.tokens());
    view.about = format!("{}{tokens}", phrases::cost(call.cost_usd));
    for retry in call.retries() {
        view.say("warn", &format!("a request failed: {retry}"));
    }
    if let Some(cause) = &call.failed {
        view.cause(cause);
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
    if let Some(list) = &failed_specs {
        view.why.clone_from(&list.head);
    }
    let file = |label, file: &Option<Stored>| texts.folded(label, &file.as_ref()?.file, false);
    let (prompt, answer) = (file("Prompt", &call.prompt), file("Reply", &call.answer));
    view.texts
        .extend([failed_specs, prompt, answer].into_iter().flatten());
    view
}

/// If a model writes text instead of files, that text says why.
fn refused(change: &Change, before: Option<&StepView>) -> StepView {
    let title = "The reply was refused, and nothing of it was written";
    let mut view = StepView::new("bad", title);
    view.result = Some("reply refused".to_owned());
    view.bar = "bad";
    view.problems("bad", &change.problems);
    let is_text = |problem: &Problem| problem.code == ErrorCode::NothingActionable.as_str();
    if change.problems.iter().any(is_text) {
        let reply = before.and_then(|call| call.texts.last());
        view.why = reply.map(Folded::beginning).unwrap_or_default();
    }
    view
}

fn written(change: &Change) -> StepView {
    let title = match (&change.no_change, change.changes.is_empty()) {
        (Some(_), true) => "The reply says that nothing has to change",
        _ => "The reply was written",
    };
    let mut view = StepView::new("plain", title);
    view.result = Some("reply written".to_owned());
    if let Some(reason) = &change.no_change {
        view.say("plain", reason.trim());
    }
    view.files("", &change.changes);
    view.problems("warn", &change.problems);
    view
}

fn of_command(command: &Command, texts: &Texts<'_>) -> StepView {
    let ended = match command.ended {
        Some(Ended::Exited(0)) => ": exit code 0".to_owned(),
        Some(ended) => format!(": {}", phrases::ended(ended)),
        None if command.output.is_empty() && !command.changes.is_empty() => String::new(),
        None => ": did not run".to_owned(),
    };
    let (class, result) = match (command.decides(), command.is_good) {
        (false, _) => ("plain", None),
        (true, true) => ("good", Some("passed")),
        (true, false) => ("bad", Some("failed")),
    };
    let mut view = StepView::new(class, &format!("{}{ended}", command.name));
    view.result = result.map(|result| format!("{} {result}", command.name));
    view.bar = if class == "bad" { "bad" } else { "good" };
    if command.seal_broken {
        view.say("bad", "it changed files that decide whether it passes");
    }
    view.files("the command changed ", &command.changes);
    view.restored(&command.put_back);
    if command.ignored_bytes > 0 {
        let bytes = phrases::bytes(command.ignored_bytes);
        view.say("plain", &format!("it wrote {bytes} of ignored files"));
    }
    let output = command
        .output
        .iter()
        .filter_map(|file| texts.folded("Output", file, !command.is_good));
    view.texts.extend(output);
    if class == "bad" {
        let outputs: Vec<String> = view.texts.iter().map(Folded::why).collect();
        view.why = outputs.join("\n");
    }
    view
}

fn of_remark(remark: &Remark) -> StepView {
    let class = match remark.tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Warning => "warn",
        Tone::Bad => "bad",
    };
    let mut view = StepView::new(class, &remark.text);
    view.files("", &remark.changes);
    view
}
