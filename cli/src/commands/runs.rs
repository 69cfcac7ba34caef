//! Where runs are kept, and which one is meant.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use engine::Fact;
use llm::Reply;
use logging::{Redactor, RunFolder};
use repo::WorkTree;

use crate::exit::Failure;
use crate::preflight::{self, AGENT_CONFIG};

/// Folder for runs in the harness's own state, for projects without `agent-config/`.
const RUNS: &str = "runs";

/// Where the runs of the default loop are kept (S1 §Running the Build).
pub fn logs(root: &Path) -> PathBuf {
    root.join(AGENT_CONFIG).join("logs")
}

/// Where the runs of the first loop are kept (S0 §Logging).
pub fn implement_logs(root: &Path) -> PathBuf {
    root.join("logs")
}

/// Where `apply` keeps its record: beside the runs where git does not see it, else in the harness's own state.
pub fn base_for_tools(tree: &WorkTree) -> Result<PathBuf, Failure> {
    let hidden = preflight::agent_config_is_ignored(tree.root()).is_ok();
    if hidden && tree.root().join(AGENT_CONFIG).is_dir() {
        return Ok(logs(tree.root()));
    }
    let state = tree.state_dir().map_err(|error| Failure::refused(error, "see who owns it"))?;
    Ok(state.join(RUNS))
}

/// Every run of this project, the newest first; names begin with their time.
pub fn all(tree: &WorkTree) -> Result<Vec<PathBuf>, Failure> {
    let state = tree.state_dir().map_err(|error| Failure::refused(error, "see who owns it"))?;
    let mut runs: Vec<PathBuf> = [logs(tree.root()), implement_logs(tree.root()), state.join(RUNS)]
        .into_iter()
        .filter_map(|base| std::fs::read_dir(base).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(engine::JOURNAL).is_file() || path.join(engine::UNDO).is_dir())
        .collect();
    runs.sort_by_key(|path| std::cmp::Reverse(order(&name(path))));
    Ok(runs)
}

/// The run that is meant, the newest if none is named.
pub fn find(tree: &WorkTree, named: Option<&str>) -> Result<PathBuf, Failure> {
    let all = all(tree)?;
    let found = match named {
        Some(wanted) => all.iter().find(|path| name(path) == wanted),
        None => all.first(),
    };
    found.cloned().ok_or_else(|| {
        let known: Vec<String> = all.iter().take(5).map(|path| name(path)).collect();
        let what = named.map_or("there is no run yet".to_owned(), |name| format!("there is no run {name}"));
        Failure::refused(
            anyhow!(what),
            if known.is_empty() { String::new() } else { format!("the newest are {}", known.join(", ")) },
        )
    })
}

/// The answers of a run, in their order, to be given again.
pub fn replies(run: &Path) -> Result<Vec<Reply>, Failure> {
    let folder = RunFolder::open(run.to_owned(), Redactor::default());
    let facts: Vec<Fact> = engine::facts_of(&folder)
        .map_err(|error| Failure::refused(error, "name a run whose journal is whole"))?;
    Ok(facts
        .into_iter()
        .filter_map(|fact| {
            let Fact::Answered { reply, finish, usage, served_model, .. } = fact else { return None };
            let text = reply.as_str().to_owned();
            Some(Reply { finish, usage, served_model, ..Reply::of_text(text) })
        })
        .collect())
}

/// A run's name: that of its folder.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// By time, then by the number that two runs in one second are told apart by: `-9` before `-10`.
fn order(name: &str) -> (String, u64) {
    let (time, rest) = name.split_at_checked("2026-11-21-09-30-00".len()).unwrap_or((name, ""));
    let number = rest.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(1);
    (time.to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_second_are_in_the_order_of_their_numbers() {
        let mut names = [
            "2026-01-01-00-00-00-commit-10",
            "2026-01-01-00-00-01-commit",
            "2026-01-01-00-00-00-commit",
            "2026-01-01-00-00-00-commit-9",
        ];
        names.sort_by_key(|name| order(name));
        assert_eq!(
            names.map(|name| name.split_at(17).1),
            ["00-commit", "00-commit-9", "00-commit-10", "01-commit"]
        );
    }
}
