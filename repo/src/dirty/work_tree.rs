//! What of a work tree differs from its index.

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

/// How many look at once. A thread costs about as much as looking at a hundred files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// The caller's own.
    One,
    /// As many as there are processors, and one for the untracked files.
    Many,
}

impl Threads {
    /// As gix takes it.
    pub(super) fn limit(self) -> Option<usize> {
        match self {
            Self::One => Some(1),
            Self::Many => None,
        }
    }
}

/// What git could track and does not, from the top of the work tree, in no order.
#[derive(Default)]
pub(super) struct Untracked {
    pub(super) paths: Vec<BString>,
    /// Those of them that are repositories of their own.
    pub(super) repositories: Vec<BString>,
}

/// Untracked and changed files from the top of the work tree, in no order.
pub(super) fn differing(
    repository: &gix::Repository,
    index: &State,
    threads: Threads,
) -> gix::Result<(Untracked, Vec<BString>)> {
    let (untracked, changed) = match threads {
        Threads::One => (untracked(repository, index), changed(repository, index, threads)),
        Threads::Many => {
            let shared = repository.clone().into_sync();
            thread::scope(|scope| {
                let look = || untracked(&shared.to_thread_local(), index);
                let other = thread::Builder::new().spawn_scoped(scope, look);
                let changed = changed(repository, index, threads);
                // A system that has no thread for it leaves it to this one.
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
    let options = repository.dirwalk_options()?.emit_untracked(EmissionMode::Matching);
    repository.dirwalk(index, None::<&BStr>, &AtomicBool::new(false), options, &mut found)?;
    Ok(found)
}

fn changed(repository: &gix::Repository, index: &State, threads: Threads) -> gix::Result<Vec<BString>> {
    let Some(top) = repository.workdir() else { return Ok(Vec::new()) };
    let from = Source::WorktreeThenIdMapping;
    let attributes = repository.attributes_only(index, from)?.detach();
    let (filter, stack) = gix::filter::Pipeline::new(repository, attributes)?.into_parts();
    let (pathspec, _) = repository.pathspec(false, None::<&BStr>, true, index, from)?.into_parts();
    let mut found = Changed(Vec::new());
    gix::status::plumbing::index_as_worktree(
        index,
        top,
        &mut found,
        FastEq,
        Submodules::of(repository, index)?,
        repository.objects.clone(),
        &mut gix::progress::Discard,
        plumbing::Context { pathspec, stack, filter, should_interrupt: &AtomicBool::new(false) },
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
    fn emit(&mut self, entry: gix::dir::EntryRef<'_>, _collapsed: Option<gix::dir::entry::Status>) -> Action {
        if entry.disk_kind == Some(Kind::Repository) {
            self.repositories.push(entry.rela_path.as_ref().to_owned());
        }
        if entry.disk_kind != Some(Kind::Untrackable) {
            self.paths.push(entry.rela_path.into_owned());
        }
        ControlFlow::Continue(())
    }
}

/// Collects what differs from its entry in the index.
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
        // Otherwise only the times that the index holds are old.
        if !matches!(status, EntryStatus::NeedsUpdate(_)) {
            self.0.push(path.to_owned());
        }
    }
}

/// Whether a submodule has changes. What it takes to ask is only made ready where there is one.
#[derive(Clone)]
enum Submodules {
    None,
    Some(Box<BuiltinSubmoduleStatus>),
}

impl Submodules {
    fn of(repository: &gix::Repository, index: &State) -> gix::Result<Self> {
        if index.entries().iter().all(|entry| entry.mode != gix::index::entry::Mode::COMMIT) {
            return Ok(Self::None);
        }
        let status = BuiltinSubmoduleStatus::new(repository.clone().into_sync(), Submodule::default())?;
        Ok(Self::Some(Box::new(status)))
    }
}

impl SubmoduleStatus for Submodules {
    type Output = gix::submodule::Status;

    fn status(&mut self, entry: &gix::index::Entry, path: &BStr) -> gix::Result<Option<Self::Output>> {
        match self {
            Self::None => Ok(None),
            Self::Some(status) => status.status(entry, path),
        }
    }
}
