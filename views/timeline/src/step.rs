//! The steps of a run, as plain data.

use code_commit_engine::{
    AtMost, Attempt, Cause, Changed, Ended, HoldsFor, Marked, ModelUsage, Outcome, Problem, Stored,
    TurnBegins, Turned, Usage,
};
use jiff::Timestamp;

/// Everything that happened, in order.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// The steps.
    pub all: Vec<Step>,
    /// How the run ended; `None` if it has not.
    pub outcome: Option<Outcome>,
    /// What its verdict is about.
    pub holds_for: HoldsFor,
    /// When the first line was written, in milliseconds since 1970 (UTC).
    pub from_ms: i64,
    /// When the last line was written.
    pub to_ms: i64,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The round, attempt or iteration, from 1; 0 before the first.
    pub round: u32,
    /// When it began, in milliseconds since 1970 (UTC).
    pub from_ms: i64,
    /// When it ended.
    pub to_ms: i64,
    /// What it was.
    pub what: What,
}

/// What a step was.
#[derive(Debug, Clone)]
pub enum What {
    /// A call of a model, or a turn of an agent.
    Call(Box<Call>),
    /// A reply was judged: all of it was written, or nothing.
    Change(Change),
    /// A command ran.
    Command(Command),
    /// Anything else that a person should know.
    Remark(Remark),
}

/// A call of a model, or a turn of an agent.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The role of the agent; `None` for a call of a model.
    pub role: Option<String>,
    /// The line with which a turn begins.
    pub begun: Option<TurnBegins>,
    /// The line that ends it.
    pub turned: Option<Turned>,
    /// The file with the prompt; `None` if the record begins later.
    pub prompt: Option<Stored>,
    /// The model that was asked, if it is not the first one of the run.
    pub asked_model: Option<String>,
    /// The most that one attempt can use; `None` for the turn of an agent.
    pub at_most: Option<AtMost>,
    /// The HTTP attempts of a model's call.
    pub attempts: Vec<Attempt>,
    /// Whether the record says how it ended.
    pub is_over: bool,
    /// How long it took, as its answer says.
    pub elapsed_ms: u64,
    /// The file with the answer.
    pub answer: Option<Stored>,
    /// The model that answered, if the service or the agent says so.
    pub served_model: Option<String>,
    /// Tokens by model. A call of a model has one entry; a turn has as many as its CLI reports.
    pub usage: Vec<ModelUsage>,
    /// US dollars for all of it; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Why there is no usable answer.
    pub failed: Option<Cause>,
    /// How the service says that the answer ended.
    pub finish: Option<String>,
    /// The list of failed contracts that a verifier left.
    pub failed_specs: Option<Stored>,
}

impl Call {
    /// Tokens of all models together.
    pub fn tokens(&self) -> Usage {
        let mut sum = Usage::default();
        self.usage.iter().for_each(|one| sum += one.usage);
        sum
    }

    /// The markers in an agent's text.
    pub fn markers(&self) -> &[Marked] {
        self.turned.as_ref().map_or(&[], |turned| &turned.markers)
    }
}

/// A reply was judged.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Whether nothing of it was written.
    pub is_refused: bool,
    /// What became of each file.
    pub changes: Vec<Changed>,
    /// Why it was refused, or warnings.
    pub problems: Vec<Problem>,
    /// The reason, if the reply says that nothing has to change.
    pub no_change: Option<String>,
}

/// A command ran: a build, a check, a command of an order.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Whether it is the build of a round, whose changes have pre-images of their own.
    pub is_build: bool,
    /// `build`, `check`, or the command itself.
    pub name: String,
    /// How it ended; `None` if it did not run.
    pub ended: Option<Ended>,
    /// Whether it passed.
    pub is_good: bool,
    /// Files with its output.
    pub output: Vec<String>,
    /// The files that it changed itself.
    pub changes: Vec<Changed>,
    /// What it changed and may not; it was restored.
    pub put_back: Vec<String>,
    /// The size of the new and changed files that git ignores, if known.
    pub ignored_bytes: u64,
    /// Whether it changed files that decide whether it passes.
    pub seal_broken: bool,
}

/// Something else happened.
#[derive(Debug, Clone, Default)]
pub struct Remark {
    /// Whether it is good or bad.
    pub tone: Tone,
    /// One sentence.
    pub text: String,
    /// The warning, if it is one that the run gave.
    pub warning: Option<Problem>,
    /// The commit, if one was made, in hex.
    pub commit: Option<String>,
    /// The repository of that commit, if the loop has several.
    pub repository: Option<String>,
    /// What the commit changed; filled in by whoever reads the repository.
    pub changes: Vec<Changed>,
    /// Whether the tree is as it was before the run.
    pub is_restore: bool,
}

impl Remark {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            tone,
            text,
            ..Self::default()
        }
    }
}

/// Whether something is good or bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// A person should know it.
    Warning,
    /// Something failed.
    Bad,
}

impl Tone {
    /// Its class on a page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Warning => "warn",
            Self::Bad => "bad",
        }
    }
}

impl Step {
    /// How long it took.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.to_ms - self.from_ms).unwrap_or_default()
    }

    /// The call, if it is one.
    pub fn call(&self) -> Option<&Call> {
        if let What::Call(call) = &self.what {
            Some(call)
        } else {
            None
        }
    }

    /// The files that it changed, with hashes.
    pub fn changes(&self) -> &[Changed] {
        match &self.what {
            What::Call(_) => &[],
            What::Change(change) => &change.changes,
            What::Command(command) => &command.changes,
            What::Remark(remark) => &remark.changes,
        }
    }
}

impl RunView {
    /// The calls of models and the turns of agents.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.all.iter().filter_map(Step::call)
    }

    /// The last round in which a model was asked; 0 if none was.
    pub fn rounds_asked(&self) -> u32 {
        let is_asked = |step: &&Step| step.call().is_some_and(|call| call.prompt.is_some());
        let asked = self.all.iter().filter(is_asked);
        asked.map(|step| step.round).max().unwrap_or_default()
    }

    /// The cost of the answers in US dollars, without calls that have none; `None` if one is unknown.
    pub fn answers_usd(&self) -> Option<f64> {
        total(self.calls().filter(|call| call.answer.is_some()))
    }

    /// Tokens of all calls.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.calls().for_each(|call| sum += call.tokens());
        sum
    }

    /// The cost of all calls in US dollars; `None` if one of them is unknown, or may have been paid for without an answer.
    pub fn cost_usd(&self) -> Option<f64> {
        let is_known = self.lost().calls == 0 && self.calls().all(|call| call.is_over);
        self.answers_usd().filter(|_| is_known)
    }

    /// The last commit that the run made, in hex; `None` for a loop that commits to several repositories.
    pub fn commit(&self) -> Option<&str> {
        self.all.iter().rev().find_map(|step| match &step.what {
            What::Remark(of) => of.commit.as_deref().filter(|_| of.repository.is_none()),
            What::Call(_) | What::Change(_) | What::Command(_) => None,
        })
    }

    /// From the first line to the last one.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.to_ms - self.from_ms).unwrap_or_default()
    }
}

/// The cost of these calls in US dollars; `None` if one of them is unknown.
pub fn total<'c>(mut calls: impl Iterator<Item = &'c Call>) -> Option<f64> {
    // The sum of no numbers would be -0.
    calls.try_fold(0.0, |sum, call| Some(sum + call.cost_usd?))
}

/// `2026-11-21`; UTC, as in the names of runs.
pub fn day(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d").to_string())
}
