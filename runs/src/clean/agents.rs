//! Folders of agents that are no runs: audits, and talks about a plan. And what of a run git knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use code_commit_perform::{COPIES, TAKEN};

use crate::clean::{Run, is_no_record};
use crate::site::Site;
use crate::spec;

/// The newest of each kind first. None of these can be resumed; holding the lock means that they are over.
pub(super) fn others(root: &Path) -> impl Iterator<Item = Run> {
    let audits = spec::history::audits(root).into_iter();
    let audits = audits.map(|path| Run { stays: is_no_record(&path), path, kind: "audit".to_owned() });
    let talks = spec::history::talks(root).into_iter();
    audits.chain(talks.map(|path| Run { stays: is_no_talk(&path), path, kind: "plan".to_owned() }))
}

/// A talk leaves only copies of files that it may not change but did.
fn is_no_talk(path: &Path) -> Option<String> {
    let entries: BTreeSet<_> =
        code_commit_dir::list(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let is_talk = entries.iter().all(|name| name == COPIES || name == TAKEN);
    if is_talk && fs::canonicalize(path).is_ok_and(|real| real == path) { None } else { is_no_record(path) }
}

/// Why a run that the list does not name stays, if git tracks anything in it. `tracked` is read once.
pub(super) fn known_to_git(run: &Path, site: &Site<'_>, tracked: &mut Option<Vec<String>>) -> Option<String> {
    let below = run.strip_prefix(&site.root).ok()?;
    let read = || {
        let all = site.tree.as_ref().and_then(|tree| tree.tracked().ok()).unwrap_or_default();
        all.into_iter().map(|file| file.path).collect()
    };
    let is_below = |file: &String| Path::new(file).starts_with(below);
    let is_tracked = tracked.get_or_insert_with(read).iter().any(is_below);
    is_tracked.then(|| "git tracks what is in it; remove it by hand".to_owned())
}
