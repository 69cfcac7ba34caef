//! The account of an order's commands.

use code_commit_engine::{Problem, Ran};

use code_commit_changes::{Accounted, BACKUP, Backup};

use super::command;
use super::world::OrderWorld;
use crate::fault::Fault;
use crate::intake::Rules;
use crate::sets::{after_build, undo_folders};

impl OrderWorld<'_> {
    /// Restores the tree to its state before the run; gives warnings for the user.
    pub fn put_back(&mut self) -> Result<Vec<Problem>, Fault> {
        let Rules {
            root, lock, guard, ..
        } = &self.rules;
        let run = self.record.folder().path();
        let mut backup = Backup::of(run).or_in(lock.state());
        // First: it may bring in ignored files, some of which are restored.
        let others = self.account.reset(guard, run, &mut backup)?;
        let mut warnings = self.baseline.restore_into(lock, root, run, backup)?;
        warnings.extend(others);
        Ok(warnings)
    }

    /// Restores what a command changed before another attempt begins.
    pub(super) fn reset(&mut self) -> Result<(), Fault> {
        let (folder, lock) = (self.record.folder().clone(), &self.rules.lock);
        let mut backup = Backup::of(folder.path()).or_in(lock.state());
        let others = self
            .account
            .reset(&self.rules.guard, folder.path(), &mut backup)?;
        Ok(backup
            .warning()
            .into_iter()
            .chain(others)
            .try_for_each(|warning| self.record.warn(warning))?)
    }

    pub(super) fn run_accounted(&mut self, log: &str, argv: &[String]) -> Result<Ran, Fault> {
        self.look_before()?;
        let Self {
            account,
            commands: settings,
            rules: Rules { guard, .. },
            cancel,
            asking,
            record,
            ..
        } = self;
        let spending = &asking.spending;
        command::Run {
            settings,
            account,
            guard,
            cancel,
            spending,
            log,
            argv,
        }
        .run(record)
    }

    /// Begins the account before the first command after a write or a rollback.
    pub(super) fn look_before(&mut self) -> Result<(), Fault> {
        if self.account.is_open() {
            return Ok(());
        }
        self.account.sealed.clone_from(&self.commands.sealed);
        let run = self.record.folder().path();
        let warning = self.account.open(&self.rules.guard, run)?;
        Ok(warning
            .into_iter()
            .try_for_each(|warning| self.record.warn(warning))?)
    }

    /// Restores what commands may not change. What the order itself wrote has its own pre-images.
    pub(super) fn look_after(&mut self) -> Result<Accounted, Fault> {
        let run = self.record.folder().path();
        let written = undo_folders(run)?;
        let newest = written
            .last()
            .and_then(|folder| folder.file_name()?.to_str()?.parse().ok());
        let undo = run.join(BACKUP).join(after_build(newest.unwrap_or(1)));
        Ok(self.account.close(&self.rules.guard, run, &undo)?)
    }
}
