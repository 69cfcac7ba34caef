//! The plan of a new run, and what it may not write.

use std::collections::HashSet;
use std::path::PathBuf;

use code_commit_guard::Guard;
use code_commit_loop_commit::{COMMIT_ROUNDS, IMPLEMENT_ROUNDS};
use code_commit_names::{Binds, Writer};
use code_commit_repo::WorkTree;
use code_commit_settings::Settings;

use crate::commit::plan::{Plan, Task};
use crate::deciders;
use crate::estimate::First;
use crate::exit::Failure;
use crate::sandbox;
use crate::site::Site;

/// A run of this task under these settings.
pub fn plan(settings: Settings, tree: &WorkTree, task: Task) -> Result<Plan, Failure> {
    let most = match &task {
        Task::Commit { .. } => COMMIT_ROUNDS,
        Task::Implement { .. } => IMPLEMENT_ROUNDS,
    };
    let head = tree.head()?;
    Ok(Plan {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rounds: settings.rounds(most),
        query_from: None,
        chosen: Vec::new(),
        restore_on_failure: false,
        key: None,
        commit: None,
        parent: None,
        added_line: None,
        sealed: sealed(&settings, tree, task.binds()),
        head,
        task,
        settings,
    })
}

/// The build script and what else no build may write (S1 §Safety), whether it exists or not, whatever the
/// configuration protects.
fn sealed(settings: &Settings, tree: &WorkTree, binds: Binds) -> Vec<PathBuf> {
    let files = code_commit_names::protected(binds)
        .filter(|row| !row.is_folder() && row.writer() != Some(Writer::Build));
    let mut sealed: Vec<PathBuf> = files.map(|row| PathBuf::from(row.at_root())).collect();
    let deciders = deciders::find(tree.root(), Some(tree), settings);
    let deciders = deciders.into_iter().filter(|decider| !decider.is_builds);
    for path in deciders.map(|decider| PathBuf::from(decider.path)) {
        if !sealed.contains(&path) {
            sealed.push(path);
        }
    }
    sealed
}

/// What the first prompt of a plan is made of.
pub(super) fn first(plan: &Plan) -> First<'_> {
    let files = code_commit_prompt::rollup::files(plan.task.codebase());
    First {
        prompt: plan.first_prompt(),
        schema: None,
        files: files.map(|(path, content)| (path, content.len())).collect(),
        remedy: "show the model less, with --budget TOKENS or --exclude PATTERN of code-commit rollup",
    }
}

/// Adds everything that no build may change in this tree.
pub(crate) fn seal(tree: &WorkTree, guard: &Guard, plan: &mut Plan) -> Result<(), Failure> {
    // In this order: a sandbox protects the first of them.
    let protected = sandbox::protected(tree, guard, &plan.settings)?;
    let mut known: HashSet<PathBuf> = plan.sealed.iter().cloned().collect();
    // Git's errors about the tree were already reported.
    let dot_gits = sandbox::sealed_dot_gits(tree, plan.settings.sandbox.value).unwrap_or_default();
    let policy = plan.policy(tree);
    let tracked: HashSet<PathBuf> = tree.tracked_paths()?.into_iter().collect();
    // Ignore rules that git itself ignores are a tool's product, which the tool writes anew.
    let decides = guard
        .protected_anywhere()
        .filter(|path| policy.refuses(path).is_some())
        .map(PathBuf::from)
        .filter(|path| tracked.contains(path) || !guard.ignores(path));
    let more = dot_gits.into_iter().chain(protected).chain(decides);
    plan.sealed
        .extend(more.filter(|path| known.insert(path.clone())));
    Ok(())
}

/// The protected set as the prompt lists it (S1 §Parsing the Response), plus what the configuration adds.
pub fn protected_for_model(settings: &Settings, tree: &WorkTree) -> Vec<String> {
    let names = code_commit_names::protected(Binds::Commit).map(|name| {
        let path = name
            .pattern
            .trim_start_matches("**")
            .trim_start_matches('/');
        match path.strip_suffix('/') {
            Some(folder) => format!("anything in the {folder} folder"),
            None if name.pattern.starts_with('/') => path.to_owned(),
            None => format!("any file named {path}"),
        }
    });
    let general = [
        "anything in a .git folder",
        "anything that .gitignore names",
    ]
    .map(str::to_owned);
    let configured = settings
        .protect
        .iter()
        .flat_map(|list| list.value.iter().cloned());
    let graders = if settings.protect_grader.value {
        deciders::graders(tree.root(), settings)
    } else {
        Vec::new()
    };
    let deciders = deciders::find(tree.root(), Some(tree), settings)
        .into_iter()
        .map(|decider| decider.path);
    names
        .chain(deciders)
        .chain(graders)
        .chain(general)
        .chain(configured)
        .collect()
}

/// The guard for the `.gitignore` files of now and what the plan protects.
pub(crate) fn guard(site: &Site<'_>, plan: &Plan) -> Result<Guard, Failure> {
    site.trusted.guard(plan.policy(site.tree()?))
}
