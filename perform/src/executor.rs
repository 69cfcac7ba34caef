//! The real executor: asks models, takes replies in, runs builds.

pub(crate) mod ask;
pub(crate) mod build;
pub(crate) mod reserve;
pub(crate) mod seal;
mod spending;
pub(crate) mod trial;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use apply::{Action, Applied};
use llm::Model;
use logging::{Durability, FolderError, Layout, Stamp};
use runner::Cancel;

use crate::intake::Intake;
use crate::kept::{UNDO, folders_to_undo, undo_folders};
use crate::record::RecordError;
use crate::{Answer, Event, Executor, Fact, Facts, Problem, Record, Rules, Step, Text};

pub use ask::Asking;
pub use build::BuildCommand;
pub use spending::Spending;

/// What stops a run from the outside. The journal stays as it is, so that the run can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A person pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The prompt holds a key: it is not sent.
    #[error("the prompt of round {round} holds an API key and was not sent")]
    KeyInPrompt {
        /// Which round.
        round: u32,
    },
    /// The record could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The guard could not look at the tree.
    #[error("cannot judge the reply's paths")]
    Judge(#[source] guard::JudgeError),
    /// The changes could not be written. The tree is as it was before them unless the error says otherwise
    /// ([`apply::ApplyError::leaves_tree_changed`]).
    #[error("cannot write the reply's changes")]
    Apply(#[source] apply::ApplyError),
    /// What an earlier part of the run has written could not be read back.
    #[error("cannot read what was applied before")]
    Undo(#[source] apply::UndoError),
    /// The run's changes could not be taken back.
    #[error("cannot put the tree back")]
    Restore(#[source] apply::UndoError),
    /// Git could not say how the tree is.
    #[error("cannot ask git about the tree")]
    Git(#[source] repo::GitError),
    /// Git could not put the tree back.
    #[error("cannot put the tree back")]
    RollBack(#[source] repo::GitError),
    /// A build or a command changed what it may not change, and it could not be put back.
    #[error("the build changed {paths}, which cannot be put back")]
    Seal {
        /// Which, relative to the root.
        paths: String,
    },
    /// A file or folder of the tree or of the harness.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was tried: `look at`, `append to`, `remove`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The build could not be watched over.
    #[error("cannot run the build")]
    Run(#[source] runner::RunError),
}

impl Fault {
    /// What was tried with this file.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing, path: path.to_owned(), source }
    }
}

impl From<FolderError> for Fault {
    fn from(error: FolderError) -> Self {
        Self::Record(error.into())
    }
}

/// Everything that a run needs to act. The loop decides when.
pub struct CommitExecutor<'m> {
    /// Where replies go and by which rules.
    pub rules: Rules,
    /// Who is asked, and how.
    pub model: &'m dyn Model,
    /// Settings of the calls.
    pub asking: Asking,
    /// What decides whether the work is done.
    pub build: BuildCommand,
    /// What the files of a round are called.
    pub layout: Layout,
    /// Where the model's words for the person are kept besides the terminal (S0 §Implementation Details).
    pub said_log: Option<PathBuf>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
}

impl Executor<Step, Fact> for CommitExecutor<'_> {
    type Fault = Fault;

    fn perform(&mut self, step: &Step, record: &mut Record<'_>) -> Result<Fact, Fault> {
        if self.cancel.is_set() {
            return Err(Fault::Interrupted);
        }
        match step {
            Step::Ask { round, prompt } => self.ask(*round, prompt, record),
            Step::Apply { round, answer } => self.take_in(*round, answer, record),
            Step::Build { round } => self.run_build(*round, record),
            Step::Restore => self.restore(record),
        }
    }
}

impl CommitExecutor<'_> {
    fn take_in(&self, round: u32, answer: &Answer, record: &mut Record<'_>) -> Result<Fact, Fault> {
        let undo = record.folder().path().join(UNDO).join(round.to_string());
        let report_file = self.layout.build(round);
        // A run that was killed before it could note what came of this reply may have kept its words already.
        let may_be_kept = undo.exists() || record.folder().path().join(&report_file).exists();
        let append: fn(&Path, &str) -> io::Result<()> =
            if may_be_kept { |path, lines| dir::append_once(path, "", lines) } else { dir::append };
        match self.rules.take_in(answer, &undo)? {
            Intake::Applied { applied, warnings, said, no_change } => {
                self.say(record, round, &said, append)?;
                let mut warnings = warnings;
                warnings.extend(applied.warnings.iter().map(untidy));
                let prompt = record.folder().path().join(self.layout.query(round));
                warnings.extend(written_over(&applied, &prompt, &undo, &self.rules)?);
                Ok(Fact::Applied { round, changes: applied.changes, warnings, no_change })
            }
            Intake::Rejected { problems, report, said } => {
                let report = store(record, &report_file, &report, Durability::Written)?;
                self.say(record, round, &said, append)?;
                Ok(Fact::Rejected { round, problems, report })
            }
        }
    }

    /// Shows the model's words at once, and appends them to what is kept of earlier ones.
    fn say(
        &self,
        record: &mut Record<'_>,
        round: u32,
        said: &[String],
        append: fn(&Path, &str) -> io::Result<()>,
    ) -> Result<(), Fault> {
        let mut lines = String::new();
        for text in said {
            record.tell(&Event::Said { round, text });
            lines.push_str(text);
            lines.push_str(if text.is_empty() || text.ends_with('\n') { "" } else { "\n" });
        }
        if let Some(path) = &self.said_log {
            let lines = record.folder().redactor().redact(&lines);
            append(path, &lines).map_err(Fault::file("append to", path))?;
        }
        Ok(())
    }

    /// Takes back every round's changes, the newest first.
    fn restore(&self, record: &Record<'_>) -> Result<Fact, Fault> {
        let rounds = folders_to_undo::<Fact>(record.folder())?;
        // A build may have formatted what the reply wrote: that is part of the run, and is kept beside the pre-images.
        let undo = || apply::undo(&self.rules.lock, &self.rules.root, &rounds, apply::Force::Yes);
        let undone = match undo() {
            Err(apply::UndoError::Blocked { .. }) => {
                self.make_way(&rounds, record)?;
                undo()
            }
            done => done,
        };
        let undone = undone.map_err(Fault::Restore)?;
        Ok(Fact::Restored { paths: undone.applied.changes.into_iter().map(|change| change.path).collect() })
    }

    /// A build may have put a link or a folder in the place of a file: it goes where other things go that are put back.
    fn make_way(&self, rounds: &[PathBuf], record: &Record<'_>) -> Result<(), Fault> {
        let left = record.folder().path().join(format!("left-{}", Stamp::now().folder_name()));
        for path in apply::hashes_after(rounds).map_err(Fault::Restore)?.keys() {
            // Where it stays, the next attempt says what stands in the way.
            let _ = dir::obstacle::move_away(&self.rules.root, path, &left);
        }
        Ok(())
    }
}

/// Files that were changed between two writes of this run, or while the model was at the first: by the build, or by a person, whose
/// words are kept. What was changed since then is younger than the prompt.
fn written_over(applied: &Applied, prompt: &Path, undo: &Path, rules: &Rules) -> Result<Vec<Problem>, Fault> {
    let run = prompt.parent().unwrap_or(prompt);
    let earlier: Vec<PathBuf> = undo_folders(run)?.into_iter().filter(|folder| folder != undo).collect();
    let left = apply::hashes_after(&earlier).map_err(Fault::Undo)?;
    let asked = modified(prompt);
    let mut problems = Vec::new();
    for (number, change) in applied.changes.iter().enumerate().filter(|(_, one)| one.action != Action::None) {
        let kept = undo.join(apply::kept_name(number));
        let since = match left.get(&change.path) {
            Some(left) if *left != change.before_sha256 => "this run last wrote it",
            None if asked.is_some() && modified(&kept) > asked => "the model was asked",
            Some(_) | None => continue,
        };
        let kept = kept.strip_prefix(&rules.root).unwrap_or(&kept).display();
        let happened = match change.before_sha256 {
            Some(_) => {
                format!("changed since {since}, by the build or by a person; that content is kept in {kept}")
            }
            None => format!("removed since {since}, by the build or by a person"),
        };
        let message = format!("`{}` had been {happened}.", change.path);
        let path = Some(change.path.clone());
        problems.push(Problem { code: "written-over".to_owned(), path, line: None, message });
    }
    Ok(problems)
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().and_then(|found| found.modified()).ok()
}

pub(crate) fn untidy(warning: &apply::Warning) -> Problem {
    Problem { code: "apply".to_owned(), path: None, line: None, message: format!("{warning}.") }
}

/// Stores a text and keeps it at hand as it was stored, keys struck out.
pub(crate) fn store<F: Facts>(
    record: &Record<'_, F>,
    file: &str,
    text: &str,
    durability: Durability,
) -> Result<Text, Fault> {
    let (stored, text) = record.folder().store_and_tell(file, text, durability)?;
    Ok(Text::new(stored, text.into()))
}

#[cfg(test)]
mod tests;
