//! What git neither tracks nor ignores, found without a git program.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use gix::bstr::{BStr, BString};
use gix::dir::entry::Kind;
use gix::dir::walk::{Action, EmissionMode};

use crate::{RepoError, WorkTree};

/// Relative to the top of the work tree, in no order.
#[derive(Default)]
struct Untracked {
    paths: Vec<BString>,
    /// Those of them that are repositories themselves.
    repositories: Vec<BString>,
}

impl WorkTree {
    /// The files below the root that git neither tracks nor ignores, relative to the root, in no order. To tell what is
    /// not committed, ask [git](Self::dirty_paths).
    pub fn untracked(&self) -> Result<Vec<PathBuf>, RepoError> {
        let found = self.walk()?.paths;
        Ok(found
            .iter()
            .filter_map(|path| self.relative(path.as_ref()))
            .collect())
    }

    /// Those of them that are repositories.
    pub(crate) fn untracked_repositories(&self) -> Result<Vec<PathBuf>, RepoError> {
        let found = self.walk()?.repositories;
        Ok(found
            .iter()
            .filter_map(|path| self.relative(path.as_ref()))
            .collect())
    }

    fn walk(&self) -> Result<Untracked, RepoError> {
        let found = || -> gix::Result<Untracked> {
            let mut found = Untracked::default();
            let options = self
                .repository
                .dirwalk_options()?
                .emit_untracked(EmissionMode::Matching);
            let index = self.repository.index_or_empty()?;
            let cancel = AtomicBool::new(false);
            self.repository
                .dirwalk(&index, None::<&BStr>, &cancel, options, &mut found)?;
            Ok(found)
        };
        found().map_err(|e| self.git_error("list the work tree", &e))
    }
}

impl gix::dir::walk::Delegate for Untracked {
    fn emit(
        &mut self,
        entry: gix::dir::EntryRef<'_>,
        _collapsed: Option<gix::dir::entry::Status>,
    ) -> Action {
        if entry.disk_kind == Some(Kind::Repository) {
            self.repositories.push(entry.rela_path.as_ref().to_owned());
        }
        if entry.disk_kind != Some(Kind::Untrackable) {
            self.paths.push(entry.rela_path.into_owned());
        }
        ControlFlow::Continue(())
    }
}
