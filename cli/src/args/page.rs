//! Flags of the command that writes a run as a page.

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
    /// The format of the page
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "html",
        conflicts_with = "all"
    )]
    pub format: PageFormat,
    /// The file to write; if not named, standard output, or on a terminal a file beside the records. With --all also a folder, for an index with a page for each run
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long, conflicts_with = "format")]
    pub open: bool,
}

/// What a page is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// One HTML file that needs nothing else
    Html,
    /// For a job's summary, or a comment on a pull request
    Markdown,
}
