//! Flags of the commands that judge a reply without a model.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct ParseArgs {
    /// The reply; - for standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct GuardArgs {
    /// Paths, judged together as one reply
    #[arg(value_name = "PATH", required_unless_present = "stdin")]
    pub paths: Vec<OsString>,
    /// Read the paths from standard input, one JSON string per line
    #[arg(long, conflicts_with = "paths")]
    pub stdin: bool,
    /// The root that paths are relative to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}

#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The reply; - for standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Show what would change; write nothing
    #[arg(long)]
    pub dry_run: bool,
}
