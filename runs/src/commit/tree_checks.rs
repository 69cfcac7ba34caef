//! Checks of the whole tree before the model is called.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_guard::Guard;
use code_commit_report::{Output, phrases, printable_name};
use code_commit_settings::keys;

use super::request::{Request, refused};
use super::run::guard;
use crate::commit::plan::{Plan, Which};
use crate::commit::rollup::Rollup;
use crate::exit::Failure;
use crate::preflight;
use crate::project::Project;
use crate::trusted::{TreeStatus, cannot_read};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{Binds, Writer};

/// Uncommitted files named in a message.
const NAMED_FILES: usize = 5;

/// The two checks of the whole tree: uncommitted changes and ignore rules. In a large tree both run in
/// parallel. `theirs` is a roll-up that was not made for this run. Gives what leads git into other repositories, too.
pub(super) fn look_at(
    project: &Project<'_>,
    plan: &Plan,
    theirs: Option<&Rollup<'_>>,
    args: &Request,
) -> Result<(Guard, Vec<PathBuf>), Failure> {
    let tree = project.tree()?;
    let look = || clean_enough(project, plan, theirs, args);
    if tree.is_small() {
        let dot_gits = look()?;
        return Ok((guard(project, plan)?, dot_gits));
    }
    let (around, policy) = (project.trusted.surroundings()?, plan.policy(tree));
    std::thread::scope(|scope| {
        let guard = scope.spawn(|| around.guard(policy).map_err(cannot_read));
        let dot_gits = look();
        let guard = guard
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let dot_gits = dot_gits?;
        Ok((guard?, dot_gits))
    })
}

/// Names uncommitted changes; refuses the run only if `--require-clean` is set. Gives what leads git into other
/// repositories.
fn clean_enough(
    project: &Project<'_>,
    plan: &Plan,
    theirs: Option<&Rollup<'_>>,
    args: &Request,
) -> Result<Vec<PathBuf>, Failure> {
    let (tree, output) = (project.tree()?, project.host.output);
    let index = tree.index()?;
    let status = match project.trusted.status(&plan.settings) {
        Err(failure) if args.require_clean => return Err(failure),
        Err(failure) => {
            output.warn(&format!(
                "cannot tell what is not committed: {:#}",
                failure.error
            ));
            TreeStatus::default()
        }
        Ok(status) => status,
    };
    let tracked = index.iter().map(|one| one.path);
    let tracked = tracked.filter(|path| keys::is_place(path));
    let (mut dirty, tracked) = (
        shown(status.dirty.iter().map(PathBuf::as_path)),
        shown(tracked),
    );
    // The run hides these from git.
    dirty.retain(|path| !Path::new(path).starts_with(AGENT_CONFIG));
    keys_stay_out(plan.task.which, &dirty, &tracked, output)?;
    let binds = plan.task.which.binds();
    dirty.retain(|path| !is_own(Path::new(path), binds));
    if args.require_clean {
        // No model may write these, so the user's uncommitted changes in them are safe.
        let policy = plan.policy(tree);
        dirty.retain(|path| policy.protects(path).is_none());
    } else {
        say_installed(&mut dirty, output);
    }
    if !dirty.is_empty() {
        let text = format!("not committed: {}", phrases::first(&dirty, NAMED_FILES));
        if args.require_clean {
            return Err(Failure::refused(
                anyhow!(text),
                "commit or stash them, or drop `--require-clean`",
            ));
        }
        output.warn(&format!("{text}; code-commit undo brings them back"));
    }
    if let Some(older) =
        theirs.and_then(|theirs| theirs.is_older(tree.root(), &index, &status.dirty))
    {
        output.warn(&older);
    }
    Ok(status.dot_gits)
}

/// Folders of installed packages, which nobody commits.
const INSTALLED: [&str; 3] = [".venv", "node_modules", "venv"];

/// Replaces the files of installed packages by one warning for each folder, with the rule that makes git ignore it:
/// a list of a thousand such files would hide the one that a person forgot.
fn say_installed(dirty: &mut Vec<String>, output: &Output) {
    let mut counts = BTreeMap::new();
    dirty.retain(|path| {
        let folder = installed_folder(path);
        folder
            .iter()
            .for_each(|folder| *counts.entry((*folder).to_owned()).or_insert(0_u64) += 1);
        folder.is_none()
    });
    for (folder, count) in counts {
        let (folder, count) = (printable_name(&folder), phrases::count(count, "file"));
        output.warn(&format!(
            "{folder}/ ({count}) is not ignored by git: add `/{folder}/` to .gitignore"
        ));
    }
}

/// The outermost such folder that a file is in.
fn installed_folder(path: &str) -> Option<&str> {
    let ends = path.match_indices('/').map(|(end, _)| end);
    let folders = ends.filter_map(|end| path.get(..end));
    folders
        .into_iter()
        .find(|folder| INSTALLED.contains(&folder.rsplit('/').next().unwrap_or_default()))
}

fn shown<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<String> {
    paths.map(|path| path.display().to_string()).collect()
}

/// Keeps keys from being committed by accident (S1 §Safety): the default loop refuses tracked files in
/// `agent-config`; S0 has no such rule.
fn keys_stay_out(
    which: Which,
    dirty: &[String],
    tracked: &[String],
    output: &Output,
) -> Result<(), Failure> {
    if which == Which::Commit {
        preflight::agent_config_is_untracked(tracked).map_err(|missing| refused(vec![missing]))?;
    }
    for path in dirty
        .iter()
        .filter(|path| keys::is_key_file(path) && !tracked.contains(path))
    {
        let path = printable_name(path);
        output.warn(&format!(
            "{path} is not ignored by git, so a key could be committed: add it to .gitignore"
        ));
    }
    for path in tracked.iter().filter(|path| keys::is_key_file(path)) {
        let path = printable_name(path);
        output.warn(&format!(
            "{path} is tracked by git, whatever .gitignore says: remove it with git rm --cached {path}"
        ));
    }
    Ok(())
}

/// Files that the harness writes into the project are no sign of unfinished work.
fn is_own(path: &Path, binds: Binds) -> bool {
    let mut own =
        code_commit_names::protected(binds).filter(|name| name.writer() == Some(Writer::Harness));
    own.any(|name| path.starts_with(name.at_root()))
}
