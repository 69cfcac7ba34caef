//! What each role can see and change (S3 §Information Boundaries).

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_names::By;
use code_commit_names::ours::ABL;
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_runner::{Access, AllowedHost, Env, Mode, Probed, probe};
use code_commit_settings::Sandbox;

use crate::exit::Failure;
use crate::phase::folders::{HIDDEN, SPECS};
use crate::sandbox;

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
    HIDDEN
        .iter()
        .map(|name| root.join(name))
        .chain([other.to_owned(), root.join(".git")])
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
        pinned: between(own, other)
            .into_iter()
            .chain(sandbox::ways(own, inside))
            .collect(),
        masked: hidden
            .filter(|path| path.starts_with(own) && path != &own.join(".git"))
            .collect(),
        readable: visible.iter().cloned().chain([root.join(SPECS)]).collect(),
        // The agent has to reach its service.
        network: true,
        // Folders of the project on PATH are either the role's own already, or not for it.
        path: Access::new(own, env)
            .path
            .into_iter()
            .filter(|folder| !folder.starts_with(root))
            .collect(),
        ..Access::new(own, env)
    }
}

/// The access of the configuration's commands: the source, which they may change, and the rest of the project to
/// read. The tests, prompts, keys and the harness's own files are absent unless `granted` names them: what runs
/// here is what the builder wrote, and must not change what it is judged by. The network is their own, unless opened.
pub(super) fn of_commands(around: Access, root: &Path, tests: &Path, granted: &Granted) -> Access {
    let is_granted = |path: &Path| granted.all().any(|open| open == path);
    let is_hidden =
        |path: &Path| hidden(root, tests).any(|hidden| path == hidden) && !is_granted(path);
    let leads_to = |path: &Path| {
        let mut others = hidden(root, tests)
            .chain(granted.all().cloned())
            .chain([around.tree.clone()]);
        others.any(|other| other.starts_with(path))
    };
    let mut beside = Vec::new();
    if around.tree != root {
        let is_its_own = |path: &Path| is_hidden(path) || is_granted(path) || path == around.tree;
        shown(root, &is_its_own, &leads_to, &mut beside);
    }
    Access {
        masked: around
            .masked
            .into_iter()
            .filter(|path| !is_granted(path))
            .collect(),
        readable: around
            .readable
            .into_iter()
            .chain(beside)
            .chain(granted.readable.clone())
            .collect(),
        writable: around
            .writable
            .into_iter()
            .chain(granted.writable.clone())
            .collect(),
        network: granted.network,
        hosts: granted.hosts.clone(),
        ..around
    }
}

/// What the user's configuration opens to commands: by name, but for the network.
#[derive(Debug, Default)]
pub(super) struct Granted {
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
    pub(super) hosts: Vec<AllowedHost>,
}

impl Granted {
    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.readable.iter().chain(&self.writable)
    }
}

/// As many mounts as a sandbox can take besides its own.
const MOST_SHOWN: usize = 1000;

/// The files and folders of a folder, each whole unless something in it is hidden or has other rights. No links:
/// one may point to what is hidden.
fn shown(
    folder: &Path,
    is_its_own: &dyn Fn(&Path) -> bool,
    leads_to: &dyn Fn(&Path) -> bool,
    found: &mut Vec<PathBuf>,
) {
    let entries = code_commit_dir::list(folder)
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    for path in paths {
        if path.is_symlink() || is_its_own(&path) || found.len() >= MOST_SHOWN {
            continue;
        }
        if leads_to(&path) {
            shown(&path, is_its_own, leads_to, found);
        } else {
            found.push(path);
        }
    }
}

/// The folders between one folder and another below it. Moving one of them would later expose what is below.
fn between(upper: &Path, lower: &Path) -> Vec<PathBuf> {
    let above = lower
        .ancestors()
        .skip(1)
        .take_while(|way| way.starts_with(upper) && *way != upper);
    let mut between: Vec<PathBuf> = above.map(Path::to_owned).collect();
    between.reverse();
    between
}

/// Docker if available, otherwise namespaces, otherwise nothing runs. Not Landlock: a role could neither
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
            Err(_) => Mode::Namespaces,
        },
        Sandbox::Namespaces => Mode::Namespaces,
        Sandbox::Landlock => {
            let why = anyhow!(
                "behind Landlock a role could make no new file in its folder, and not call abl-cmd"
            );
            return Err(Failure::refused(
                why,
                "use --sandbox namespaces or --sandbox docker",
            ));
        }
        Sandbox::Docker => Mode::Docker,
        Sandbox::Off => Mode::Off,
    };
    let mut probed = probe(mode, docker_host).map_err(|reason| {
        sandbox::no_sandbox(
            reason,
            "--sandbox off lets each role see the other's folder",
        )
    })?;
    if sandbox == Sandbox::Auto {
        probed.why = format!(
            "{} around each role (no Docker daemon answers)",
            probed.rung.parts()
        );
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
    code_commit_names::left_out(By::Phase)
        .map(str::to_owned)
        .collect()
}
