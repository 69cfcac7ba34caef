//! Flags of the commands that set the program up.

use std::path::PathBuf;

use clap::Args;

use super::{BuildArgs, SettingArgs};

/// Flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Run the verification and the acceptance commands of this work order instead of the build
    #[arg(long, value_name = "FILE")]
    pub order: Option<PathBuf>,
    /// Run the check command of the specs instead of the build
    #[arg(long, conflicts_with = "order")]
    pub spec: bool,
    /// As for a run.
    #[command(flatten)]
    pub settings: BuildArgs,
}

/// Flags of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Flags count here as they would for a run.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Print the JSON schema of code-commit.toml instead
    #[arg(long)]
    pub schema: bool,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Also make the system prompt that `implement` asks for; it teaches the model all fences
    #[arg(long)]
    pub implement: bool,
}

/// Flags of `trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Flags count here as they would for a run.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Ask the model's service, by the cheapest question there is, whether key and model work
    #[arg(long)]
    pub online: bool,
}

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell
    pub shell: clap_complete::Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// One page for each command goes here; without it the main page goes to standard output
    pub folder: Option<PathBuf>,
}
