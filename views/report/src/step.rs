//! One step of a run in words, the same for all that show it.

use code_commit_engine::{Cause, Changed, Problem};
use code_commit_timeline::{Call, Change, Command, ReadFile, Remark, Step, Tone, What};

use crate::phrases;

/// A step in words: a heading, sentences, files of the record. None of it is safe for a terminal or a page yet.
#[derive(Debug, Clone, Default)]
pub struct StepView {
    /// Whether it went well.
    pub tone: Tone,
    /// How it leaves its round, in a few words; `None` if it decides nothing.
    pub result: Option<String>,
    /// What happened.
    pub title: String,
    /// Cost, tokens, time.
    pub about: String,
    /// What else is known.
    pub lines: Vec<StepLine>,
    /// Files of the record, each after what it is.
    pub files: Vec<(&'static str, String)>,
}

/// One sentence about a step.
#[derive(Debug, Clone, Default)]
pub struct StepLine {
    /// Whether it went well.
    pub tone: Tone,
    /// Whether it names a changed file.
    pub is_file: bool,
    /// The sentence.
    pub text: String,
    /// The stable code of a problem; empty if it has none.
    pub code: String,
}

/// Markers with which an agent says that the work is not done, and what it did.
const OBJECTIONS: [(&str, &str); 2] = [
    ("REQUEST_CHANGES", "requested changes"),
    ("SPEC_ISSUE", "found an issue in the specs"),
];

impl StepLine {
    /// Its class on a page.
    pub fn class(&self) -> &'static str {
        if self.is_file {
            "file"
        } else {
            self.tone.class()
        }
    }
}

impl StepView {
    /// A step. `read` reads a file of the record.
    pub fn of(step: &Step, read: &ReadFile<'_>) -> Self {
        let mut view = match &step.what {
            What::Call(call) => Self::call(call, read),
            What::Change(change) if change.is_refused => Self::refused(change),
            What::Change(change) => Self::written(change),
            What::Command(command) => Self::command(command),
            What::Remark(remark) => Self::remark(remark),
        };
        if step.elapsed_ms() > 0 {
            let comma = if view.about.is_empty() { "" } else { ", " };
            view.about += &format!("{comma}{}", phrases::took(step.elapsed_ms()));
        }
        view
    }

    /// Why there is no result, and what can be done.
    pub fn cause(&mut self, cause: &Cause) {
        self.say(Tone::Bad, cause.message.clone(), &cause.code);
        let help = cause.remedy.iter();
        help.for_each(|remedy| self.say(Tone::Plain, format!("help: {remedy}"), ""));
    }

    fn new(tone: Tone, title: impl Into<String>) -> Self {
        let title = title.into();
        Self {
            tone,
            title,
            ..Self::default()
        }
    }

    fn say(&mut self, tone: Tone, text: impl Into<String>, code: &str) {
        self.lines.push(StepLine {
            tone,
            text: text.into(),
            code: code.to_owned(),
            is_file: false,
        });
    }

    fn name(&mut self, text: String) {
        self.lines.push(StepLine {
            text,
            is_file: true,
            ..StepLine::default()
        });
    }

    fn problems(&mut self, tone: Tone, problems: &[Problem]) {
        for problem in problems {
            let line = problem.line.map(|line| format!("line {line}: "));
            let text = line.unwrap_or_default() + &problem.message;
            self.say(tone, text, &problem.code);
        }
    }

    fn changed(&mut self, verb: &str, changes: &[Changed]) {
        for change in changes {
            if let Some(letter) = change.letter() {
                self.name(format!("{verb}{letter} {}", change.path));
            }
        }
    }

    fn restored(&mut self, paths: &[String]) {
        let text = |path| format!("restored, since it may not be changed here: {path}");
        paths
            .iter()
            .for_each(|path| self.say(Tone::Warning, text(path), ""));
    }

    fn call(call: &Call, read: &ReadFile<'_>) -> Self {
        let who = match (&call.role, &call.served_model) {
            (Some(role), Some(model)) => format!("The {role} agent ({model})"),
            (Some(role), None) => format!("The {role} agent"),
            (None, Some(model)) => model.clone(),
            (None, None) => "The model".to_owned(),
        };
        let has_contracts = call.contracts(read).is_some();
        let said = call.markers().last();
        let is_said = |(marker, _): &&(&str, &str)| said.is_some_and(|said| said.name == *marker);
        let is_cut_off = call.finish.as_deref().is_some_and(|how| how != "complete");
        let (tone, ended) = match OBJECTIONS.iter().find(is_said) {
            _ if call.failed.is_some() => (Tone::Bad, "gave no usable reply"),
            _ if is_cut_off => (Tone::Bad, "gave a reply that was cut off"),
            _ if has_contracts => (Tone::Bad, "found contracts that fail"),
            Some((_, objected)) => (Tone::Bad, *objected),
            None if call.role.is_some() => (Tone::Plain, "worked"),
            None => (Tone::Plain, "replied"),
        };
        let mut view = Self::new(tone, format!("{who} {ended}"));
        view.result = match (&call.failed, &call.role, said) {
            (Some(cause), ..) => Some(cause.code.clone()),
            (None, Some(_), _) if has_contracts => Some("contracts failed".to_owned()),
            (None, Some(_), Some(said)) => Some(said.name.to_lowercase().replace('_', " ")),
            (None, Some(role), None) => Some(format!("{role} worked")),
            (None, None, _) => None,
        };
        let tokens = phrases::tokens(&call.tokens());
        view.about = format!("{}{tokens}", phrases::cost(call.cost_usd));
        for attempt in &call.attempts {
            if let Some(why) = &attempt.message {
                view.say(
                    Tone::Warning,
                    format!("request {} failed: {why}", attempt.number),
                    "",
                );
            }
        }
        if let Some(cause) = &call.failed {
            view.cause(cause);
        }
        for marker in call.markers() {
            view.say(
                Tone::Plain,
                format!("{}: {}", marker.name, marker.content),
                "",
            );
        }
        if let Some(turned) = &call.turned {
            for denial in &turned.denials {
                let argument = denial.argument.as_deref().unwrap_or_default();
                view.say(
                    Tone::Warning,
                    format!("refused: {} {argument}", denial.tool),
                    "",
                );
            }
            let changed = turned.changed.iter();
            changed.for_each(|path| view.name(format!("changed {path}")));
            view.restored(&turned.put_back);
        }
        let contracts = call.failed_specs.as_ref().filter(|_| has_contracts);
        let files = [
            ("Failed contracts", contracts),
            ("Prompt", call.prompt.as_ref()),
            ("Reply", call.answer.as_ref()),
        ];
        let named = files.map(|(label, file)| Some((label, file?.file.clone())));
        view.files.extend(named.into_iter().flatten());
        view
    }

    fn refused(change: &Change) -> Self {
        let mut view = Self::new(
            Tone::Bad,
            "The reply was refused, and nothing of it was written",
        );
        view.result = Some("reply refused".to_owned());
        view.problems(Tone::Bad, &change.problems);
        view
    }

    fn written(change: &Change) -> Self {
        let title = match (&change.no_change, change.changes.is_empty()) {
            (Some(_), true) => "The reply says that nothing has to change",
            _ => "The reply was written",
        };
        let mut view = Self::new(Tone::Plain, title);
        view.result = Some("reply written".to_owned());
        if let Some(reason) = &change.no_change {
            view.say(Tone::Plain, reason.trim(), "");
        }
        view.changed("", &change.changes);
        view.problems(Tone::Warning, &change.problems);
        view
    }

    fn command(command: &Command) -> Self {
        let ended = match command.ended {
            Some(ended) => format!(": {}", phrases::ended(ended)),
            None if command.output.is_empty() && !command.changes.is_empty() => String::new(),
            None => ": did not run".to_owned(),
        };
        let (tone, result) = match (command.ended, command.is_good) {
            (None, _) => (Tone::Plain, None),
            (Some(_), true) => (Tone::Good, Some("passed")),
            (Some(_), false) => (Tone::Bad, Some("failed")),
        };
        let mut view = Self::new(tone, format!("{}{ended}", command.name));
        view.result = result.map(|result| format!("{} {result}", command.name));
        if command.seal_broken {
            view.say(
                Tone::Bad,
                "it changed files that decide whether it passes",
                "",
            );
        }
        view.changed("the command changed ", &command.changes);
        view.restored(&command.put_back);
        if command.ignored_bytes > 0 {
            let bytes = phrases::bytes(command.ignored_bytes);
            view.say(
                Tone::Plain,
                format!("it wrote {bytes} of ignored files"),
                "",
            );
        }
        let output = command.output.iter();
        view.files = output.map(|file| ("Output", file.clone())).collect();
        view
    }

    fn remark(remark: &Remark) -> Self {
        let mut view = Self::new(remark.tone, &*remark.text);
        view.changed("", &remark.changes);
        view
    }
}
