//! Flags of the commands that work from the record.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use code_commit_runs::replay::Other;
use code_commit_runs::undo::Force;
use code_commit_runs::{clean, replay, resume, travel, why};

use super::flags::{LimitArgs, whole_number};

#[derive(Debug, Args)]
pub struct RunName {
    /// The name of its folder, or its path; the newest if not named
    pub run: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct WhyArgs {
    /// The file, or one line of it: src/main.rs, src/main.rs:12
    #[arg(value_name = "FILE[:LINE]")]
    pub place: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// The run, by the name of its folder or by its path; the newest if not named
    pub run: Option<String>,
    /// Go on although files have changed since the run was stopped
    #[arg(long)]
    pub force: bool,
    /// In the place of those that the run began with.
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// The run, by the name of its folder or by its path; the newest if not named
    pub run: Option<String>,
    /// What if the model had answered otherwise in this round?
    #[arg(long, value_name = "N", requires = "reply", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    pub from_round: Option<u32>,
    /// The other answer; - for standard input
    #[arg(long, value_name = "FILE", requires = "from_round")]
    pub reply: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The run, by the name of its folder or by its path; the newest if not named
    pub run: Option<String>,
    /// Also put back files that have changed since the run
    #[arg(long)]
    pub force: bool,
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

#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// The run, by the name of its folder or by its path; the newest if not named
    pub run: Option<String>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Sign with this SSH key: a private one, or the public one of a key that an agent holds
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Leave the prompts out, which hold the code; their hashes stay
    #[arg(long)]
    pub without_prompts: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The exported run
    pub file: PathBuf,
    /// Believe it if it is signed by one of these [default: git's gpg.ssh.allowedSignersFile]
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
    /// Believe its plan and its verdicts, whoever made it
    #[arg(long)]
    pub trust: bool,
}

#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// The exported run
    pub file: PathBuf,
    /// Demand a signature by one of these, as git's gpg.ssh.allowedSignersFile lists them
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
}

impl ExportArgs {
    pub fn request(&self) -> travel::Export {
        let Self { run, output: file, sign, without_prompts } = self.clone();
        travel::Export { run, file, sign, without_prompts }
    }
}

impl ImportArgs {
    pub fn request(&self) -> travel::Import {
        let Self { file, allowed_signers, trust } = self.clone();
        travel::Import { file, allowed_signers, trust }
    }
}

impl VerifyArgs {
    pub fn request(&self) -> travel::Verify {
        travel::Verify { file: self.file.clone(), allowed_signers: self.allowed_signers.clone() }
    }
}

impl WhyArgs {
    pub fn request(&self) -> why::Request {
        why::Request { place: self.place.clone() }
    }
}

impl ResumeArgs {
    pub fn request(&self) -> resume::Request {
        resume::Request { run: self.run.clone(), force: self.force, limits: self.limits.layer.clone() }
    }
}

impl ReplayArgs {
    pub fn request(&self) -> replay::Request {
        let other = self.from_round.zip(self.reply.clone()).map(|(round, reply)| Other { round, reply });
        replay::Request { run: self.run.clone(), other }
    }
}

impl UndoArgs {
    /// Whether to also restore files that have changed since.
    pub fn force(&self) -> Force {
        if self.force { Force::Yes } else { Force::No }
    }
}

impl CleanArgs {
    pub fn request(&self) -> clean::Request {
        let Self { keep, older_than, caches, dry_run } = *self;
        clean::Request { keep, older_than, caches, dry_run }
    }
}
