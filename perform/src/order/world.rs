//! Everything needed to carry out a work order. The loop decides when to do what.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_changes::{Accounted, BACKUP, ChangeEngine};
use code_commit_engine::{
    Ask, AskAnswer, Broke, Commit, CommitAnswer, Condition, Digest, Durability, Event, Keep, Kept,
    Live, Look, Looked, Measure, Measured, Outcome, Problem, Ran, Recorded, Refused, Request as _,
    RollBack, RolledBack, Run, Stamp, Stamped, Text, Tried, World, Write, WriteAnswer, Written,
};
use code_commit_llm::Model;
use code_commit_runner::{Cancel, RunError};
use rustix::fs::FileType;

use crate::ask::{Asker, Asking, Files, Question};
use crate::commits::{Commits, commit};
use crate::fault::{Fault, is_of_the_machine};
use crate::identity::HoldsNow;
use crate::intake::{InPrompt, Rules, Taken, untidy};
use crate::order::baseline::Baseline;
use crate::record::Record;
use crate::trial::CommandSettings;

/// The world of a work order.
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct OrderWorld<'w> {
    pub record: Record,
    /// Where proposals are applied, and by which rules.
    pub rules: Rules,
    /// The script that verifies the project, if it exists (S2 §6.5).
    pub verify_script: &'static str,
    pub model: Rc<dyn Model>,
    pub asking: Asking,
    /// The schema of an answer, for services that can enforce it.
    pub schema: serde_json::Value,
    pub commands: CommandSettings,
    /// What commands may change for good.
    pub account: ChangeEngine,
    /// The state that a rollback restores.
    pub baseline: Baseline,
    /// What a verdict given now holds for.
    pub holds_for: HoldsNow<'w>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
}

impl World for OrderWorld<'_> {
    type Fault = Fault;

    fn record(&mut self, entry: &Recorded, durability: Durability) -> Result<(), Fault> {
        self.record.answer(entry, durability)?;
        if entry.kind != Measure::KIND {
            return Ok(());
        }
        // What commands changed is the run's once the answer that says so is on disk.
        self.record.sync()?;
        Ok(self.account.recorded(self.record.folder().path())?)
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), Fault> {
        Ok(self.record.texts().fetch(text)?)
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), Fault> {
        Ok(self.record.texts().fetch_output(text)?)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.record.texts().recall(digest)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), Fault> {
        let run = self.record.folder().path();
        self.account.end(run)?;
        self.baseline.end(run)?;
        let holds_for = (self.holds_for)(outcome, &self.asking.spending.interrupt(&self.cancel));
        Ok(self.record.note(&Event::Ended {
            outcome: outcome.clone(),
            holds_for,
        })?)
    }
}

impl Live<Stamp> for OrderWorld<'_> {
    fn perform(&mut self, _: &Stamp) -> Result<Stamped, Fault> {
        self.cancel_point()?;
        Ok(Stamped {
            at: code_commit_logging::Stamp::now().rfc3339(),
        })
    }
}

impl Live<Look> for OrderWorld<'_> {
    fn perform(&mut self, Look { conditions }: &Look) -> Result<Tried<Looked>, Fault> {
        self.cancel_point()?;
        tried(
            &self.record,
            self.failed(conditions).map(|failed| Looked { failed }),
        )
    }
}

impl Live<Ask> for OrderWorld<'_> {
    fn perform(
        &mut self,
        Ask {
            round,
            prompt,
            stable,
            system,
        }: &Ask,
    ) -> Result<AskAnswer, Fault> {
        self.cancel_point()?;
        let file = |name: &str| format!("attempt_{round}/{name}");
        let files = Files {
            prompt: file("prompt.txt"),
            raw: file("response.json"),
            reply: file("response.txt"),
        };
        self.make_parent(&files.prompt)?;
        let (round, stable, system) = (*round, *stable, *system);
        let schema = Some(&self.schema);
        let question = Question {
            round,
            prompt,
            stable,
            system,
            schema,
            files: &files,
        };
        let asker = Asker {
            model: &*self.model,
            asking: &self.asking,
            cancel: &self.cancel,
        };
        asker.ask(&question, &mut self.record)
    }
}

impl Live<Write> for OrderWorld<'_> {
    fn perform(&mut self, write: &Write) -> Result<Tried<WriteAnswer>, Fault> {
        self.cancel_point()?;
        // An attempt whose write was refused leaves its account open: this one's write is not a command's change.
        self.reset()?;
        let written = self.write(write);
        self.look_before()?;
        tried(&self.record, written)
    }
}

impl Live<Run> for OrderWorld<'_> {
    fn perform(&mut self, Run { log, argv }: &Run) -> Result<Tried<Ran>, Fault> {
        self.cancel_point()?;
        self.make_parent(log)?;
        // What commands before this one changed is in the view.
        let is_fresh = self.account.is_fresh();
        let ran = match self.run_accounted(log, argv) {
            Err(Fault::Run(RunError::View { .. })) if is_fresh => {
                self.account.leave_overlay();
                self.reset()?;
                self.run_accounted(log, argv)
            }
            Ok(ran) if is_fresh && !ran.passed() => {
                let output = format!("{}\n{}", ran.stdout.text, ran.stderr.text);
                let (guard, run) = (&self.rules.guard, self.record.folder().path());
                match self.account.leave_overlay_after(&output, guard, run)? {
                    Some(warning) => {
                        self.record.warn(warning)?;
                        self.run_accounted(log, argv)
                    }
                    None => Ok(ran),
                }
            }
            ran => ran,
        };
        tried(&self.record, ran)
    }
}

impl Live<RollBack> for OrderWorld<'_> {
    /// A failed rollback stops the run, which cannot continue.
    fn perform(&mut self, _: &RollBack) -> Result<RolledBack, Fault> {
        self.cancel_point()?;
        let warnings = self.put_back()?;
        Ok(RolledBack {
            warnings: self.portable(warnings),
        })
    }
}

impl Live<Keep> for OrderWorld<'_> {
    fn perform(&mut self, Keep { file, text }: &Keep) -> Result<Kept, Fault> {
        self.cancel_point()?;
        self.make_parent(file)?;
        let stored = self.record.folder().store(file, text)?;
        Ok(Kept { stored })
    }
}

impl Live<Measure> for OrderWorld<'_> {
    fn perform(&mut self, _: &Measure) -> Result<Tried<Measured>, Fault> {
        self.cancel_point()?;
        let Accounted {
            changes,
            put_back,
            warnings,
            ..
        } = self.look_after()?;
        warnings
            .into_iter()
            .try_for_each(|warning| self.record.warn(warning))?;
        let interrupt = self.asking.spending.interrupt(&self.cancel);
        let hashed =
            code_commit_repo::stable_hash(&self.rules.root, &interrupt).map_err(unreadable);
        tried(
            &self.record,
            hashed.map(|tree_sha256| Measured {
                tree_sha256,
                changes,
                put_back,
            }),
        )
    }
}

impl Live<Commit> for OrderWorld<'_> {
    fn perform(&mut self, Commit { message }: &Commit) -> Result<CommitAnswer, Fault> {
        let commits = Commits {
            git: self.baseline.git.clone(),
            since: Some(self.baseline.commit.clone()),
        };
        // Before Ctrl-C is heard, which restores the baseline: a commit that is made stays.
        if let Some(made) = commits.made(message)? {
            return Ok(made);
        }
        self.cancel_point()?;
        commit(
            &commits.git,
            &self.rules.root,
            &mut self.record,
            &self.account,
            message,
        )
    }
}

impl OrderWorld<'_> {
    fn cancel_point(&self) -> Result<(), Fault> {
        if self.cancel.is_set() {
            Err(Fault::Interrupted)
        } else {
            Ok(())
        }
    }

    /// The conditions that do not hold.
    fn failed(&self, conditions: &[Condition]) -> Result<Vec<Condition>, Fault> {
        let mut failed = Vec::new();
        for condition in conditions {
            let (Condition::FileExists(path) | Condition::FileAbsent(path)) = condition;
            let found = self.account.stat(&self.rules.guard, Path::new(path))?;
            let holds = match condition {
                Condition::FileExists(_) => {
                    found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_file())
                }
                Condition::FileAbsent(_) => found.is_none(),
            };
            if !holds {
                failed.push(condition.clone());
            }
        }
        Ok(failed)
    }

    fn write(
        &mut self,
        Write {
            attempt,
            reply,
            shown_whole,
            shown_in_part,
        }: &Write,
    ) -> Result<WriteAnswer, Fault> {
        let attempt = *attempt;
        let undo = self
            .record
            .folder()
            .path()
            .join(BACKUP)
            .join(attempt.to_string());
        let shown = InPrompt {
            whole: shown_whole,
            in_part: shown_in_part,
        };
        let (state, rules) = (self.rules.lock.state(), &self.rules);
        let take_in = || rules.take_in_proposal(reply, shown, &undo);
        Ok(match self.record.synced_by(state, &undo, take_in)?? {
            Taken::Written {
                touched,
                applied,
                mut warnings,
            } => {
                warnings.extend(applied.warnings.iter().map(untidy));
                let warnings = self.portable(warnings);
                let script = fs::symlink_metadata(self.rules.root.join(self.verify_script));
                let verify_script = script.is_ok_and(|found| found.is_file());
                let changes = applied.changes;
                WriteAnswer::Written(Written {
                    attempt,
                    touched,
                    changes,
                    warnings,
                    verify_script,
                })
            }
            Taken::Refused {
                why,
                touched,
                problems,
            } => {
                let problems = self.portable(problems);
                WriteAnswer::Refused(Refused {
                    attempt,
                    why,
                    touched,
                    problems,
                })
            }
        })
    }

    fn portable(&self, problems: Vec<Problem>) -> Vec<Problem> {
        problems
            .into_iter()
            .map(|one| self.record.portable(one))
            .collect()
    }

    fn make_parent(&self, file: &str) -> Result<(), Fault> {
        let folder = self.record.folder();
        let parent: PathBuf = folder
            .path()
            .join(file)
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default();
        fs::create_dir_all(&parent).map_err(|source| folder.error("create", file, source).into())
    }
}

/// After an error the loop ends the run, so that the tree is restored and a summary written. An error of the machine
/// stops it instead.
fn tried<A>(record: &Record, answer: Result<A, Fault>) -> Result<Tried<A>, Fault> {
    let broke = |error: &dyn std::error::Error| {
        Ok(Tried::Broke(Broke {
            message: record.words(error),
        }))
    };
    match answer {
        Ok(answer) => Ok(Tried::Done(answer)),
        Err(fault) if is_of_the_machine(&fault) => Err(fault),
        Err(Fault::Judge(error)) => broke(&error),
        Err(Fault::Run(error)) => broke(&error),
        Err(error @ (Fault::File { .. } | Fault::Undo(_) | Fault::Seal { .. })) => broke(&error),
        Err(fault) => Err(fault),
    }
}

pub(super) fn unreadable(error: code_commit_repo::TreeError) -> Fault {
    Fault::File {
        doing: "look at",
        path: error.path,
        source: error.source,
    }
}

#[cfg(test)]
mod tests {
    use code_commit_logging::{Redactor, RunFolder};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn an_order_ends_with_a_broken_project_and_stops_with_a_broken_machine() {
        let base = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
        let record = Record::begin(folder, crate::Silent).unwrap();
        let is_stopped = |errno: Errno| {
            let fault = Fault::file("write", Path::new("a"))(errno.into());
            tried::<()>(&record, Err(fault)).is_err()
        };
        let errors = [Errno::NOSPC, Errno::IO, Errno::NOENT, Errno::ACCESS];
        assert_eq!(errors.map(is_stopped), [true, true, false, false]);
        assert!(matches!(tried(&record, Ok(1)), Ok(Tried::Done(1))));
        assert!(tried::<()>(&record, Err(Fault::Interrupted)).is_err());
    }
}
