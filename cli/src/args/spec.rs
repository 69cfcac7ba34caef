//! The flags of `spec`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use settings::{Address, Layer, Sandbox, duration};

use super::{TurnLimitArgs, sandbox};

/// What to do.
#[derive(Debug, Clone, Args)]
pub struct SpecArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// Commands of `spec`.
#[derive(Debug, Clone, Subcommand)]
pub enum Action {
    /// Ask for the settings and write .cuggino.json; needs a terminal
    Setup,
    /// Talk with an agent about specs and backlog; it can write there only
    Plan(AgentArgs),
    /// Plan, implement and review one focus until the reviewer approves
    Run(RunArgs),
    /// Work through .cuggino/backlog, file by file, until Ctrl-C
    Watch(WatchArgs),
    /// Compare specs and code once; findings go to .cuggino/tbd
    Audit(AgentArgs),
    /// Plan, implement and review once more, from a review that you have written
    Review(ReviewArgs),
    /// Show backlog, spec issues, findings and the last runs
    Status,
}

/// Flags of `spec run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What to work on; @FILE takes it from a file
    #[arg(long, value_name = "TEXT|@FILE", required_unless_present = "resume")]
    pub focus: Option<String>,
    /// Go on with the newest run if it was interrupted, or if its agent could not be used; flags that are not given are those of then
    #[arg(long, conflicts_with = "focus")]
    pub resume: bool,
    /// How far it may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    /// Who works.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Flags of `spec review`.
#[derive(Debug, Clone, Args)]
pub struct ReviewArgs {
    /// Your review; - for standard input
    pub file: PathBuf,
    /// What the review is about, if not the newest run; @FILE takes it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub focus: Option<String>,
    /// How far the run may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    /// Who works.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Flags of `spec watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// How far each run may go.
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    /// Who works.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Who works, and within which sandbox. A run that goes on takes what is not given from the record of its beginning.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentArgs {
    /// Which agent [default: claude]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<Agent>,
    /// Its model, if not the one that it is set up for
    #[arg(long = "model", value_name = "NAME")]
    pub agent_model: Option<String>,
    /// Whether it may use its tools without asking; nobody is there to ask [default: skip]
    #[arg(long, value_name = "WHETHER")]
    pub permissions: Option<Permissions>,
    /// Where its service is, if not where it looks by itself; for Claude Code and Gemini CLI
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// The sandbox around the agent and around the setup and check commands
    #[arg(long, value_name = "MODE", value_parser = sandbox())]
    pub sandbox: Option<Sandbox>,
    /// How long one turn of an agent may take [default: 2h]
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", value_parser = duration)]
    pub turn_timeout: Option<Duration>,
    /// How long an agent may be silent [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// How long the setup and check commands may take [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub command_timeout: Option<Duration>,
}

/// The agents that can be driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code
    #[default]
    Claude,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
}

/// Whether an agent may use its tools without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// All of them; the sandbox is what holds
    #[default]
    Skip,
    /// Those that it is set up for; others are denied
    Ask,
}

impl AgentArgs {
    /// These flags, and those of `begun` where they are not given.
    #[must_use]
    pub fn over(&self, begun: &Self) -> Self {
        let (flags, begun) = (self.clone(), begun.clone());
        Self {
            agent: flags.agent.or(begun.agent),
            agent_model: flags.agent_model.or(begun.agent_model),
            permissions: flags.permissions.or(begun.permissions),
            base_url: flags.base_url.or(begun.base_url),
            sandbox: flags.sandbox.or(begun.sandbox),
            turn_timeout: flags.turn_timeout.or(begun.turn_timeout),
            idle_timeout: flags.idle_timeout.or(begun.idle_timeout),
            command_timeout: flags.command_timeout.or(begun.command_timeout),
        }
    }

    /// As the topmost layer of the configuration.
    pub fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        layer.sandbox.mode = self.sandbox;
        layer
    }
}
