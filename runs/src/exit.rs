//! Exit codes and the errors that lead to them.

use engine::Outcome;
use report::Output;

/// How the program ends. Documented in the README; never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for is done.
    Done,
    /// All attempts are used up, or the answer to a question is no.
    Failed,
    /// Refused before anything was touched: configuration, preflight, a dirty tree, another run.
    Refused,
    /// The model could not be reached or may not be used.
    ModelUnavailable,
    /// The tree could not be restored as it was.
    TreeNotRestored,
    /// The specification needs a person.
    NeedsPerson,
    /// Nothing is there to resume, to undo or to replay.
    NothingToDo,
    /// Our own fault.
    Fault,
    /// Ctrl-C.
    Interrupted,
    /// Another program had the terminal; its code is handed through, and is none of ours.
    Handed(u8),
}

impl Exit {
    /// The program's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 3,
            Self::ModelUnavailable => 4,
            Self::TreeNotRestored => 5,
            Self::NeedsPerson => 6,
            Self::NothingToDo => 7,
            Self::Fault => 70,
            Self::Interrupted => 130,
            Self::Handed(code) => code,
        }
    }

    /// The exit code of a command that ended so. Where what was asked for could not be printed, the command is not `Done`. A run is: its
    /// record holds what the report would have told.
    #[must_use]
    pub fn closing(self, product: Product, output: &Output) -> Self {
        let has_lost = output.has_lost();
        if has_lost && (self, product) == (Self::Done, Product::Words) { Self::Fault } else { self }
    }
}

/// How a run that has come to its end ends its command.
impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { .. } => Self::Done,
            Outcome::AttemptsUsedUp { .. } | Outcome::Stuck { .. } => Self::Failed,
            Outcome::ModelUnavailable { .. } => Self::ModelUnavailable,
            Outcome::NeedsPerson { .. } => Self::NeedsPerson,
        }
    }
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// What it prints.
    Words,
    /// What it does to the tree, of which it leaves a record.
    Work,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What to do about an error that no command has a word for.
const WITHOUT_A_WORD: &str = "check that the disk has space and that you own the folder; if so, this is a bug in code-commit: please report it";

/// An error with its exit code and what the person can do.
#[derive(Debug)]
pub struct Failure {
    /// The program's exit code.
    pub exit: Exit,
    /// What went wrong, with its causes.
    pub error: anyhow::Error,
    /// What to do about it.
    pub help: String,
}

impl Failure {
    /// An error of this kind; [`help`](Self::help) says what can be done about it.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), help: WITHOUT_A_WORD.to_owned() }
    }

    /// Something that keeps the command from starting; nothing was touched.
    pub fn refused(error: impl Into<anyhow::Error>, help: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, error: error.into(), help: help.into() }
    }

    /// A command that has nothing to work on; nothing was touched.
    pub(crate) fn nothing_to_do(error: impl Into<anyhow::Error>, help: impl Into<String>) -> Self {
        Self { exit: Exit::NothingToDo, error: error.into(), help: help.into() }
    }

    /// A place whose path cannot stand in a record: that is JSON, whose texts are Unicode.
    pub fn not_utf8(path: &std::path::Path, record: &str, help: &str) -> Self {
        let error = anyhow::anyhow!("{} is not UTF-8, and {record} names it", path.display());
        Self::refused(error, help)
    }

    /// A file or folder that a command makes before it begins.
    pub fn cannot_make(error: impl Into<anyhow::Error>) -> Self {
        Self::refused(error, "check that it is writable and that nothing else is in its place")
    }

    /// A record that cannot be begun, most likely since the disk is full. Nothing was touched.
    pub(crate) fn no_record(error: impl Into<anyhow::Error>) -> Self {
        Self::refused(error, "make sure that you own the folder and that the disk has space")
    }

    /// Says it; gives the exit code.
    pub fn tell(&self, output: &Output) -> Exit {
        output.failure(&format!("{:#}", self.error), &self.help, self.exit.code());
        self.exit
    }

    /// What to do about it, in the command's own words.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// A repository that cannot be read keeps a command from starting.
impl From<repo::RepoError> for Failure {
    fn from(error: repo::RepoError) -> Self {
        let help = error.hint();
        Self::refused(error, help)
    }
}

/// As one that cannot be read.
impl From<repo::GitError> for Failure {
    fn from(error: repo::GitError) -> Self {
        let help = error.hint();
        Self::refused(error, help)
    }
}

/// Errors that no command has a word for are faults.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Fault, error)
    }
}
