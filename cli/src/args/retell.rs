//! Flags of the commands that tell a run to other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct PageArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    #[arg(conflicts_with = "all")]
    pub run: Option<String>,
    /// All runs of the project: a table, what they cost, how often they succeed
    #[arg(long)]
    pub all: bool,
    /// The file to write; standard output if not named
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    pub run: Option<String>,
    /// The format of the other tool
    #[arg(long, value_name = "FORMAT")]
    pub format: TraceFormat,
    /// The file to write; standard output if not named
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Agent Trace 0.1.0: which lines a model wrote; one JSON record per line
    AgentTrace,
    /// OpenTelemetry: a span for each round, call and command, as OTLP JSON
    Otlp,
}
