//! Exit codes and the errors that lead to them.

use std::path::{Path, PathBuf};

use code_commit_engine::Outcome;
use code_commit_perform::Past;
use code_commit_repo::{GitError, RepoError};
use code_commit_report::{Output, figures};
use serde_json::json;

/// Exit codes of the program. Documented in the README; never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Done,
    /// All attempts are used up, or the answer to a question is no.
    Failed,
    /// The command line contradicts itself.
    Usage,
    /// Refused before anything was touched: configuration, preflight, a dirty tree, another run.
    Refused,
    /// The model could not be reached or may not be used.
    ModelUnavailable,
    /// The tree could not be restored.
    TreeNotRestored,
    /// The specification needs a human decision.
    NeedsPerson,
    /// There is nothing to resume or undo.
    NothingToDo,
    /// The machine or the project lacks what the build needs.
    Unfit,
    /// An internal error.
    Fault,
    /// Ctrl-C.
    Interrupted,
    /// Another program had the terminal; its exit code is passed on.
    Handed(u8),
}

impl Exit {
    /// The program's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::ModelUnavailable => 4,
            Self::TreeNotRestored => 5,
            Self::NeedsPerson => 6,
            Self::NothingToDo => 7,
            Self::Unfit => 8,
            Self::Fault => 70,
            Self::Interrupted => 130,
            Self::Handed(code) => code,
        }
    }

    /// The exit code of a command that ended like this. If its output could not be printed, the command is
    /// not `Done`. A run still is, since its record holds the result.
    #[must_use]
    pub fn closing(self, product: Product, output: &Output) -> Self {
        let has_lost = output.has_lost();
        if has_lost && (self, product) == (Self::Done, Product::Words) {
            Self::Fault
        } else {
            self
        }
    }
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { .. } => Self::Done,
            Outcome::AttemptsUsedUp { .. } => Self::Failed,
            Outcome::ModelUnavailable { .. } => Self::ModelUnavailable,
            Outcome::NeedsPerson { .. } => Self::NeedsPerson,
            Outcome::Unfit { .. } => Self::Unfit,
        }
    }
}

/// The product of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Its output.
    Words,
    /// Its work on the tree, which it records.
    Work,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The hint for an error without a hint of its own.
const WITHOUT_A_WORD: &str = "check that the disk has space and that you own the folder; if so, this is a bug in code-commit: please report it";

/// A run that was stopped.
#[derive(Debug)]
pub struct Stopped {
    /// Its folder.
    pub folder: PathBuf,
    /// Its loop's word for a round.
    pub step: &'static str,
}

/// An error with its exit code and a hint.
#[derive(Debug)]
pub struct Failure {
    /// The program's exit code.
    pub exit: Exit,
    /// What went wrong, with its causes.
    pub error: anyhow::Error,
    /// The hint: what to do about it.
    pub help: String,
    /// The run that was stopped.
    pub stopped: Option<Stopped>,
}

impl Failure {
    /// An error of this kind; [`help`](Self::help) sets its hint.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            help: WITHOUT_A_WORD.to_owned(),
            stopped: None,
        }
    }

    /// An error that keeps the command from starting; nothing was touched.
    pub fn refused(error: impl Into<anyhow::Error>, help: impl Into<String>) -> Self {
        Self::new(Exit::Refused, error).help(help)
    }

    /// A refusal by an error that has a hint.
    pub fn hinted<E: Into<anyhow::Error>>(error: E, hint: fn(&E) -> &'static str) -> Self {
        let help = hint(&error);
        Self::refused(error, help)
    }

    /// A command with nothing to do; nothing was touched.
    pub(crate) fn nothing_to_do(error: impl Into<anyhow::Error>, help: impl Into<String>) -> Self {
        Self::new(Exit::NothingToDo, error).help(help)
    }

    /// A path that cannot be recorded: records are JSON, which is Unicode.
    pub fn not_utf8(path: &std::path::Path, record: &str, help: &str) -> Self {
        let error = anyhow::anyhow!("{} is not UTF-8, and {record} names it", path.display());
        Self::refused(error, help)
    }

    /// A file or folder that could not be made before the start.
    pub fn cannot_make(error: impl Into<anyhow::Error>) -> Self {
        Self::refused(
            error,
            "check that it is writable and that nothing else is in its place",
        )
    }

    /// A record that could not be begun, most likely because the disk is full. Nothing was touched.
    pub(crate) fn no_record(error: impl Into<anyhow::Error>) -> Self {
        Self::refused(
            error,
            "make sure that you own the folder and that the disk has space",
        )
    }

    /// This run was stopped: what it has used so far is told with the error.
    #[must_use]
    pub(crate) fn of_run(self, folder: &Path, step: &'static str) -> Self {
        let folder = folder.to_owned();
        Self {
            stopped: Some(Stopped { folder, step }),
            ..self
        }
    }

    /// Prints it; gives the exit code.
    pub fn tell(&self, output: &Output) -> Exit {
        let run = self
            .stopped
            .as_ref()
            .and_then(|stopped| Some((stopped, Past::read(&stopped.folder).ok()?.steps())));
        if let Some((Stopped { folder, .. }, steps)) = &run {
            output.object(&json!({ "event": "summary", "summary": {
                "outcome": "stopped", "rounds_asked": steps.rounds_asked(), "usage": steps.usage(),
                "cost_usd": steps.cost_usd(), "elapsed_ms": steps.elapsed_ms(), "log": folder,
            } }));
        }
        output.failure(&format!("{:#}", self.error), &self.help, self.exit.code());
        if let Some((Stopped { folder, step }, steps)) = &run {
            let log = folder.display().to_string();
            output.report(&format!("  {}", figures(steps, step, &log)));
        }
        self.exit
    }

    /// Replaces the hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// An unreadable repository keeps a command from starting.
impl From<RepoError> for Failure {
    fn from(error: RepoError) -> Self {
        Self::hinted(error, RepoError::hint)
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        Self::hinted(error, GitError::hint)
    }
}

/// Errors without a hint are faults.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Fault, error)
    }
}
