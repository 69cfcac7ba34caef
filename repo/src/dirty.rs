//! What of a work tree is not committed, for about the price of one `git status`.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use gix::bstr::{BStr, BString};
use gix::status::index_worktree::{BuiltinSubmoduleStatus, Options};
use gix::status::plumbing::index_as_worktree::EntryStatus;
use gix::status::plumbing::index_as_worktree::traits::{FastEq, SubmoduleStatus};
use gix::status::plumbing::index_as_worktree_with_renames::{Entry, VisitEntry};
use gix::status::{Submodule, tree_index::TrackRenames};

/// Up to so many tracked files one thread is done sooner than several have begun.
const ONE_THREAD: usize = 2000;

/// Staged, changed and untracked files from the top of the work tree, in no order, some more than once.
pub(crate) fn paths(repository: &gix::Repository) -> gix::Result<Vec<BString>> {
    // Without its checksum, which git does not look at either.
    let skip_hash = true;
    let (path, decode) = (repository.index_path(), gix::index::decode::Options::default());
    let index = gix::index::File::at_or_default(path, repository.object_hash(), skip_hash, decode)?;
    let mut found = staged(repository, &index)?;
    let walk = repository.dirwalk_options()?.emit_untracked(gix::dir::walk::EmissionMode::Matching);
    let few = index.entries().len() <= ONE_THREAD;
    let mut changed = Changed(Vec::new());
    repository.index_worktree_status(
        &index,
        None::<&BStr>,
        &mut changed,
        FastEq,
        Submodules::of(repository, &index)?,
        &mut gix::progress::Discard,
        &AtomicBool::new(false),
        Options { dirwalk_options: Some(walk), thread_limit: few.then_some(1), ..Options::default() },
    )?;
    found.append(&mut changed.0);
    Ok(found)
}

/// What the index holds other than the commit that is checked out.
fn staged(repository: &gix::Repository, index: &gix::index::State) -> gix::Result<Vec<BString>> {
    let head = repository.head_tree_id_or_empty()?;
    if is_tree(index, &head) {
        return Ok(Vec::new());
    }
    let mut pathspec = repository.pathspec(
        false,
        None::<&BStr>,
        false,
        &gix::index::State::new(repository.object_hash()),
        gix::worktree::stack::state::attributes::Source::IdMapping,
    )?;
    let mut found = Vec::new();
    repository.tree_index_status(
        &head,
        index,
        Some(&mut pathspec),
        TrackRenames::Disabled,
        |change, _, _| {
            found.push(change.location().to_owned());
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// Whether the index says of itself that it is this tree: git keeps the id there until an entry changes. Saves reading every tree
/// object of a large repository.
fn is_tree(index: &gix::index::State, tree: &gix::oid) -> bool {
    let entries = index.entries().len();
    let is_whole = |count: u32| usize::try_from(count).is_ok_and(|count| count == entries);
    index.tree().is_some_and(|cached| *cached.id == *tree && cached.num_entries.is_some_and(is_whole))
}

/// Whether a submodule has changes. What it takes to ask is only made ready where there is one.
#[derive(Clone)]
enum Submodules {
    None,
    Some(Box<BuiltinSubmoduleStatus>),
}

impl Submodules {
    fn of(repository: &gix::Repository, index: &gix::index::State) -> gix::Result<Self> {
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

/// Collects the paths that differ.
struct Changed(Vec<BString>);

impl<'index> VisitEntry<'index> for Changed {
    type ContentChange = ();
    type SubmoduleStatus = gix::submodule::Status;

    fn visit_entry(&mut self, entry: Entry<'index, (), gix::submodule::Status>) {
        let path = match entry {
            // Only the times that the index holds are old.
            Entry::Modification { status: EntryStatus::NeedsUpdate(_), .. } => return,
            Entry::Modification { rela_path, .. } => rela_path.to_owned(),
            Entry::DirectoryContents { entry, .. } | Entry::Rewrite { dirwalk_entry: entry, .. } => {
                entry.rela_path
            }
        };
        self.0.push(path);
    }
}
