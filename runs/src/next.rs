//! The next steps of a person who prepares a project, by what it has already.

use code_commit_names::ours::BUILD;
use code_commit_repo::WorkTree;
use code_commit_settings::{Keys, Settings};

use crate::host::Host;
use crate::preflight::{self, Missing, QUERY};
use crate::trusted::Trusted;

/// What is left to do until a run of the default loop can begin, one step a line, in their order. `run` is the command.
pub fn steps(tree: &WorkTree, settings: &Settings, run: &str, host: Host<'_>) -> Vec<String> {
    let (root, environment) = (tree.root(), host.environment);
    let hint = |missing: Missing| missing.hint;
    let merge = tree
        .under_way()
        .map(|what| format!("finish the {what} that is in progress (git status)"));
    let key = preflight::key(settings, &Keys::find(environment, root))
        .err()
        .map(hint);
    let cannot_start = preflight::build_command(root, &settings.build_command(), environment)
        .err()
        .map(hint);
    let build = format!(
        "make sure that ./{BUILD} passes if and only if the project is correct: code-commit check"
    );
    let git = Trusted::of(tree, environment).git(tree.top()).ok();
    let status = git.and_then(|git| tree.status(&git).ok());
    let is_clean = status.is_some_and(|status| status.dirty.is_empty())
        && tree
            .index()
            .is_ok_and(|index| index.iter().next().is_some());
    let commit = (!is_clean).then(|| "git add and commit the project's files".to_owned());
    let query = preflight::input(root, QUERY, "")
        .err()
        .map(|_| format!("describe the change in {QUERY}"));
    let run = format!("code-commit rollup && {run}");
    [
        merge,
        key,
        cannot_start,
        Some(build),
        commit,
        query,
        Some(run),
    ]
    .into_iter()
    .flatten()
    .collect()
}
