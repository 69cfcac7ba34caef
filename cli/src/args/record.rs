//! Flags of the commands that work from the record.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use code_commit_runs::undo::{self, Force};
use code_commit_runs::{clean, resume};

use super::flags::{LimitArgs, whole_number};

#[derive(Debug, Args)]
pub struct RunName {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    pub run: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    pub run: Option<String>,
    /// Go on although files have changed since the run was stopped
    #[arg(long)]
    pub force: bool,
    /// In the place of those that the run began with.
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    pub run: Option<String>,
    /// Only these files of the run
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// Also restore files that have changed since the run
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct RedoArgs {
    /// The run: the beginning of its name, @ for the newest, @-2 for the second before it, or its path; the newest if not named
    pub run: Option<String>,
    /// Also replace files that have changed since the run was undone
    #[arg(long)]
    pub force: bool,
}

/// What a record can name as the loop of its run.
const LOOPS: [&str; 6] = ["commit", "implement", "order", "phase", "spec", "apply"];

/// Which runs to list.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Only runs of this loop: commit, implement, order, phase, spec, apply
    #[arg(long = "loop", value_name = "LOOP", value_parser = LOOPS, hide_possible_values = true)]
    pub kind: Option<String>,
    /// Only runs that ended like this
    #[arg(long, value_name = "STATUS")]
    pub status: Option<Status>,
    /// Only runs that began after this day (2026-11-20), or in the last 90m, 12h or 7d
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,
    /// Only runs that asked a model whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Only runs with this in their query or verdict, in capitals or not
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Status {
    /// It reached its goal, and was not undone
    Good,
    /// It ended without reaching its goal
    Failed,
    /// It has not ended: `resume` continues it
    Unfinished,
    /// It was undone
    Undone,
}

/// A time to list runs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The beginning of a day (UTC), in milliseconds since 1970.
    Day(i64),
    /// So long before now.
    Ago(Duration),
}

fn since(text: &str) -> Result<Since, String> {
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        let begins = day
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map_err(|error| error.to_string())?;
        return Ok(Since::Day(begins.timestamp().as_millisecond()));
    }
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u32>().ok());
    if let Some(days) = days {
        return Ok(Since::Ago(Duration::from_hours(24) * days));
    }
    code_commit_settings::duration(text)
        .map(Since::Ago)
        .map_err(|_| "write a day such as 2026-11-20, or a time such as 90m, 12h or 7d".to_owned())
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["keep", "older_than", "caches"]).required(true).multiple(true))]
pub struct CleanArgs {
    /// Keep the newest N runs of each loop
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub keep: Option<usize>,
    /// Keep what was written in so many days; with --keep, a run goes only if both let it go
    #[arg(long, value_name = "DAYS", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    pub older_than: Option<u32>,
    /// Remove what builds have written to the caches of tools
    #[arg(long)]
    pub caches: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl ResumeArgs {
    pub fn request(&self) -> resume::Request {
        resume::Request {
            run: self.run.clone(),
            force: self.force,
            limits: self.limits.layer.clone(),
        }
    }
}

impl UndoArgs {
    pub fn request(&self) -> undo::Request<'_> {
        undo::Request {
            run: self.run.as_deref(),
            files: &self.files,
            force: force(self.force),
        }
    }
}

impl RedoArgs {
    pub fn force(&self) -> Force {
        force(self.force)
    }
}

fn force(is_forced: bool) -> Force {
    if is_forced { Force::Yes } else { Force::No }
}

impl CleanArgs {
    pub fn request(&self) -> clean::Request {
        clean::Request {
            keep: self.keep,
            older_than: self.older_than,
            caches: self.caches,
            dry_run: self.dry_run,
        }
    }
}
