//! The command line.

mod doors;
mod flags;
mod later;
pub mod order;
mod page;
pub mod phase;
mod read;
mod record;
mod reply;
mod screen;
mod setup;
pub mod spec;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand, ValueEnum};
use code_commit_runs::commit::{self, Query};
use code_commit_runs::{Failure, Product};
use code_commit_settings::Sandbox;
pub use doors::{AcpArgs, McpArgs};
pub use flags::SettingArgs;
pub use later::Later;
pub use page::{PageArgs, PageFormat};
pub use record::{CleanArgs, RedoArgs, ResumeArgs, RunName, RunsArgs, Since, Status, UndoArgs};
pub use reply::{ApplyArgs, GuardArgs, ParseArgs};
pub use setup::{
    CheckArgs, CompletionsArgs, ConfigArgs, DoctorArgs, InitArgs, ManArgs, RollupArgs, TrustArgs,
};

/// The model proposes, the harness decides.
///
/// Without a command: sends a query (-m, or agent-config/query.txt) and agent-config/codeRollup.txt to a model, checks every file of its
/// reply, writes all of them or none, and runs build.sh. If the build fails, asks for a repair, up to three times.
///
/// New here? `code-commit demo` shows a complete run without a key; `code-commit -m "…"` changes your own project.
#[derive(Debug, Parser)]
#[command(name = "code-commit", version, max_term_width = 100)]
pub struct Cli {
    /// Without a command: the default loop.
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// A command; without one, the default loop runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The default loop: a query, one change, up to three repairs; the same as no command
    Run(Later<RunArgs>),
    /// The implement loop: up to eight rounds over a growing transcript
    Implement(Later<RunArgs>),
    /// Run the build in its sandbox, without a model: green (0), red (1) or unfit (8)
    ///
    /// Green: the build passes, and there is nothing to fix. Red: it fails. Unfit: it could not be started, which no model can
    /// repair. A host that was refused and a program that the sandbox hides are named, with the flag that allows them. What the
    /// build changes besides ignored files is restored.
    Check(Later<CheckArgs>),
    /// Build phases: a builder and a verifier that cannot see each other's work, until every contract of the spec holds
    Phase(Later<phase::PhaseArgs>),
    /// The spec loop: agents plan, implement and review until the specs are met
    Spec(Later<spec::SpecArgs>),
    /// Show what all runs and all turns of phases have used, by loop, phase, role and model
    Costs,
    /// List the runs of this project, the newest first
    Runs(Later<RunsArgs>),
    /// Show what happened in a run, the newest if none is named
    Show(Later<RunName>),
    /// Show what a run changed, as git shows a diff
    Diff(Later<RunName>),
    /// Make one HTML file to look at a run, or at all runs of the project
    ///
    /// The file needs nothing else: no network, no script for a run, no other file. It begins with the
    /// verdict and the reason, then come files, rounds with their time and cost, diffs, output, and
    /// folded prompts.
    Page(Later<PageArgs>),
    /// Continue a run that was interrupted or got no reply; no reply is requested twice
    Resume(Later<ResumeArgs>),
    /// Go on from a finished run with its query, its change, its verdict and new words (-m)
    Again(Later<AgainArgs>),
    /// Set up a new project in this folder; overwrites nothing
    Init(Later<InitArgs>),
    /// Write agent-config/codeRollup.txt from the files that git tracks
    Rollup(Later<RollupArgs>),
    /// Show what a model's reply contains, or every error in it
    Parse(Later<ParseArgs>),
    /// Show which paths a model may write here, and why not the others
    Guard(Later<GuardArgs>),
    /// Parse, check and apply a reply that you have as text, without calling a model
    Apply(Later<ApplyArgs>),
    /// Restore every file that a run wrote or deleted, or some of them
    Undo(Later<UndoArgs>),
    /// Reapply the undone changes of a run
    Redo(Later<RedoArgs>),
    /// Remove the folders of old runs
    ///
    /// Removed runs can no longer be undone or shown, and `costs` no longer counts them. A run that can still be resumed stays.
    Clean(Later<CleanArgs>),
    /// Carry out work orders: strict scope, verification, rollback
    Order(Later<order::OrderArgs>),
    /// Show a complete run in a scratch project; needs no network and no key
    Demo(Later<DemoArgs>),
    /// Serve the Agent Client Protocol on standard input and output, for editors
    Acp(Later<AcpArgs>),
    /// Serve the Model Context Protocol on standard input and output, for agents
    ///
    /// Five tools: write files, all or nothing; run the build in its sandbox; undo a change; judge paths; choose files for a query.
    Mcp(Later<McpArgs>),
    /// Show every setting in force and its origin
    Config(Later<ConfigArgs>),
    /// Let this project's code-commit.toml weaken limits and the sandbox, until it changes
    Trust(Later<TrustArgs>),
    /// Show what works on this machine: sandbox, git, keys, model, agents, this project
    Doctor(Later<DoctorArgs>),
    /// Write a completion script to standard output
    Completions(Later<CompletionsArgs>),
    /// Write the manual pages
    Man(Later<ManArgs>),
}

impl Cli {
    /// What the command produces.
    pub fn product(&self) -> Product {
        let is_run = match &self.command {
            Some(Command::Order(args)) => matches!(args.command, order::OrderCommand::Run(_)),
            Some(Command::Phase(args)) => {
                matches!(args.action, phase::Action::Run | phase::Action::Number(_))
            }
            Some(Command::Spec(args)) => {
                matches!(args.action, spec::Action::Run(_) | spec::Action::Watch(_))
            }
            None
            | Some(
                Command::Run(_)
                | Command::Implement(_)
                | Command::Again(_)
                | Command::Resume(_)
                | Command::Apply(_)
                | Command::Undo(_)
                | Command::Redo(_),
            ) => true,
            Some(_) => false,
        };
        if is_run {
            Product::Work
        } else {
            Product::Words
        }
    }
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print one JSON object per line on standard output, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show the build's output while it runs, and every attempt to reach the model
    // S3 has -v for the verifier's model.
    #[arg(long, global = true)]
    pub verbose: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: When,
}

/// Whether `--json` is among the arguments, which may be invalid.
pub fn wants_json(words: impl IntoIterator<Item = OsString>) -> bool {
    words
        .into_iter()
        .skip(1)
        .take_while(|word| word != "--")
        .any(|word| word == "--json")
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Flags of the default loop.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What the configuration could say, too.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// What to change, instead of agent-config/query.txt; - reads standard input
    #[arg(long, short, value_name = "QUERY")]
    pub message: Option<String>,
    /// Refuse to start if there are uncommitted changes
    #[arg(long)]
    pub require_clean: bool,
    /// What to do with the changes if the run fails
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    pub on_failure: OnFailure,
    /// A name of your own for this work: if a run with this key is finished, its result is reported again
    #[arg(long, value_name = "TEXT", value_parser = flags::key)]
    pub key: Option<String>,
    /// Begin a new run, even if one for the same query is not finished
    #[arg(long)]
    pub new: bool,
    /// Commit the files that a run changed, and nothing else, once its build is green; the message is the first line of the query if none is given
    #[arg(long, value_name = "MESSAGE", num_args = 0..=1, require_equals = true, value_parser = flags::commit_message)]
    #[expect(
        clippy::option_option,
        reason = "the flag can be given without a message"
    )]
    pub commit: Option<Option<String>>,
    /// Say how many tokens the first prompt has and what it costs, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Flags of a run that goes on from another one.
#[derive(Debug, Clone, Args)]
pub struct AgainArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    #[arg(value_name = "FROM")]
    pub from: Option<String>,
    /// As for any run; -m says what is to be different.
    #[command(flatten)]
    pub run: RunArgs,
}

impl RunArgs {
    /// The request for a run. Reads standard input if the query is there.
    pub fn request(&self) -> Result<commit::Request, Failure> {
        let query = match &self.message {
            Some(message) => Query::given(message)?,
            None => Query::File,
        };
        Ok(commit::Request {
            layer: self.settings.layer.clone(),
            query,
            require_clean: self.require_clean,
            on_failure: match self.on_failure {
                OnFailure::Keep => commit::OnFailure::Keep,
                OnFailure::Restore => commit::OnFailure::Restore,
            },
            key: self.key.clone(),
            commit: self.commit.clone().map(message),
            parent: None,
            new: self.new,
            dry_run: self.dry_run,
        })
    }
}

fn message(given: Option<String>) -> commit::Message {
    given.map_or(commit::Message::OfQuery, commit::Message::Given)
}

/// The tree that a failed run leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// The changes stay, for `git diff`
    Keep,
    /// Every file is restored
    Restore,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The sandbox around the build
    #[arg(long, value_name = "MODE", value_enum, default_value = "auto")]
    pub sandbox: Sandbox,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
