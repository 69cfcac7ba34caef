//! The flags of `spec`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use code_commit_runs::spec::{Agent, AgentOptions, Permissions, Request};
use code_commit_settings::{Address, Sandbox, duration};
use serde::de::DeserializeOwned;

use super::flags::{TurnLimitArgs, key, sandbox, words};

#[derive(Debug, Clone, Args)]
pub struct SpecArgs {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Action {
    /// Ask for the settings and write .cuggino.json; needs a terminal
    Setup,
    /// Talk with an agent about specs and backlog; it can write there only
    Plan(AgentArgs),
    /// Plan, implement and review one focus until the reviewer approves
    Run(RunArgs),
    /// Work through .cuggino/backlog, file by file, until Ctrl-C
    Watch(WorkArgs),
    /// Compare specs and code once; findings go to .cuggino/tbd
    Audit(AgentArgs),
    /// Plan, implement and review once more, from a review that you have written
    Review(ReviewArgs),
    /// Show backlog, spec issues, findings and the last runs
    Status,
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What to work on; @FILE takes it from a file
    #[arg(long, value_name = "TEXT|@FILE", required_unless_present = "resume")]
    pub focus: Option<String>,
    /// Go on with the newest run if it was interrupted, or if its agent could not be used; other flags keep their original values
    #[arg(long, conflicts_with = "focus")]
    pub resume: bool,
    /// Begin a new run, even if one on the same focus is not finished
    #[arg(long, conflicts_with = "resume")]
    pub new: bool,
    /// A name of your own for this work: if a run with this key is finished and its verdict still holds, its result is reported again
    #[arg(long, value_name = "TEXT", value_parser = key, conflicts_with = "resume")]
    pub key: Option<String>,
    /// Say how large the first prompt is, and send nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    #[command(flatten)]
    pub work: WorkArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ReviewArgs {
    /// Your review; - for standard input
    pub file: PathBuf,
    /// What the review is about, if not the newest run; @FILE takes it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub focus: Option<String>,
    #[command(flatten)]
    pub work: WorkArgs,
}

/// How far each run may go, and who works.
#[derive(Debug, Clone, Args)]
pub struct WorkArgs {
    #[command(flatten)]
    pub limits: TurnLimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Who works, and within which sandbox. A run that goes on takes what is not given from the record of its beginning.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// Which agent; of several, separated by commas, the next works where one is out of quota, out of service, or refuses [default: claude]
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = named::<Agent>(AGENTS))]
    pub agent: Vec<Agent>,
    /// Its model, if not the one that it is set up for; of several agents one for each, of one agent those to try in turn
    #[arg(long = "model", value_name = "NAME", value_delimiter = ',')]
    pub agent_model: Vec<String>,
    /// The agent's models for repairs of what a review found, separated by commas: one for each, the last one for all further ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub escalate: Vec<String>,
    /// Allow tools without confirmation [default: skip]
    #[arg(long, value_name = "WHETHER", value_parser = named::<Permissions>(PERMISSIONS))]
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

/// The values of `--agent`, with their help.
const AGENTS: &[(&str, &str)] = &[
    ("claude", "Claude Code"),
    ("gemini", "Gemini CLI"),
    ("codex", "Codex"),
];

const PERMISSIONS: &[(&str, &str)] = &[
    ("skip", "All of them; the sandbox is what holds"),
    ("ask", "Those that it is set up for; others are denied"),
];

/// Parses a value by the name that records use for it.
fn named<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    known: &'static [(&str, &str)],
) -> impl TypedValueParser<Value = T> {
    words(known).try_map(|word| serde_json::from_value::<T>(word.into()))
}

impl AgentArgs {
    pub fn options(&self) -> AgentOptions {
        let flags = self.clone();
        AgentOptions {
            agent: flags.agent,
            agent_model: flags.agent_model,
            escalate: flags.escalate,
            permissions: flags.permissions,
            base_url: flags.base_url,
            sandbox: flags.sandbox,
            turn_timeout: flags.turn_timeout,
            idle_timeout: flags.idle_timeout,
            command_timeout: flags.command_timeout,
        }
    }
}

impl WorkArgs {
    /// The request for a run on this focus.
    pub fn on(&self, focus: Option<&String>) -> Request {
        let (limits, agent) = (self.limits.layer.clone(), self.agent.options());
        Request {
            focus: focus.cloned(),
            limits,
            agent,
            ..Request::default()
        }
    }
}

impl RunArgs {
    pub fn request(&self) -> Request {
        let (new, key, dry_run) = (self.new, self.key.clone(), self.dry_run);
        Request {
            new,
            key,
            dry_run,
            ..self.work.on(self.focus.as_ref())
        }
    }
}
