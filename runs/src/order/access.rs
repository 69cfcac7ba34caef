//! What an order's commands can see and change.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use code_commit_guard::Guard;
use code_commit_loop_order::WorkOrder;
use code_commit_names::Binds;
use code_commit_names::ours::PROJECT_FILE;
use code_commit_perform::{BuildCommand, CommandSettings};
use code_commit_runner::{Access, Confinement};
use code_commit_settings::{Settings, keys};

use crate::exit::Failure;
use crate::order::files;
use crate::project::Project;
use crate::sandbox;

/// What decides whether an order is fulfilled must not be changed by the commands that check it: the
/// verification script, the configuration, every file that the configuration protects (DESIGN: `protect`
/// binds all loops), and what points git to other repositories. Relative to the root.
pub(super) fn sealed(
    project: &Project<'_>,
    guard: &Guard,
    dot_gits: &[PathBuf],
    settings: &Settings,
) -> Result<Vec<PathBuf>, Failure> {
    let tree = project.tree()?;
    let mut sealed: Vec<PathBuf> = [code_commit_loop_order::VERIFY_SCRIPT, PROJECT_FILE]
        .map(PathBuf::from)
        .into();
    sealed.extend_from_slice(tree.named_by_config());
    sealed.extend(sandbox::sealed_dot_gits(&project.root, dot_gits, settings));
    sealed.extend(sandbox::protected(tree, guard, settings)?);
    Ok(sealed)
}

/// The commands see the tree; git's data and sealed files are read-only for them.
pub(super) fn confine(
    project: &Project<'_>,
    sealed: &[PathBuf],
    dot_gits: &[PathBuf],
    settings: &Settings,
) -> Result<Confinement, Failure> {
    let (tree, host) = (project.tree()?, project.host);
    let root = tree.root();
    let folders = sandbox::git_folders(root, dot_gits);
    let access = |backend| Access {
        read_only: sandbox::there(root, Binds::Always)
            .chain(sandbox::held(root, &folders, backend))
            .chain(sandbox::held(root, sealed, backend))
            .collect(),
        pinned: sandbox::ways(root, sealed.iter().chain(&folders)),
        masked: keys::hidden(root)
            .into_iter()
            .chain(sandbox::records(tree))
            .collect(),
        writable: settings.writable().into_iter().collect(),
        readable: settings
            .readable()
            .into_iter()
            .chain(tree.git_elsewhere())
            .collect(),
        network: settings.network(),
        hosts: sandbox::hosts(settings),
        ..Access::new(root, &sandbox::build_env(settings, host.environment))
    };
    sandbox::choose(tree, settings, host, access)?.map_err(|reason| {
        sandbox::no_sandbox(
            reason,
            "--sandbox off runs the commands with all of your rights",
        )
    })
}

/// The verification and the acceptance commands of an order, each with its command line, in the sandbox of orders.
pub(crate) fn commands_to_check(
    order: &WorkOrder,
    timeout: Duration,
    (project, guard): (&Project<'_>, &Guard),
    settings: &Settings,
) -> Result<Vec<(String, BuildCommand)>, Failure> {
    let dot_gits = project.trusted.status(settings)?.dot_gits;
    let sealed = sealed(project, guard, &dot_gits, settings)?;
    let commands = CommandSettings {
        env: sandbox::build_env(settings, project.host.environment),
        timeout: Some(timeout),
        limits: sandbox::limits(settings),
        confinement: confine(project, &sealed, &dot_gits, settings)?,
        sealed,
    };
    let command = |argv: Vec<String>| BuildCommand {
        argv: argv.into_iter().map(OsString::from).collect(),
        settings: commands.clone(),
    };
    let all = files::deciding(order, &project.root);
    Ok(all
        .into_iter()
        .map(|(line, argv)| (line, command(argv)))
        .collect())
}
