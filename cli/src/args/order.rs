//! The flags of `order`: those of S2 §3, and those of every loop.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Subcommand};
use code_commit_runs::order::{Request, Terms};
use code_commit_settings::{Models, Options, Temperature};

use super::flags::{BuildArgs, OrderSettingArgs};

#[derive(Debug, Args)]
pub struct OrderArgs {
    #[command(subcommand)]
    pub command: OrderCommand,
}

impl OrderArgs {
    /// The repository to check; the current folder for commands that check none.
    pub fn repo(&self) -> &Path {
        match &self.command {
            OrderCommand::Run(args) => &args.repo,
            OrderCommand::Check(args) => &args.repo,
            OrderCommand::New(_) => Path::new("."),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum OrderCommand {
    /// Carry orders out: the model proposes whole files, the harness checks, writes, verifies, and on failure puts everything back
    Run(Box<RunOrderArgs>),
    /// Say whether an order could be carried out here, and which of its commands pass already; no model is asked, nothing is written
    Check(Box<CheckArgs>),
    /// Write a first order to fill in; nothing is overwritten
    New(NewArgs),
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RunOrderArgs {
    /// The orders, one after another; the same as --work-order
    #[arg(value_name = "FILE", required_unless_present = "work_order")]
    pub files: Vec<PathBuf>,
    /// The order
    #[arg(long, value_name = "FILE")]
    pub work_order: Option<PathBuf>,
    /// The repository, clean, by the top of its work tree
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Where the run folders are made; not inside the repository
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How often the model may try
    #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_attempts: u32,
    /// The model: openai/NAME, gemini/NAME, scripted/FILE, or a bare name whose provider is obvious
    #[arg(long, value_name = "MODEL", visible_alias = "model")]
    pub llm_model: LlmModel,
    /// 0 for replies that differ as little as the service can
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub llm_temperature: Temperature,
    /// How long each command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, allow_negative_numbers = true, value_parser = seconds)]
    pub timeout_seconds: u64,
    /// Of each order; an order's own `max_cost` counts where it is less.
    #[command(flatten)]
    pub settings: OrderSettingArgs,
    /// With several orders: continue after a failure
    #[arg(long)]
    pub keep_going: bool,
    /// Commit what an order that passes has written, so that the next one finds a clean tree
    #[arg(long)]
    pub commit: bool,
    /// A name of your own for this work: if a run with this key is finished, its result is reported again
    #[arg(long, value_name = "TEXT", value_parser = super::flags::key)]
    pub key: Option<String>,
    /// Begin a new run, even if one is not finished or the verdict of an earlier one still holds
    #[arg(long)]
    pub new: bool,
    /// Say how many tokens the first prompt of each order has and what it costs, and stop
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The order
    pub file: PathBuf,
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// How long each command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, allow_negative_numbers = true, value_parser = seconds)]
    pub timeout_seconds: u64,
    #[command(flatten)]
    pub settings: BuildArgs,
}

#[derive(Debug, Args)]
pub struct NewArgs {
    /// Where to write it; - for standard output
    #[arg(default_value = "work_order.json")]
    pub file: PathBuf,
}

#[derive(Debug, Clone)]
pub struct LlmModel {
    /// As written, since this is part of the configuration's hash.
    pub text: String,
    pub name: Models,
}

impl FromStr for LlmModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            name: text.parse()?,
        })
    }
}

impl RunOrderArgs {
    pub fn request(&self) -> Request {
        Request {
            files: self.work_order.iter().chain(&self.files).cloned().collect(),
            repo: self.repo.clone(),
            out: self.out.clone(),
            terms: Terms {
                llm_model: self.llm_model.text.clone(),
                llm_temperature: self.llm_temperature.0,
                max_attempts: self.max_attempts,
                timeout_seconds: self.timeout_seconds,
                commit: self.commit,
            },
            layer: self.layer(),
            keep_going: self.keep_going,
            new: self.new,
            dry_run: self.dry_run,
            key: self.key.clone(),
        }
    }

    /// As the topmost layer of the configuration. Answers are never streamed (S2 §2.12).
    fn layer(&self) -> Options {
        let mut layer = self.settings.layer.clone();
        layer.model.name = Some(self.llm_model.name.clone());
        layer.model.temperature = Some(self.llm_temperature);
        layer.model.stream = Some(false);
        layer
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("`{text}` is not a whole number of at least 1"))
}
