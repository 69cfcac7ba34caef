//! The world of the commit loops: asks models, applies replies, runs builds, restores.

mod shown;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use code_commit_apply::Action;
use code_commit_changes::{Accounted, BACKUP, Backup, ChangeEngine};
use code_commit_engine::{
    Applied, Apply, ApplyAnswer, Ask, AskAnswer, Build, Built, Commit, CommitAnswer, Digest,
    Durability, Event, HoldsFor, Live, NotCommitted, Outcome, Problem, Recorded, Rejected, Restore,
    Restored, Text, World,
};
use code_commit_llm::Model;
use code_commit_logging::Layout;
use code_commit_runner::{Cancel, RunError};

use crate::ask::{Asker, Asking, Files, Question};
use crate::build::BuildCommand;
use crate::commits::Commits;
use crate::fault::Fault;
use crate::identity::HoldsNow;
use crate::intake::{Intake, Rules, Shown, untidy};
use crate::record::{Record, store};
use crate::sets::{after_build, folders_to_undo, undo_folders};

/// Everything that a run of a commit loop needs.
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct CommitWorld<'w> {
    pub record: Record,
    /// Where replies are applied, and by which rules.
    pub rules: Rules,
    pub model: Rc<dyn Model>,
    pub asking: Asking,
    /// What decides whether the work is done.
    pub build: BuildCommand,
    /// What the build may change.
    pub account: ChangeEngine,
    /// The code that the model is sent.
    pub codebase: Arc<str>,
    /// The names of a round's files.
    pub layout: Layout,
    /// Where the model's messages to the user are kept, besides the terminal (S0 §Implementation Details).
    pub said_log: Option<PathBuf>,
    /// How a run that passes is committed, if it is.
    pub commits: Option<Commits>,
    /// What a verdict given now holds for.
    pub holds_for: HoldsNow<'w>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
}

impl World for CommitWorld<'_> {
    type Fault = Fault;

    fn record(&mut self, entry: &Recorded, durability: Durability) -> Result<(), Fault> {
        self.record.answer(entry, durability)?;
        match durability {
            Durability::Now => self.settle(),
            Durability::BeforeNext | Durability::Later => Ok(()),
        }
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
        self.settle()?;
        self.account.end(self.record.folder().path())?;
        let holds_for = (self.holds_for)(outcome, &self.asking.spending.interrupt(&self.cancel));
        Ok(self.record.note(&Event::Ended {
            outcome: outcome.clone(),
            holds_for,
        })?)
    }
}

impl Live<Ask> for CommitWorld<'_> {
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
        let files = Files {
            prompt: self.layout.query(*round),
            raw: self.layout.response_json(*round),
            reply: self.layout.response_text(*round),
        };
        let (round, stable, system) = (*round, *stable, *system);
        let question = Question {
            round,
            prompt,
            stable,
            system,
            schema: None,
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

impl Live<Apply> for CommitWorld<'_> {
    fn perform(
        &mut self,
        Apply {
            round,
            reply,
            seen,
            need_bytes,
        }: &Apply,
    ) -> Result<ApplyAnswer, Fault> {
        self.cancel_point()?;
        let round = *round;
        let folder = self.record.folder().clone();
        let undo = folder.path().join(BACKUP).join(round.to_string());
        let report_file = self.layout.build(round);
        // A run that was killed before it recorded the result of this reply may already have stored its
        // messages.
        let may_be_kept = undo.exists() || folder.path().join(&report_file).exists();
        let append: fn(&Path, &str) -> io::Result<()> = if may_be_kept {
            |path, lines| code_commit_dir::append_once(path, "", lines)
        } else {
            code_commit_dir::append
        };
        // What a build changed has to be the run's before something else is.
        if !code_commit_changes::is_settled(folder.path())? {
            self.settle()?;
        }
        let shown = Shown::Prompts {
            codebase: &self.codebase,
            seen,
            need_bytes: *need_bytes,
        };
        let (state, rules) = (self.rules.lock.state(), &self.rules);
        let take_in = || rules.take_in(reply, shown, &undo);
        let taken = self.record.synced_by(state, &undo, take_in)??;
        self.account.recorded(folder.path())?;
        match taken {
            Intake::Applied {
                applied,
                mut warnings,
                said,
                edited,
                no_change,
            } => {
                self.say(round, &said, append)?;
                warnings.extend(applied.warnings.iter().map(untidy));
                let prompt = folder.path().join(self.layout.query(round));
                warnings.extend(written_over(&applied, &prompt, &undo, &self.rules)?);
                let warnings = warnings
                    .into_iter()
                    .map(|one| self.record.portable(one))
                    .collect();
                let (changes, edited) = (applied.changes, self.store_shown(round, &edited)?);
                Ok(ApplyAnswer::Applied(Applied {
                    round,
                    changes,
                    warnings,
                    edited,
                    no_change,
                }))
            }
            Intake::Rejected {
                problems,
                report,
                said,
                shown,
            } => {
                let report = store(&self.record, &report_file, &report)?;
                self.say(round, &said, append)?;
                let shown = self.store_shown(round, &shown)?;
                Ok(ApplyAnswer::Rejected(Rejected {
                    round,
                    problems,
                    report,
                    shown,
                }))
            }
        }
    }
}

impl Live<Build> for CommitWorld<'_> {
    fn perform(&mut self, Build { round }: &Build) -> Result<Built, Fault> {
        self.cancel_point()?;
        let file = self.layout.build(*round);
        let ran = self.build_accounted(*round, &file)?;
        let (guard, run) = (&self.rules.guard, self.record.folder().path().to_owned());
        let undo = run.join(BACKUP).join(after_build(*round));
        let (accounted, built) = match ran {
            Ok(built) => (self.account.close(guard, &run, &undo)?, Ok(built)),
            Err(fault) => (self.account.abandon(guard, &run)?, Err(fault)),
        };
        let Accounted {
            changes,
            put_back,
            unaccounted_bytes: ignored_bytes,
            warnings,
        } = accounted;
        self.warn(warnings)?;
        let built = built?;
        let present = self.present(*round, &changes)?;
        Ok(Built {
            changes,
            present,
            put_back,
            ignored_bytes,
            ..built
        })
    }
}

impl Live<Restore> for CommitWorld<'_> {
    /// Reverts the changes of every round, newest first. Not interrupted: Ctrl-C would leave them in the tree.
    fn perform(&mut self, _: &Restore) -> Result<Restored, Fault> {
        let rounds = folders_to_undo(self.record.folder())?;
        let folder = self.record.folder().clone();
        let mut backup = Backup::of(folder.path()).or_in(self.rules.lock.state());
        // A build may have formatted what the reply wrote: that is part of the run, and is kept beside the
        // pre-images.
        let (lock, root) = (&self.rules.lock, &self.rules.root);
        let undone = code_commit_changes::undo_past_obstacles(lock, root, &rounds, &mut backup);
        let warning = backup.warning();
        self.warn(warning)?;
        let undone = undone?;
        Ok(Restored {
            paths: undone
                .applied
                .changes
                .into_iter()
                .map(|change| change.path)
                .collect(),
        })
    }
}

impl Live<Commit> for CommitWorld<'_> {
    fn perform(&mut self, Commit { message }: &Commit) -> Result<CommitAnswer, Fault> {
        self.cancel_point()?;
        self.settle()?;
        let Some(commits) = &self.commits else {
            let message = "nothing is committed here".to_owned();
            let changed = None;
            return Ok(CommitAnswer::NotCommitted(NotCommitted {
                message,
                changed,
            }));
        };
        commits.commit(&self.rules.root, &mut self.record, &self.account, message)
    }
}

impl CommitWorld<'_> {
    /// A world without a build, limits, or anything to be shown.
    pub fn new(record: Record, rules: Rules, model: Rc<dyn Model>, cancel: Cancel) -> Self {
        Self {
            record,
            rules,
            model,
            asking: Asking::default(),
            build: BuildCommand::default(),
            account: ChangeEngine::default(),
            codebase: Arc::default(),
            layout: Layout::NumberFirst,
            said_log: None,
            commits: None,
            holds_for: Box::new(|_, _| HoldsFor::default()),
            cancel,
        }
    }

    /// Opens the account and runs the build, in a view of the tree if the system allows one.
    fn build_accounted(&mut self, round: u32, file: &str) -> Result<Result<Built, Fault>, Fault> {
        match self.build_once(round, file)? {
            Err(Fault::Run(RunError::View { .. })) => {
                self.account.leave_overlay();
                self.build_once(round, file)
            }
            Ok(built) if !built.passed() => {
                let (guard, run) = (&self.rules.guard, self.record.folder().path());
                let output = built.output.as_str();
                let Some(warning) = self.account.leave_overlay_after(output, guard, run)? else {
                    return Ok(Ok(built));
                };
                self.warn([warning])?;
                self.build_once(round, file)
            }
            ran => Ok(ran),
        }
    }

    fn build_once(&mut self, round: u32, file: &str) -> Result<Result<Built, Fault>, Fault> {
        self.account.sealed.clone_from(&self.build.settings.sealed);
        let run = self.record.folder().path();
        let warning = self.account.open(&self.rules.guard, run)?;
        self.warn(warning)?;
        let account = (&*self.rules.guard, &mut self.account);
        Ok(self.build.run(
            round,
            file,
            account,
            &self.cancel,
            &self.asking.spending,
            &mut self.record,
        ))
    }

    fn cancel_point(&self) -> Result<(), Fault> {
        if self.cancel.is_set() {
            Err(Fault::Interrupted)
        } else {
            Ok(())
        }
    }

    /// The changes of a build are the run's once its answer is on disk. Until then they may have to be reverted.
    fn settle(&mut self) -> Result<(), Fault> {
        self.record.sync()?;
        Ok(self.account.recorded(self.record.folder().path())?)
    }

    fn warn(&mut self, warnings: impl IntoIterator<Item = Problem>) -> Result<(), Fault> {
        Ok(warnings
            .into_iter()
            .try_for_each(|warning| self.record.warn(warning))?)
    }
}

/// Files changed between two writes of this run, or during the first model call: by the build, or by the
/// user, whose text is kept. Later changes are newer than the prompt.
fn written_over(
    applied: &code_commit_apply::Applied,
    prompt: &Path,
    undo: &Path,
    rules: &Rules,
) -> Result<Vec<Problem>, Fault> {
    let run = prompt.parent().unwrap_or(prompt);
    let earlier: Vec<PathBuf> = undo_folders(run)?
        .into_iter()
        .filter(|folder| folder != undo)
        .collect();
    let left = code_commit_apply::hashes_after(&earlier).map_err(Fault::Undo)?;
    let asked = modified(prompt);
    let mut problems = Vec::new();
    for (number, change) in applied
        .changes
        .iter()
        .enumerate()
        .filter(|(_, one)| one.action != Action::None)
    {
        let kept = undo.join(code_commit_apply::kept_name(number));
        let since = match left.get(&change.path) {
            Some(left) if *left != change.before_sha256 => "this run last wrote it",
            None if asked.is_some() && modified(&kept) > asked => "the model was asked",
            Some(_) | None => continue,
        };
        let kept = kept.strip_prefix(&rules.root).unwrap_or(&kept).display();
        let happened = match change.before_sha256 {
            Some(_) => {
                format!(
                    "changed since {since}, by a person or another program; that content is kept in {kept}"
                )
            }
            None => format!("removed since {since}, by a person or another program"),
        };
        let message = format!("`{}` had been {happened}.", change.path);
        let path = Some(change.path.clone());
        problems.push(Problem {
            code: "written-over".to_owned(),
            path,
            line: None,
            message,
        });
    }
    Ok(problems)
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata()
        .and_then(|found| found.modified())
        .ok()
}

#[cfg(test)]
mod tests;
