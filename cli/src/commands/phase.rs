//! `code-commit phase`: a builder and a verifier, isolated from each other (S3).

mod access;
mod act;
pub mod agents;
mod client;
mod desk;
mod folders;
mod init;
pub mod past;
mod project;
mod report;
mod request;

use std::ffi::OsStr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;

pub use self::project::read;
use settings::{Address, Environment, Layer, Sandbox, duration};

use crate::args::TurnLimitArgs;
use crate::commands::root;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::terminal::phrases;

/// Flags of `phase`.
#[derive(Debug, Clone, Args)]
pub struct PhaseArgs {
    /// init: make what a project needs; check: look the specs over; run: go on with the open phase or the next one; N: that phase
    #[arg(value_name = "init|check|run|N")]
    pub action: Action,
    /// The model of both roles, instead of the configured ones: gemini-…, claude-…, gpt-…, or gemini/NAME, claude/NAME, codex/NAME
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The builder's model
    #[arg(long, short, value_name = "MODEL")]
    pub builder_model: Option<String>,
    /// The verifier's model
    #[arg(long, short = 'v', value_name = "MODEL")]
    pub verifier_model: Option<String>,
    /// The sandbox around each role; auto is a container where Docker is there, else bubblewrap; Landlock is not enough for a role
    #[arg(long, value_name = "MODE", value_parser = crate::args::sandbox())]
    pub sandbox: Option<Sandbox>,
    /// Where the service of both roles is, if not where their agent looks by itself; for Claude Code and Gemini CLI
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// How far the run may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    /// How long one turn of a role may take
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub turn_timeout: Duration,
    /// How long a role may be silent
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15m")]
    pub idle_timeout: Duration,
    /// How long one command of `abl-cmd` may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub command_timeout: Duration,
}

impl PhaseArgs {
    /// As the topmost layer of the configuration.
    fn layer(&self) -> Layer {
        let mut layer = self.limits.layer.clone();
        layer.sandbox.mode = self.sandbox;
        layer
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Make what a project needs.
    Init,
    /// Look the specs over.
    Check,
    /// Go on with the open phase, or the next one.
    Run,
    /// Work on this phase.
    Number(u32),
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "init" => Ok(Self::Init),
            "check" => Ok(Self::Check),
            "run" => Ok(Self::Run),
            _ => match text.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err(format!("`{text}` is neither init, check, run nor the number of a phase")),
            },
        }
    }
}

/// Does what was asked for in the current folder.
pub fn run(args: &PhaseArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let root = root()?;
    folders::refuse_links(&root)?;
    match args.action {
        Action::Init => init::run(&root, output),
        Action::Check => check(&root, output),
        Action::Run | Action::Number(_) => act::run(&root, args, environment, output),
    }
}

/// The program under another of its names: `abl-cmd`, which a role calls, or the desk that answers it. `None` for its own name.
pub fn applet(name: Option<&OsStr>, environment: &Environment) -> Option<u8> {
    match Path::new(name?).file_name()?.to_str()? {
        client::NAME => Some(client::run(environment)),
        desk::NAME => Some(desk::serve()),
        _ => None,
    }
}

/// What is wrong with the specs, one line each.
fn check(root: &Path, output: &Output) -> Result<Exit, Failure> {
    let specs = project::specs(root)?;
    if specs.is_empty() {
        return Err(Failure::refused(
            anyhow!("there are no specs in {}", project::SPECS),
            "code-commit phase init makes a first one",
        ));
    }
    let mut found = 0;
    let mut tell = |file: &str, line: usize, message: &str| {
        found += 1;
        output.report(&format!("{file}:{line}: {message}"));
        output
            .object(&serde_json::json!({"event": "finding", "file": file, "line": line, "message": message}));
    };
    for (number, text) in &specs {
        let file = format!("{}/phase{number}.md", project::SPECS);
        for finding in loop_phase::spec::check(text, *number) {
            tell(&file, finding.line, &finding.message);
        }
        // The roles would take it for the person's word, and be paid for building it.
        if let Some(line) = init::left_of_template(text) {
            tell(&file, line, "this is still the template of code-commit phase init");
        }
    }
    if found == 0 {
        output.report(&format!("{}, nothing to object to.", phrases::count(specs.len() as u64, "spec")));
    }
    output.object(&serde_json::json!({"event": "checked", "specs": specs.len(), "findings": found}));
    Ok(if found == 0 { Exit::Done } else { Exit::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_a_word_or_the_number_of_a_phase() {
        let parse = |text: &str| text.parse::<Action>();
        assert_eq!(parse("run"), Ok(Action::Run));
        assert_eq!(parse("12"), Ok(Action::Number(12)));
        for bad in ["0", "-1", "RUN", "", "1.5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
