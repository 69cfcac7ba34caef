//! The differences between a work tree and its index.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread;

use gix::bstr::{BStr, BString};
use gix::dir::entry::Kind;
use gix::dir::walk::{Action, EmissionMode};
use gix::index::State;
use gix::status::Submodule;
use gix::status::index_worktree::BuiltinSubmoduleStatus;
use gix::status::plumbing::index_as_worktree as plumbing;
use gix::status::plumbing::index_as_worktree::EntryStatus;
use gix::status::plumbing::index_as_worktree::traits::{FastEq, SubmoduleStatus};
use gix::worktree::stack::state::attributes::Source;

/// How many threads scan. Starting a thread costs about as much as scanning a hundred files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// Only the caller's thread.
    One,
    /// One per processor, and one for the untracked files.
    Many,
}

impl Threads {
    /// In gix's representation.
    pub(super) fn limit(self) -> Option<usize> {
        match self {
            Self::One => Some(1),
            Self::Many => None,
        }
    }
}

/// Files that git neither tracks nor ignores, relative to the top of the work tree, in no order.
#[derive(Default)]
pub(super) struct Untracked {
    pub(super) paths: Vec<BString>,
    /// Those of them that are repositories themselves.
    pub(super) repositories: Vec<BString>,
}

/// Untracked and changed files, relative to the top of the work tree, in no order.
pub(super) fn differing(
    repository: &gix::Repository,
    index: &State,
    threads: Threads,
) -> gix::Result<(Untracked, Vec<BString>)> {
    let (untracked, changed) = match threads {
        Threads::One => (
            untracked(repository, index),
            changed(repository, index, threads),
        ),
        Threads::Many => {
            let shared = repository.clone().into_sync();
            thread::scope(|scope| {
                let look = || untracked(&shared.to_thread_local(), index);
                let other = thread::Builder::new().spawn_scoped(scope, look);
                let changed = changed(repository, index, threads);
                // If the system cannot start another thread, this one does the work.
                let untracked = match other {
                    Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(_) => untracked(repository, index),
                };
                (untracked, changed)
            })
        }
    };
    Ok((untracked?, changed?))
}

fn untracked(repository: &gix::Repository, index: &State) -> gix::Result<Untracked> {
    let mut found = Untracked::default();
    let options = repository
        .dirwalk_options()?
        .emit_untracked(EmissionMode::Matching);
    repository.dirwalk(
        index,
        None::<&BStr>,
        &AtomicBool::new(false),
        options,
        &mut found,
    )?;
    Ok(found)
}

fn changed(
    repository: &gix::Repository,
    index: &State,
    threads: Threads,
) -> gix::Result<Vec<BString>> {
    let Some(top) = repository.workdir() else {
        return Ok(Vec::new());
    };
    let from = Source::WorktreeThenIdMapping;
    let attributes = repository.attributes_only(index, from)?.detach();
    let (filter, stack) = gix::filter::Pipeline::new(repository, attributes)?.into_parts();
    let (pathspec, _) = repository
        .pathspec(false, None::<&BStr>, true, index, from)?
        .into_parts();
    let mut found = Changed(Vec::new());
    gix::status::plumbing::index_as_worktree(
        index,
        top,
        &mut found,
        FastEq,
        Submodules::of(repository, index)?,
        repository.objects.clone(),
        &mut gix::progress::Discard,
        plumbing::Context {
            pathspec,
            stack,
            filter,
            should_interrupt: &AtomicBool::new(false),
        },
        plumbing::Options {
            fs: repository.filesystem_options()?,
            thread_limit: threads.limit(),
            stat: repository.stat_options()?,
            ..plumbing::Options::default()
        },
    )?;
    Ok(found.0)
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

/// Collects files that differ from their entry in the index.
struct Changed(Vec<BString>);

impl<'index> plumbing::VisitEntry<'index> for Changed {
    type ContentChange = ();
    type SubmoduleStatus = gix::submodule::Status;

    fn visit_entry(
        &mut self,
        _entries: &'index [gix::index::Entry],
        _entry: &'index gix::index::Entry,
        _entry_index: usize,
        path: &'index BStr,
        status: EntryStatus<(), gix::submodule::Status>,
    ) {
        // Otherwise only the times in the index are out of date.
        if !matches!(status, EntryStatus::NeedsUpdate(_)) {
            self.0.push(path.to_owned());
        }
    }
}

/// Whether a submodule has changes. Its context is created only if there is a submodule.
#[derive(Clone)]
enum Submodules {
    None,
    Some(Box<BuiltinSubmoduleStatus>),
}

impl Submodules {
    fn of(repository: &gix::Repository, index: &State) -> gix::Result<Self> {
        if index
            .entries()
            .iter()
            .all(|entry| entry.mode != gix::index::entry::Mode::COMMIT)
        {
            return Ok(Self::None);
        }
        let status =
            BuiltinSubmoduleStatus::new(repository.clone().into_sync(), Submodule::default())?;
        Ok(Self::Some(Box::new(status)))
    }
}

impl SubmoduleStatus for Submodules {
    type Output = gix::submodule::Status;

    fn status(
        &mut self,
        entry: &gix::index::Entry,
        path: &BStr,
    ) -> gix::Result<Option<Self::Output>> {
        match self {
            Self::None => Ok(None),
            Self::Some(status) => status.status(entry, path),
        }
    }
}
