//! The real executor of a work order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use llm::Model;
use logging::{Durability, Stamp};
use runner::Cancel;

use crate::executor::ask::{Asker, Files, Question, with_sources};
use crate::executor::{Fault, untidy};
use crate::kept::UNDO;
use crate::order::baseline::Baseline;
use crate::order::command::{CommandSettings, Run};
use crate::order::commit::commit;
use crate::order::{Condition, OrderFact, OrderStep};
use crate::{Answer, Asking, Executor, Record, Rules, Taken};

/// The script that verifies a project, where there is one (S2 §6.5).
pub const VERIFY_SCRIPT: &str = "scripts/verify.sh";

/// Everything that a work order needs to be carried out. The loop decides when.
pub struct OrderExecutor<'m> {
    /// Where proposals go and by which rules.
    pub rules: Rules,
    /// Who is asked.
    pub model: &'m dyn Model,
    /// Settings of the calls.
    pub asking: Asking,
    /// What an answer must look like, for services that can be held to it.
    pub schema: serde_json::Value,
    /// How commands are run.
    pub commands: CommandSettings,
    /// What the tree is put back to.
    pub baseline: Baseline,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
}

impl Executor<OrderStep, OrderFact> for OrderExecutor<'_> {
    type Fault = Fault;

    fn perform(&mut self, step: &OrderStep, record: &mut Record<'_, OrderFact>) -> Result<OrderFact, Fault> {
        if self.cancel.is_set() {
            return Err(Fault::Interrupted);
        }
        match self.carry_out(step, record) {
            // A tree that cannot be put back is nothing to go on with.
            Err(error) if *step == OrderStep::RollBack => Err(error),
            // The loop ends the run, so that it leaves the tree as it was and a summary.
            Err(Fault::Judge(error)) => Ok(broke(&error)),
            Err(Fault::Run(error)) => Ok(broke(&error)),
            Err(error @ (Fault::File { .. } | Fault::Undo(_) | Fault::Seal { .. })) => Ok(broke(&error)),
            done => done,
        }
    }
}

impl OrderExecutor<'_> {
    fn carry_out(&self, step: &OrderStep, record: &mut Record<'_, OrderFact>) -> Result<OrderFact, Fault> {
        match step {
            OrderStep::Stamp => Ok(OrderFact::Stamped { at: Stamp::now().rfc3339() }),
            OrderStep::Look { conditions } => self.look(conditions),
            OrderStep::Ask { attempt, prompt } => self.ask(*attempt, prompt, record),
            OrderStep::Write { attempt, answer, shown_in_part } => {
                self.write(*attempt, answer, shown_in_part, record)
            }
            OrderStep::Run { log, argv } => {
                make_parent(record, log)?;
                let (settings, root, cancel) = (&self.commands, &self.rules.root, &self.cancel);
                Run { settings, root, cancel, log, argv }.run(record)
            }
            OrderStep::RollBack => {
                let Rules { root, lock, .. } = &self.rules;
                let warnings = self.baseline.restore(lock, root, record.folder().path())?;
                Ok(OrderFact::RolledBack { warnings })
            }
            OrderStep::Keep { file, text } => {
                make_parent(record, file)?;
                let stored = record.folder().store(file, text, Durability::Written)?;
                Ok(OrderFact::Kept { stored })
            }
            OrderStep::Measure => {
                let hashed = repo::stable_hash(&self.rules.root).map_err(unreadable)?;
                Ok(OrderFact::Measured { tree_sha256: hashed })
            }
            OrderStep::Commit { message } => {
                commit(&self.baseline.git, &self.rules.root, record.folder().path(), message)
            }
        }
    }

    fn look(&self, conditions: &[Condition]) -> Result<OrderFact, Fault> {
        let mut failed = Vec::new();
        for condition in conditions {
            let (Condition::FileExists(path) | Condition::FileAbsent(path)) = condition;
            let found = stat(&self.rules.root.join(path))?;
            let holds = match condition {
                Condition::FileExists(_) => found.is_some_and(|found| found.is_file()),
                Condition::FileAbsent(_) => found.is_none(),
            };
            if !holds {
                failed.push(condition.clone());
            }
        }
        Ok(OrderFact::Looked { failed })
    }

    fn ask(
        &self,
        attempt: u32,
        prompt: &str,
        record: &mut Record<'_, OrderFact>,
    ) -> Result<OrderFact, Fault> {
        let file = |name: &str| format!("attempt_{attempt}/{name}");
        let files =
            Files { prompt: file("prompt.txt"), raw: file("response.json"), reply: file("response.txt") };
        make_parent(record, &files.prompt)?;
        let question = Question { round: attempt, prompt, schema: Some(&self.schema), files: &files };
        let asker = Asker { model: self.model, asking: &self.asking, cancel: &self.cancel, forbid: None };
        asker.ask(&question, record).map(OrderFact::Call)
    }

    fn write(
        &self,
        attempt: u32,
        answer: &Answer,
        shown_in_part: &[String],
        record: &Record<'_, OrderFact>,
    ) -> Result<OrderFact, Fault> {
        let undo = record.folder().path().join(UNDO).join(attempt.to_string());
        match self.rules.take_in_proposal(answer, shown_in_part, &undo)? {
            Taken::Written { touched, applied, mut warnings } => {
                warnings.extend(applied.warnings.iter().map(untidy));
                let script = fs::symlink_metadata(self.rules.root.join(VERIFY_SCRIPT));
                let verify_script = script.is_ok_and(|found| found.is_file());
                Ok(OrderFact::Written { attempt, touched, changes: applied.changes, warnings, verify_script })
            }
            Taken::Refused { why, touched, problems } => {
                Ok(OrderFact::Refused { attempt, why, touched, problems })
            }
        }
    }
}

/// What stands at a path; a link is not followed.
fn stat(path: &Path) -> Result<Option<fs::Metadata>, Fault> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Fault::file("look at", path)(error)),
    }
}

fn make_parent(record: &Record<'_, OrderFact>, file: &str) -> Result<(), Fault> {
    let parent: PathBuf = record.folder().path().join(file).parent().map(Path::to_owned).unwrap_or_default();
    fs::create_dir_all(&parent).map_err(|source| record.folder().error("create", file, source).into())
}

fn broke(error: &dyn std::error::Error) -> OrderFact {
    OrderFact::Broke { message: with_sources(error) }
}

pub(super) fn unreadable(error: repo::TreeError) -> Fault {
    Fault::File { doing: "look at", path: error.path, source: error.source }
}
