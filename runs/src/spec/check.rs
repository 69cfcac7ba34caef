//! `code-commit check --spec`: the check command of the specs, on the tree as it is.

use std::ffi::OsString;

use anyhow::anyhow;
use code_commit_perform::BuildCommand;
use code_commit_repo::WorkTree;
use code_commit_runner::probe;
use code_commit_settings::Settings;

use crate::exit::Failure;
use crate::host::Host;
use crate::sandbox;
use crate::spec::workspace::{COMMAND_TIMEOUT, Ground};
use crate::spec::{config, project};

/// The check command with its line, in the sandbox of a run. The agent is not needed.
pub(crate) fn command(
    tree: &WorkTree,
    settings: &Settings,
    host: Host<'_>,
) -> Result<(String, BuildCommand), Failure> {
    let config = config::read(tree.root())?;
    let line = config.check.clone().ok_or_else(|| {
        Failure::refused(
            anyhow!("the specs have no check command"),
            "give one with code-commit spec setup",
        )
    })?;
    let probed = probe(
        sandbox::mode(settings.sandbox.value),
        host.environment.docker_host(),
    )
    .map_err(|reason| {
        sandbox::no_sandbox(reason, "--sandbox off runs it with all of your rights")
    })?;
    let (_, runs) = project::state(tree.root(), Some(tree))?;
    let env = sandbox::build_env(settings, host.environment);
    let ground = Ground {
        root: tree.root(),
        tree: Some(tree),
        config: &config,
        settings,
        runs: &runs,
        dot_gits: &sandbox::dot_gits(tree)?,
        env: env.clone(),
    };
    let command = BuildCommand {
        argv: ["sh", "-c", &line].map(OsString::from).into(),
        env,
        timeout: Some(COMMAND_TIMEOUT),
        limits: sandbox::limits(settings),
        confinement: probed.confine(ground.shell_access()),
        sealed: Vec::new(),
    };
    Ok((line, command))
}
