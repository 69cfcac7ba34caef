//! What the commands of an order can see and touch.

use std::path::PathBuf;

use guard::{Binds, Policy};
use repo::{Git, WorkTree};
use runner::{Confinement, Walls};

use crate::commands::order::perform::Setting;
use crate::commands::wall;
use crate::config::{PROJECT_FILE, Settings};
use crate::exit::Failure;
use crate::keys;

/// What decides whether an order is fulfilled must not be changed by the commands that look: the verification script, the configuration, and
/// every file that git tracks and the configuration protects (DESIGN: `protect` binds all loops). Relative to the root.
pub fn sealed(tree: &WorkTree, settings: &Settings) -> Result<Vec<PathBuf>, Failure> {
    let mut sealed: Vec<PathBuf> = [engine::VERIFY_SCRIPT, PROJECT_FILE].map(PathBuf::from).into();
    if !settings.protect.is_empty() {
        let protected =
            settings.protect.iter().fold(Policy::new(), |policy, list| policy.protect(&list.value));
        let tracked = tree.tracked().map_err(|error| Failure::refused(error, "see what git status says"))?;
        let protected = tracked.into_iter().filter(|file| protected.refuses(&file.path).is_some());
        sealed.extend(protected.map(|file| PathBuf::from(file.path)));
    }
    Ok(sealed)
}

/// The commands see the tree, and of git's own data and of what is sealed no more than they can read.
pub fn confine(
    tree: &WorkTree,
    git: &Git,
    sealed: &[PathBuf],
    setting: &Setting<'_>,
) -> Result<Confinement, Failure> {
    let Setting { settings, environment, output, .. } = setting;
    let root = tree.root();
    let common = git.common_dir().map_err(|error| Failure::refused(error, "see what git status says"))?;
    let elsewhere = [tree.git_dir().to_owned(), common].into_iter().filter(|path| !path.starts_with(root));
    let readable = settings.readable.iter().map(|place| place.value.clone());
    let own = wall::read_only(Binds::Always).map(|name| root.join(name));
    let read_only = own.chain(sealed.iter().map(|name| root.join(name)));
    let walls = Walls {
        read_only: read_only.filter(|path| path.exists()).collect(),
        masked: keys::hidden(root),
        writable: settings.writable.iter().map(|place| place.value.clone()).collect(),
        readable: readable.chain(elsewhere).collect(),
        network: settings.network.value,
        ..Walls::new(root, &wall::build_env(settings, environment))
    };
    let probed =
        runner::probe(wall::mode(settings.sandbox.value), environment.docker_host()).map_err(|reason| {
            Failure::refused(reason, "--sandbox off runs the commands with all of your rights")
        })?;
    output.note(&format!("sandbox: {}", probed.why));
    Ok(probed.confine(walls))
}
