//! What an order's commands can see and change.

use std::path::PathBuf;

use code_commit_guard::Guard;
use code_commit_names::Binds;
use code_commit_names::ours::PROJECT_FILE;
use code_commit_repo::WorkTree;
use code_commit_runner::{Access, Confinement};
use code_commit_settings::{Settings, keys};

use crate::exit::Failure;
use crate::host::Host;
use crate::sandbox;

/// What decides whether an order is fulfilled must not be changed by the commands that check it: the
/// verification script, the configuration, every file that the configuration protects (DESIGN: `protect`
/// binds all loops), and what points git to other repositories. Relative to the root.
pub(super) fn sealed(
    tree: &WorkTree,
    guard: &Guard,
    settings: &Settings,
) -> Result<Vec<PathBuf>, Failure> {
    let mut sealed: Vec<PathBuf> = [code_commit_loop_order::VERIFY_SCRIPT, PROJECT_FILE]
        .map(PathBuf::from)
        .into();
    sealed.extend(tree.named_by_config());
    sealed.extend(sandbox::sealed_dot_gits(tree, settings.sandbox.value)?);
    sealed.extend(sandbox::protected(tree, guard, settings)?);
    Ok(sealed)
}

/// The commands see the tree; git's data and sealed files are read-only for them.
pub(super) fn confine(
    tree: &WorkTree,
    sealed: &[PathBuf],
    settings: &Settings,
    host: Host<'_>,
) -> Result<Confinement, Failure> {
    let environment = host.environment;
    let root = tree.root();
    let folders = sandbox::git_folders(tree);
    let readable = settings.readable.iter().map(|place| place.value.clone());
    let access = |rung| Access {
        read_only: sandbox::there(root, Binds::Always)
            .chain(sandbox::held(root, &folders, rung))
            .chain(sandbox::held(root, sealed, rung))
            .collect(),
        pinned: sandbox::ways(root, sealed.iter().chain(&folders)),
        masked: keys::hidden(root)
            .into_iter()
            .chain(sandbox::records(tree))
            .collect(),
        writable: settings
            .writable
            .iter()
            .map(|place| place.value.clone())
            .collect(),
        readable: readable.clone().chain(tree.git_elsewhere()).collect(),
        network: settings.network.value,
        hosts: sandbox::hosts(settings),
        ..Access::new(root, &sandbox::build_env(settings, environment))
    };
    sandbox::choose(tree, settings, host, access)?.map_err(|reason| {
        sandbox::no_sandbox(
            reason,
            "--sandbox off runs the commands with all of your rights",
        )
    })
}
