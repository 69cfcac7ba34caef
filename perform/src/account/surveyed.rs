//! The account of a command that worked in the tree: surveys of it before and after.

use std::path::Path;

use code_commit_apply::{OldFile, PreImageOf};
use code_commit_dir::{Folder, Interrupt};
use code_commit_engine::Problem;
use code_commit_guard::{Difference, Guard, Seen, Survey};
use code_commit_logging::RunFolder;

use super::accounted::{Accounted, not_restored, set_aside, warning};
use super::adopt::Places;
use super::layer::stat_below;
use super::layout::{Layout, Role};
use super::put_back::put_back;
use super::{Account, State, leave_out};
use crate::attic::Attic;
use crate::fault::Fault;

impl Account {
    /// Surveys the tree again.
    pub(super) fn compare(
        &mut self,
        before: &Survey,
        guard: &Guard,
        run: &RunFolder,
        undo: &Path,
        interrupt: Interrupt<'_>,
    ) -> Result<Accounted, Fault> {
        let root = guard.root();
        let differences = self.differences(before, guard)?;
        let decisions = self
            .decisions(guard, root, &differences, code_commit_dir::NEVER)
            .map_err(Fault::file("look at", root))?;
        let mut attic = Attic::of(run.path());
        let put_all_back = |attic: &mut Attic<'_>| {
            let gone = put_back(
                root,
                before,
                &self.source,
                &Vec::from_iter(&differences),
                attic,
            )?;
            self.interrupted(attic.folder(), &gone, run, undo)
        };
        if interrupt().is_err() {
            return put_all_back(&mut attic);
        }
        let gone = put_back(root, before, &self.source, &decisions.leave(), &mut attic)?;
        self.remove_empty(root, &decisions.made);
        let folders = decisions
            .made
            .iter()
            .filter(|folder| root.join(folder).is_dir())
            .cloned()
            .collect();
        let put_back = decisions
            .back()
            .into_iter()
            .filter(|path| !gone.contains(path))
            .collect();
        let mut accounted = Accounted {
            put_back,
            ..Accounted::default()
        };
        let places = Places {
            root,
            now: root,
            undo,
            interrupt,
        };
        let old = |path: &Path, was: &Seen| {
            let (content, model) = (
                Box::new(self.source.read(path, was)?),
                self.source.copy(path),
            );
            Some(OldFile::Copy(PreImageOf {
                content,
                mode: was.mode,
                owner: was.owner,
                model,
            }))
        };
        match places.adopt(
            &decisions.stays,
            (folders, decisions.gone.clone()),
            &old,
            &mut accounted,
        ) {
            Err(_) if interrupt().is_err() => return put_all_back(&mut attic),
            adopted => adopted?,
        }
        accounted.warnings.extend(not_restored(self.who, &gone));
        accounted
            .warnings
            .extend(self.set_aside(&decisions.set_aside, &mut attic));
        accounted
            .warnings
            .extend(warning(self.who, &accounted.put_back, attic.folder()));
        Ok(accounted)
    }

    /// Restores everything but ignored files; warns of what it could not restore.
    pub(super) fn reset_to(
        &mut self,
        before: &Survey,
        guard: &Guard,
        run: &RunFolder,
        attic: &mut Attic<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let differences = self.differences(before, guard)?;
        let root = guard.root();
        let layout = Layout { now: root, guard };
        let (aside, others): (Vec<_>, Vec<_>) =
            differences.iter().partition(|one| layout.sets_aside(one));
        let gone = put_back(root, before, &self.source, &others, attic)?;
        let mut warnings = self.set_aside(&aside, &mut Attic::of(run.path()));
        warnings.extend(not_restored(self.who, &gone));
        Ok(warnings)
    }

    /// Keeps what a command replaced or removed of ignored files.
    fn set_aside(&self, ignored: &[&Difference], attic: &mut Attic<'_>) -> Vec<Problem> {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for one in ignored {
            let is_kept = self.source.set_aside(one, attic);
            let list = if is_kept { &mut kept } else { &mut gone };
            list.push(one.path.display().to_string());
        }
        let warnings = set_aside(self.who, &kept, attic).into_iter();
        warnings.chain(not_restored(self.who, &gone)).collect()
    }

    /// Git does not see everything that has to go, so the survey is kept, here and on disk, until it is of no more use.
    pub(super) fn keep_survey<T>(
        &mut self,
        before: Survey,
        done: Result<T, Fault>,
    ) -> Result<T, Fault> {
        if done.is_err() {
            self.state = State::Surveyed(before);
        }
        done
    }

    pub(super) fn differences(
        &mut self,
        before: &Survey,
        guard: &Guard,
    ) -> Result<Vec<Difference>, Fault> {
        let root = guard.root();
        // The command may have closed it.
        drop(
            code_commit_dir::reach::root(root, code_commit_dir::reach::CHANGE)
                .map_err(Fault::file("open", root))?,
        );
        let mut differences = before.differences(&self.look(guard)?);
        let tree = Folder::open(root).map_err(Fault::file("open", root))?;
        for one in differences.iter_mut().filter(|one| one.after.is_none()) {
            one.after = one
                .before
                .and_then(|was| unlisted_folder(&tree, &one.path, was));
        }
        // A new time only suggests a change; compare the content.
        let layout = Layout { now: root, guard };
        differences.retain(|one| {
            let is_judged = layout.sets_aside(one) || layout.role(one) != Role::Harmless;
            is_judged && !self.source.is_same(root, one)
        });
        leave_out(&mut self.written, &mut differences);
        Ok(differences)
    }
}

/// The folder that git ignores in the place of a file: a survey does not list it.
fn unlisted_folder(tree: &Folder, path: &Path, was: Seen) -> Option<Seen> {
    let found = Seen::of(&stat_below(tree, path).ok().flatten()?);
    let is_new = found.kind().is_dir() && !was.kind().is_dir();
    is_new.then_some(Seen {
        is_ignored: true,
        ..found
    })
}
