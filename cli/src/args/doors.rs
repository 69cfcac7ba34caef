//! Flags of the commands that serve editors and agents.

use std::path::PathBuf;

use clap::Args;

use super::flags::{BuildArgs, SettingArgs};

#[derive(Debug, Args)]
pub struct AcpArgs {
    /// Of every run.
    #[command(flatten)]
    pub settings: SettingArgs,
}

#[derive(Debug, Args)]
pub struct McpArgs {
    /// The project's folder, for clients that start their servers elsewhere
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// Of the builds that `check` runs.
    #[command(flatten)]
    pub settings: BuildArgs,
}
