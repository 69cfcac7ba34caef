//! `code-commit check --order`: the commands that decide about an order, on the tree as it is.

use std::ffi::OsString;
use std::path::Path;

use anyhow::anyhow;
use code_commit_guard::Guard;
use code_commit_perform::{BuildCommand, Examine};
use code_commit_repo::WorkTree;
use code_commit_settings::Settings;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::order::{access, files, preflight};
use crate::sandbox;

/// The verification and the acceptance commands of the order in `file`, each with its command line, in the
/// sandbox of orders.
pub(crate) fn commands(
    file: &Path,
    tree: &WorkTree,
    guard: &Guard,
    settings: &Settings,
    host: Host<'_>,
) -> Result<Vec<(String, BuildCommand)>, Failure> {
    let read = preflight::read(file)?;
    preflight::verification(tree.root())?;
    let all = files::deciding(&read.order, tree.root());
    for (_, argv) in &all {
        let missing = argv
            .first()
            .and_then(|name| files::missing(name, tree.root(), host.environment));
        if let Some(missing) = missing {
            let help = "install it, or add its folder to PATH";
            return Err(Failure::new(Exit::Unfit, anyhow!(missing)).help(help));
        }
    }
    let sealed = access::sealed(tree, guard, settings)?;
    let confinement = access::confine(tree, &sealed, settings, host)?;
    let command = |argv: Vec<String>| BuildCommand {
        argv: argv.into_iter().map(OsString::from).collect(),
        env: sandbox::build_env(settings, host.environment),
        timeout: Some(settings.build_timeout.value),
        limits: sandbox::limits(settings),
        confinement: confinement.clone(),
        sealed: sealed.clone(),
        examine: Examine::Any,
    };
    Ok(all
        .into_iter()
        .map(|(line, argv)| (line, command(argv)))
        .collect())
}
