//! Runs of the spec loop among all others: `runs`, `show` and `resume` ask here.

use std::path::{Path, PathBuf};

use code_commit_engine::Outcome;
use code_commit_report::phrases;

use crate::place::work_tree_if_any;
use crate::records;
use crate::site::Site;
use crate::spec::act::{self, Begun};
use crate::spec::project;

/// The end of the name of an audit's folder.
pub(crate) const AUDIT: &str = "audit";
/// And of that of a talk about a plan.
pub const PLAN: &str = "plan";

/// A run of the spec loop that was begun here.
#[derive(Debug)]
pub struct Past {
    /// Its folder.
    pub path: PathBuf,
    /// What it was begun with.
    pub begun: Begun,
}

impl Past {
    /// How it ended; none while it has not.
    pub fn outcome(&self) -> Option<Outcome> {
        code_commit_perform::Past::read(&self.path)
            .ok()?
            .outcome()
            .cloned()
    }
}

/// The runs of the project in `root`, the newest first; audits and talks are none.
pub fn all(site: &Site<'_>) -> Vec<Past> {
    let known = site.registry().all().unwrap_or_default();
    let paths = known.into_iter().map(|known| known.path(&site.root));
    paths
        .filter_map(|path| {
            Some(Past {
                begun: act::begun(&path)?,
                path,
            })
        })
        .collect()
}

/// The folders of audits, the newest first.
pub fn audits(root: &Path) -> Vec<PathBuf> {
    folders(root, AUDIT)
}

/// The folders of talks about a plan, the newest first.
pub fn talks(root: &Path) -> Vec<PathBuf> {
    folders(root, PLAN)
}

/// Folders that were made for this, by their names.
fn folders(root: &Path, what: &str) -> Vec<PathBuf> {
    let tree = work_tree_if_any(root);
    let Ok((_, runs)) = tree.and_then(|tree| project::state(root, tree.as_ref())) else {
        return Vec::new();
    };
    let entries = code_commit_dir::list(runs).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|path| is_named(&records::name(path), what));
    folders.sort_unstable_by(|one, other| other.cmp(one));
    folders
}

/// `…-audit`, and `…-audit-2` of the same second.
fn is_named(name: &str, what: &str) -> bool {
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name
        .rsplit_once('-')
        .filter(|(_, count)| is_count(count))
        .map_or(name, |(stem, _)| stem);
    stem.rsplit_once('-').is_some_and(|(_, last)| last == what)
}

/// How a run ended, in words.
pub fn word(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Done { rounds }) => format!("approved in iteration {rounds}"),
        Some(Outcome::AttemptsUsedUp { rounds }) => {
            format!(
                "not approved after {}",
                phrases::count(u64::from(*rounds), "iteration")
            )
        }
        Some(Outcome::NeedsPerson { .. }) => "spec issue".to_owned(),
        Some(Outcome::ModelUnavailable { cause, .. } | Outcome::Unfit { cause, .. }) => {
            format!("stopped: {}", cause.code)
        }
        None => "not at its end".to_owned(),
    }
}
