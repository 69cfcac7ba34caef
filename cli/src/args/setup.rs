//! Flags of the commands that set the program up.

use std::path::PathBuf;

use clap::Args;
use code_commit_runs::check;
use code_commit_settings::Pattern;

use super::flags::{BuildArgs, SettingArgs, token_budget};

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Run the check command of the specs instead of the build
    #[arg(long)]
    pub spec: bool,
    #[command(flatten)]
    pub settings: BuildArgs,
}

impl CheckArgs {
    /// Whose commands are checked.
    pub fn of(&self) -> check::Of<'_> {
        if self.spec {
            check::Of::Specs
        } else {
            check::Of::Build
        }
    }
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Flags count here as they would for a run.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Print the JSON schema of code-commit.toml instead
    #[arg(long)]
    pub schema: bool,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Also make the system prompt that `implement` asks for; it teaches the model all fences
    #[arg(long)]
    pub implement: bool,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Flags count here as they would for a run.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Ask the model's service, by the cheapest question there is, whether key and model work
    #[arg(long)]
    pub online: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// One page for each command goes here; without it the main page goes to standard output
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RollupArgs {
    /// Only files that this gitignore pattern matches; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// No files that this gitignore pattern matches; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// Beyond this, show only the files that matter most for agent-config/query.txt, and list the others; `none` shows
    /// all [default: 60000]
    #[arg(long, value_name = "TOKENS", value_parser = token_budget, allow_negative_numbers = true)]
    pub budget: Option<u64>,
    /// Say which files are shown and why
    #[arg(long)]
    pub explain: bool,
}
