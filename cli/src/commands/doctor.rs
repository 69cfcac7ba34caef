//! `code-commit doctor`: what works on this machine and in this project, and what to do about the rest.

mod checks;

use code_commit_report::{BAD, DIM, GOOD, Output, STRONG, printable};
use code_commit_runs::{Exit, Failure, Host};
use serde_json::json;

use crate::args::DoctorArgs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// No run can start.
    Bad,
    /// Missing, but not needed for the default loop.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: String,
    state: State,
    text: String,
    /// What to do, or how to get more; may be empty.
    help: String,
}

impl Check {
    fn new(state: State, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            text: text.into(),
            help: String::new(),
        }
    }

    fn good(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(State::Good, name, text)
    }

    fn bad(name: impl Into<String>, text: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(State::Bad, name, text).help(help)
    }

    fn absent(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(State::Absent, name, text)
    }

    fn help(self, help: impl Into<String>) -> Self {
        let help = help.into();
        Self { help, ..self }
    }

    /// From an error that would stop another part of the program.
    fn failed(name: impl Into<String>, failure: Failure) -> Self {
        Self::bad(name, format!("{:#}", failure.error), failure.help)
    }

    fn print(&self, output: &Output) {
        output.object(&json!({
            "check": self.name.trim_start(), "ok": match self.state {
                State::Good => Some(true),
                State::Bad => Some(false),
                State::Absent => None,
            },
            "text": self.text, "help": self.help,
        }));
        let mark = match self.state {
            State::Good => output.paint(GOOD, "ok"),
            State::Bad => output.paint(BAD, "NO"),
            State::Absent => output.paint(DIM, "--"),
        };
        let indent = " ".repeat(NAME_WIDTH + 4);
        let text = printable(&self.text).replace('\n', &format!("\n{indent}"));
        output.report_below(
            &format!("{mark}  {:<NAME_WIDTH$}{text}", self.name),
            indent.len(),
        );
        if !self.help.is_empty() {
            let help = printable(&self.help).replace('\n', &format!("\n{indent}"));
            let head = output.paint(STRONG, "help:");
            output.report_below(&format!("{indent}{head} {help}"), indent.len());
        }
    }
}

const NAME_WIDTH: usize = 16;

/// Runs all checks, even if some fail; exit code 0 if a run of the default loop could start.
pub fn run(args: &DoctorArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let checks = checks::all(args, host)?;
    for check in &checks {
        check.print(output);
    }
    let bad: Vec<&Check> = checks
        .iter()
        .filter(|check| check.state == State::Bad)
        .collect();
    let Some(first) = bad.first() else {
        output.report("a run can start");
        return Ok(Exit::Done);
    };
    output.report(&format!(
        "no run can start: {} to fix, first: {}",
        bad.len(),
        first.name.trim()
    ));
    Ok(Exit::Refused)
}
