//! Finds what is not committed in a work tree, at about the cost of one `git status`.

mod work_tree;

use std::fs;
use std::ops::ControlFlow;

use gix::bstr::{BStr, BString};
use gix::status::tree_index::TrackRenames;

use work_tree::Threads;

/// An index of this size lists about two thousand files. Up to there, one thread finishes sooner
/// than several have started.
const ONE_THREAD_BYTES: u64 = 200_000;

/// The result of scanning the whole work tree, relative to its top, in no order.
pub(crate) struct Seen {
    /// Staged, changed and untracked files; some may occur more than once.
    pub(crate) paths: Vec<BString>,
    /// Submodules, and untracked repositories.
    pub(crate) repositories: Vec<BString>,
}

/// Scans the tree. `at_index` is called with the index that it was compared with.
pub(crate) fn look(
    repository: &gix::Repository,
    at_index: impl FnOnce(&gix::index::State),
) -> gix::Result<Seen> {
    // Skips the checksum, which git does not check either.
    let skip_hash = true;
    let threads = if is_small(repository) {
        Threads::One
    } else {
        Threads::Many
    };
    let decode = gix::index::decode::Options {
        thread_limit: threads.limit(),
        ..Default::default()
    };
    let path = repository.index_path();
    let index = gix::index::File::at_or_default(path, repository.object_hash(), skip_hash, decode)?;
    at_index(&index);
    let mut paths = staged(repository, &index)?;
    let (untracked, mut changed) = work_tree::differing(repository, &index, threads)?;
    paths.extend(untracked.paths);
    paths.append(&mut changed);
    let submodules = index
        .entries()
        .iter()
        .filter(|entry| entry.mode.is_submodule());
    let submodules = submodules.map(|entry| entry.path(&index).to_owned());
    Ok(Seen {
        paths,
        repositories: submodules.chain(untracked.repositories).collect(),
    })
}

/// Whether one thread is enough for all files that git tracks.
pub(crate) fn is_small(repository: &gix::Repository) -> bool {
    fs::metadata(repository.index_path()).map_or(true, |index| index.len() <= ONE_THREAD_BYTES)
}

/// The checked-out commit; `None` if there is none yet.
pub(crate) fn head(repository: &gix::Repository) -> gix::Result<Option<gix::Id<'_>>> {
    let head = repository.head()?;
    match head.id() {
        Some(id) => Ok(Some(id)),
        // A branch that points to another branch.
        None => head.try_into_peeled_id(),
    }
}

/// The differences between the index and the checked-out commit.
fn staged(repository: &gix::Repository, index: &gix::index::State) -> gix::Result<Vec<BString>> {
    let head = match head(repository)? {
        Some(commit) => commit.object()?.peel_to_commit()?.tree_id()?.detach(),
        None => repository.object_hash().empty_tree(),
    };
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

/// Whether the index records that it is identical to this tree: git stores the tree's ID there
/// until an entry changes. Saves reading every tree object of a large repository.
fn is_tree(index: &gix::index::State, tree: &gix::oid) -> bool {
    let entries = index.entries().len();
    let is_whole = |count: u32| usize::try_from(count).is_ok_and(|count| count == entries);
    index
        .tree()
        .is_some_and(|cached| *cached.id == *tree && cached.num_entries.is_some_and(is_whole))
}

#[cfg(test)]
mod tests;
