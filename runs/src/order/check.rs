//! `code-commit order check`: the commands that decide about an order, on the tree as it is.

use std::ffi::OsString;
use std::time::Duration;

use code_commit_guard::Guard;
use code_commit_loop_order::WorkOrder;
use code_commit_perform::BuildCommand;
use code_commit_repo::WorkTree;
use code_commit_settings::Settings;

use crate::exit::Failure;
use crate::host::Host;
use crate::order::{access, files};
use crate::sandbox;

/// The verification and the acceptance commands of an order, each with its command line, in the sandbox of orders.
pub(crate) fn commands(
    order: &WorkOrder,
    timeout: Duration,
    (tree, guard): (&WorkTree, &Guard),
    settings: &Settings,
    host: Host<'_>,
) -> Result<Vec<(String, BuildCommand)>, Failure> {
    let sealed = access::sealed(tree, guard, settings)?;
    let confinement = access::confine(tree, &sealed, settings, host)?;
    let command = |argv: Vec<String>| BuildCommand {
        argv: argv.into_iter().map(OsString::from).collect(),
        env: sandbox::build_env(settings, host.environment),
        timeout: Some(timeout),
        limits: sandbox::limits(settings),
        confinement: confinement.clone(),
        sealed: sealed.clone(),
    };
    let all = files::deciding(order, tree.root());
    Ok(all
        .into_iter()
        .map(|(line, argv)| (line, command(argv)))
        .collect())
}
