//! The flags of `spec`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use code_commit_runs::spec::Request;
use code_commit_settings::spec::Options;

use super::flags::{TurnLimitArgs, key};

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
    Plan(Options),
    /// Plan, implement and review one focus until the reviewer approves
    Run(RunArgs),
    /// Work through .cuggino/backlog, file by file, until Ctrl-C
    Watch(WorkArgs),
    /// Compare specs and code once; findings go to .cuggino/tbd
    Audit(Options),
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
    pub agent: Options,
}

impl WorkArgs {
    pub fn request(&self) -> Request {
        Request {
            limits: self.limits.layer.clone(),
            agent: self.agent.clone(),
            ..Request::default()
        }
    }
}

impl RunArgs {
    pub fn request(&self) -> Request {
        Request {
            focus: self.focus.clone(),
            new: self.new,
            key: self.key.clone(),
            dry_run: self.dry_run,
            ..self.work.request()
        }
    }
}

impl ReviewArgs {
    pub fn request(&self) -> Request {
        Request {
            focus: self.focus.clone(),
            review: Some(self.file.clone()),
            ..self.work.request()
        }
    }
}
