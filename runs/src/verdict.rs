//! What the end of a run holds for: the tree, what was asked for, and what decided.

use std::path::{Path, PathBuf};

use code_commit_dir::Interrupt;
use code_commit_engine::HoldsFor;
use code_commit_logging::sha256_hex;
use code_commit_loop_order::{VERIFY_SCRIPT, WorkOrder};
use code_commit_settings::Settings;
use serde::Serialize;

use crate::commit::plan::Plan;
use crate::deciders;
use crate::trusted::Trusted;

/// Where hashes of a large tree's files are kept, in the harness's state.
const HASHES: &str = "hashes";
/// Decides on files up to this size; the hash of a larger one is that of its length.
const MOST: u64 = 64 << 20;

/// The end of a commit loop.
pub(crate) fn of_commit(trusted: &Trusted, plan: &Plan, interrupt: Interrupt<'_>) -> HoldsFor {
    let task = &plan.task;
    let asked: Vec<&str> = task
        .system
        .iter()
        .chain([&task.query])
        .map(|excerpt| &*excerpt.text)
        .collect();
    HoldsFor {
        tree: tree(trusted, &plan.own_files(), interrupt),
        specification: Some(sha256_hex(asked.join("\0").as_bytes())),
        decider: Some(of_build(trusted, &plan.settings)),
    }
}

/// The build command, and the content of every file of the project that it starts or names.
fn of_build(trusted: &Trusted, settings: &Settings) -> String {
    let root = trusted.root();
    let deciders = deciders::find(root, trusted.tree(), settings)
        .into_iter()
        .map(|decider| decider.path);
    let named = [code_commit_names::ours::BUILD.to_owned()]
        .into_iter()
        .chain(deciders);
    decider(
        root,
        &settings.build_command().argv,
        named.chain(deciders::graders(root, settings)),
    )
}

/// The end of a work order, whose run is in the folder `run`.
pub(crate) fn of_order(
    trusted: &Trusted,
    run: &Path,
    order: &WorkOrder,
    interrupt: Interrupt<'_>,
) -> HoldsFor {
    let root = trusted.root();
    let own: Vec<String> = out_in_tree(root, run)
        .map(|out| out.display().to_string())
        .into_iter()
        .collect();
    let words: Vec<String> = order
        .acceptance_commands
        .iter()
        .flat_map(|command| command.argv.iter().cloned())
        .collect();
    let files = words.iter().cloned().chain([VERIFY_SCRIPT.to_owned()]);
    HoldsFor {
        tree: tree(trusted, &own, interrupt),
        specification: Some(order.hash.clone()),
        decider: Some(decider(root, &words, files)),
    }
}

/// The `--out` folder of a run, relative to the root if it is in the tree.
pub(crate) fn out_in_tree(root: &Path, run: &Path) -> Option<PathBuf> {
    Some(run.parent()?.strip_prefix(root).ok()?.to_owned())
}

/// `words`, and the content of these files, relative to the root.
pub(crate) fn decider(
    root: &Path,
    words: &impl Serialize,
    files: impl Iterator<Item = String>,
) -> String {
    let mut files: Vec<String> = files.collect();
    files.sort_unstable();
    files.dedup();
    let content = |file: &String| {
        let read = code_commit_dir::read(&root.join(file), MOST, code_commit_dir::Links::Followed)
            .ok()
            .flatten();
        read.map(|bytes| format!("{} {file}\0", sha256_hex(&bytes)))
    };
    let files: String = files.iter().filter_map(content).collect();
    sha256_hex(
        format!(
            "{}\0{files}",
            serde_json::to_string(words).unwrap_or_default()
        )
        .as_bytes(),
    )
}

/// `None` if it cannot be read: then nothing is known of what the verdict holds for.
pub(crate) fn tree(trusted: &Trusted, own: &[String], interrupt: Interrupt<'_>) -> Option<String> {
    let state = trusted.tree().and_then(|tree| tree.state_dir().ok());
    let hashes = state.map(|state| state.join(HASHES));
    let around = trusted.surroundings().ok();
    code_commit_perform::identity(trusted.root(), around, own, hashes.as_deref(), interrupt)
        .ok()
        .flatten()
}
