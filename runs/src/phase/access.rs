//! What each role can see and change (S3 §Information Boundaries).

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use names::By;
use names::ours::{ABL, AGENT_CONFIG, PHASE_CONFIG, STATE};
use repo::WorkTree;
use report::Output;
use runner::{Access, Env, Mode, Probed, probe};
use settings::Sandbox;
use settings::keys::DOT_ENV;

use crate::exit::Failure;
use crate::phase::project::SPECS;
use crate::sandbox;

/// What no role may see besides the other role's folder, relative to the root: secrets, the harness's own
/// files, and the prompts of both.
pub(super) const HIDDEN: [&str; 8] =
    [DOT_ENV, AGENT_CONFIG, "prompts", STATE, ".abl/logs", ".abl/prompts", ".abl/state.json", PHASE_CONFIG];

/// The `.git` of every repository in a role's folder that is neither hidden from the role nor in the other's
/// folder, relative to the role's folder.
pub(super) fn dot_gits(root: &Path, own: &Path, other: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut inside = WorkTree::at(own)
        .map_err(anyhow::Error::from)
        .and_then(|tree| Ok(sandbox::dot_gits(&tree)?))
        .map_err(|error| Failure::refused(error, format!("run git status in {}", own.display())))?;
    inside.retain(|path| !hidden(root, other).any(|hidden| own.join(path).starts_with(hidden)));
    Ok(inside)
}

fn hidden(root: &Path, other: &Path) -> impl Iterator<Item = PathBuf> {
    HIDDEN.iter().map(|name| root.join(name)).chain([other.to_owned(), root.join(".git")])
}

/// The access of one role, whose folder contains these `.git`. The same for every sandbox.
pub(super) fn around(
    root: &Path,
    (own, inside): (&Path, &[PathBuf]),
    other: &Path,
    visible: &[PathBuf],
    env: &Env,
) -> Access {
    let hidden = hidden(root, other);
    Access {
        // A role may read its own repository, but the harness commits. All of `.abl` is read-only: if only
        // the specs were, a role could replace `.abl`, and the next run would trust its commands.
        read_only: [own.join(".git"), root.join(ABL)]
            .into_iter()
            .filter(|path| path.starts_with(own))
            .chain(sandbox::held_dot_gits(own, inside))
            .collect(),
        pinned: between(own, other).into_iter().chain(sandbox::ways(own, inside)).collect(),
        masked: hidden.filter(|path| path.starts_with(own) && path != &own.join(".git")).collect(),
        readable: visible.iter().cloned().chain([root.join(SPECS)]).collect(),
        // The agent has to reach its service.
        network: true,
        // Folders of the project on PATH are either the role's own already, or not for it.
        path: Access::new(own, env).path.into_iter().filter(|folder| !folder.starts_with(root)).collect(),
        ..Access::new(own, env)
    }
}

/// The folders between one folder and another below it. Moving one of them would later expose what is below.
fn between(upper: &Path, lower: &Path) -> Vec<PathBuf> {
    let above = lower.ancestors().skip(1).take_while(|way| way.starts_with(upper) && *way != upper);
    let mut between: Vec<PathBuf> = above.map(Path::to_owned).collect();
    between.reverse();
    between
}

/// Docker if available, otherwise namespaces or bubblewrap, otherwise nothing runs. Not Landlock: a role could neither
/// create files at the top of its folder nor call `abl-cmd`.
pub(super) fn choose(
    sandbox: Sandbox,
    docker_host: Option<&std::ffi::OsStr>,
    output: &Output,
) -> Result<Probed, Failure> {
    let mode = match sandbox {
        Sandbox::Auto => match probe(Mode::Docker, docker_host) {
            Ok(mut probed) => {
                "a Docker container for each role".clone_into(&mut probed.why);
                return Ok(said(probed, output));
            }
            Err(_) if probe(Mode::Namespaces, None).is_ok() => Mode::Namespaces,
            Err(_) => Mode::Bwrap,
        },
        Sandbox::Namespaces => Mode::Namespaces,
        Sandbox::Bwrap => Mode::Bwrap,
        Sandbox::Landlock => {
            let why =
                anyhow!("behind Landlock a role could make no new file in its folder, and not call abl-cmd");
            return Err(Failure::refused(why, "use --sandbox namespaces or --sandbox docker"));
        }
        Sandbox::Docker => Mode::Docker,
        Sandbox::Off => Mode::Off,
    };
    let mut probed = probe(mode, docker_host).map_err(|reason| {
        sandbox::no_sandbox(reason, "--sandbox off lets each role see the other's folder")
    })?;
    if sandbox == Sandbox::Auto {
        probed.why = format!("{} around each role (no Docker daemon answers)", probed.rung.parts());
    }
    if mode == Mode::Off {
        output.warn("there is no sandbox: each role can see the other's folder, its history, and everything else that you can");
    }
    Ok(said(probed, output))
}

fn said(probed: Probed, output: &Output) -> Probed {
    output.note(&format!("sandbox: {}", probed.why));
    probed
}

/// Folders that neither role works on, left out of lists.
pub(super) fn skipped() -> Vec<String> {
    names::left_out(By::Phase).map(str::to_owned).collect()
}
