//! What of a work tree is not committed, for about the price of one `git status`.

mod work_tree;

use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use gix::bstr::{BStr, BString};
use gix::index::Entry;
use gix::status::tree_index::TrackRenames;

use work_tree::Threads;

/// An index of so many bytes names some two thousand files: up to there one thread is done sooner than several have begun.
const ONE_THREAD_BYTES: u64 = 200_000;

/// What a look at the whole work tree shows, from its top, in no order.
pub(crate) struct Look {
    /// Staged, changed and untracked files, some more than once.
    pub(crate) paths: Vec<BString>,
    /// Submodules, and untracked repositories.
    pub(crate) repositories: Vec<BString>,
    /// Tracked files that were changed since a moment, as far as git knew when it last wrote its index: the others are among `paths`.
    pub(crate) since: Vec<BString>,
}

pub(crate) fn look(repository: &gix::Repository, since: Option<SystemTime>) -> gix::Result<Look> {
    // Without its checksum, which git does not look at either.
    let skip_hash = true;
    let threads = if is_small(repository) { Threads::One } else { Threads::Many };
    let decode = gix::index::decode::Options { thread_limit: threads.limit(), ..Default::default() };
    let path = repository.index_path();
    let index = gix::index::File::at_or_default(path, repository.object_hash(), skip_hash, decode)?;
    let mut paths = staged(repository, &index)?;
    let (untracked, mut changed) = work_tree::differing(repository, &index, threads)?;
    paths.extend(untracked.paths);
    paths.append(&mut changed);
    let submodules = index.entries().iter().filter(|entry| entry.mode.is_submodule());
    let submodules = submodules.map(|entry| entry.path(&index).to_owned());
    let repositories = submodules.chain(untracked.repositories).collect();
    let since = since.and_then(|since| since.duration_since(SystemTime::UNIX_EPOCH).ok());
    let is_younger = |entry: &&Entry| since.is_some_and(|since| modified(entry) > since);
    let since =
        index.entries().iter().filter(is_younger).map(|entry| entry.path(&index).to_owned()).collect();
    Ok(Look { paths, repositories, since })
}

/// Since 1970.
fn modified(entry: &Entry) -> Duration {
    let time = entry.stat.mtime;
    Duration::from_secs(time.secs.into()) + Duration::from_nanos(time.nsecs.into())
}

/// Whether one thread is enough for all that git tracks.
pub(crate) fn is_small(repository: &gix::Repository) -> bool {
    fs::metadata(repository.index_path()).map_or(true, |index| index.len() <= ONE_THREAD_BYTES)
}

/// The commit that is checked out; none where there is none yet.
pub(crate) fn head(repository: &gix::Repository) -> gix::Result<Option<gix::Id<'_>>> {
    let head = repository.head()?;
    match head.id() {
        Some(id) => Ok(Some(id)),
        // A branch that stands for another branch.
        None => head.try_into_peeled_id(),
    }
}

/// What the index holds other than the commit that is checked out.
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

/// Whether the index says of itself that it is this tree: git keeps the id there until an entry changes. Saves reading every tree
/// object of a large repository.
fn is_tree(index: &gix::index::State, tree: &gix::oid) -> bool {
    let entries = index.entries().len();
    let is_whole = |count: u32| usize::try_from(count).is_ok_and(|count| count == entries);
    index.tree().is_some_and(|cached| *cached.id == *tree && cached.num_entries.is_some_and(is_whole))
}

#[cfg(test)]
mod tests;
