//! What a roll-up with a budget shows, and why.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use code_commit_prompt::rollup::Builder;
use code_commit_prompt::rollup::choose::{Candidate, bytes, choose, tokens};
use serde::{Deserialize, Serialize};

use super::Sources;
use crate::trusted::Trusted;

/// The commits that are searched for what was changed lately.
const COMMITS: u32 = 200;
/// The part of a budget that the list of other files may take.
const LISTED_PART: u64 = 8;
/// Bytes of a line of the list besides the path.
const LINE: usize = 24;
/// Bytes of the list besides its lines, rather too many than too few.
const FRAME: usize = 150;

/// A file that is shown, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Relative to the root.
    pub path: String,
    /// The reason.
    pub why: String,
    /// Its tokens, rather too many than too few.
    pub tokens: u64,
}

/// Adds the files that matter most for the query, and the list of the others.
pub(super) fn add(
    builder: &mut Builder,
    files: &[(String, String)],
    sources: Sources<'_>,
    budget: u64,
) -> Vec<Chosen> {
    let ages = ages(sources);
    let everything = files.iter().map(|(path, _)| tokens(path.len() + LINE)).sum::<u64>() + tokens(FRAME);
    let for_list = everything.min(budget / LISTED_PART);
    let candidates: Vec<Candidate<'_>> = files
        .iter()
        .map(|(path, text)| Candidate { path, text, age: ages.get(Path::new(path)).copied() })
        .collect();
    let order = choose(&candidates, sources.query, budget - for_list);
    let mut is_shown = vec![false; files.len()];
    for (index, _) in &order {
        if let Some(shown) = is_shown.get_mut(*index) {
            *shown = true;
        }
    }
    let both = || files.iter().zip(&is_shown);
    for ((path, text), _) in both().filter(|(_, shown)| **shown) {
        // Its text was checked when it was read.
        let _ = builder.add(path, text.as_bytes());
    }
    let others = both().filter(|(_, shown)| !**shown).map(|((path, text), _)| (path.as_str(), text.len()));
    builder.list(others, bytes(for_list));
    let chosen = order.into_iter().filter_map(|(index, why)| {
        let (path, text) = files.get(index)?;
        Some(Chosen { path: path.clone(), why: why.reason().to_owned(), tokens: tokens(text.len()) })
    });
    chosen.collect()
}

/// The files that were changed lately, each with its rank: uncommitted ones first, then by commit. Without a
/// git program nothing is known of commits.
fn ages(sources: Sources<'_>) -> HashMap<PathBuf, usize> {
    let Sources { tree, environment, .. } = sources;
    let below = tree.root().strip_prefix(tree.top()).unwrap_or(Path::new(""));
    let dirty = tree.dirty_paths().unwrap_or_default();
    let git = Trusted::of(tree, environment).git(tree.top()).ok();
    let committed = git.and_then(|git| git.changed_lately(below, COMMITS).ok()).unwrap_or_default();
    let mut ages = HashMap::new();
    for path in dirty.into_iter().chain(committed) {
        let rank = ages.len();
        ages.entry(path).or_insert(rank);
    }
    ages
}
