//! Records of checks: each exists only while its check is under way.

use std::path::{Path, PathBuf};

use code_commit_logging::RunFolder;
use code_commit_repo::WorkTree;

use crate::exit::Failure;
use crate::records::{self, RUNS, discard};
use crate::registry::Registry;

/// How the name of the record's folder goes on after the time.
pub(super) const CHECK: &str = "-check";

/// Whether this is the record of a check, which exists only while it is under way.
pub(crate) fn is_check(run: &Path, state: &Path) -> bool {
    let name = run.file_name().and_then(|name| name.to_str());
    run.parent() == Some(&state.join(RUNS)) && name.is_some_and(|name| name.contains(CHECK))
}

/// Removes the records of checks that were killed before they were listed or after they were forgotten: none of
/// their changes is left.
pub(crate) fn sweep(tree: &WorkTree, state: &Path) -> Result<(), Failure> {
    let known = Registry::of(tree).all()?;
    let is_listed = |run: &Path| known.iter().any(|known| known.path(tree.root()) == run);
    let runs = code_commit_dir::list(state.join(RUNS))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let stale = |run: &PathBuf| {
        is_check(run, state) && !is_listed(run) && !code_commit_changes::has_taken_in(run)
    };
    runs.filter(stale)
        .for_each(|run| discard(&records::open(&run)));
    Ok(())
}

/// Removes the record of a check whose changes are reverted, unless it keeps what was in the tree.
pub(crate) fn put_away(tree: &WorkTree, folder: &RunFolder) -> Result<(), Failure> {
    Registry::of(tree).forget(folder.path())?;
    if !code_commit_changes::has_taken_in(folder.path()) {
        discard(folder);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_check_is_known_by_its_place_and_its_name() {
        let is_check = |run| is_check(Path::new(run), Path::new("/state"));
        assert!(is_check("/state/runs/2026-check-2"));
        assert!(!is_check("/state/runs/2026-order"));
        assert!(!is_check("/other/runs/2026-check"));
    }
}
