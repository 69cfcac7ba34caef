//! Caches of tools: read from the user's, written to a layer of the project's own.
//!
//! Each is an overlay over the user's folder, mounted where nothing of the host is shown, and bound to its place
//! in the sandbox from there: the user's folder may not exist, so nothing could be mounted over it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::access::{Access, Backend, CARGO, Confinement};
use super::mount::Overlay;

mod durability;

/// Where the overlays are mounted at first; no sandbox shows anything of it.
pub(super) const SITE: &str = "/sys";
/// What is below the layer of a cache that the user does not have.
pub(super) const EMPTY: &str = "/sys/empty";

/// A cache, at its place in the sandbox.
pub(super) struct Cache {
    pub(super) place: PathBuf,
    pub(super) overlay: Overlay,
}

/// The caches with layers, if [`Access::caches`] says where. None in the tree, and none around it. Every layer costs
/// time, so there is none where a command could neither read anything nor fetch it.
pub(super) fn all(access: &Access) -> Vec<Cache> {
    let Some(layers) = &access.caches else {
        return Vec::new();
    };
    let is_apart =
        |place: &Path| !place.starts_with(&access.tree) && !access.tree.starts_with(place);
    let can_fetch = access.network || !access.hosts.is_empty();
    let cache = |(name, place): (&Path, PathBuf)| {
        // Most caches do not exist, and resolving a path costs a system call for each folder on the way.
        let real = || place.canonicalize().ok().filter(|real| is_apart(real));
        let lower = place.is_dir().then(real).flatten();
        let [upper, work] = ["upper", "work"].map(|part| layers.join(part).join(name));
        let is_filled =
            || code_commit_dir::list(&upper).is_ok_and(|mut entries| entries.next().is_some());
        let is_of_use = can_fetch || lower.is_some() || is_filled();
        let lower = lower.unwrap_or_else(|| EMPTY.into());
        let overlay = Overlay {
            place: Path::new(SITE).join(name),
            lower,
            upper,
            work,
        };
        is_of_use.then_some(Cache { place, overlay })
    };
    named(access)
        .filter(|(_, place)| is_apart(place))
        .filter_map(cache)
        .collect()
}

/// The caches by their usual names below the home directory, with their places.
fn named(access: &Access) -> impl Iterator<Item = (&'static Path, PathBuf)> {
    let home = access.hidden_home();
    code_commit_names::caches()
        .map(Path::new)
        .filter_map(move |name| {
            let place = match (name.strip_prefix(CARGO), &access.cargo_home) {
                (Ok(part), Some(cargo_home)) => cargo_home.join(part),
                _ => home.as_ref()?.join(name),
            };
            Some((name, place))
        })
}

pub(super) fn make_layers(access: &Access) -> Result<(), String> {
    let overlays = all(access).into_iter().map(|cache| cache.overlay);
    let mut folders = overlays.flat_map(|overlay| [overlay.upper, overlay.work]);
    folders.try_for_each(|folder| {
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))
    })
}

/// Waits until no other command uses the layers, and makes sure that they are whole.
pub(crate) fn lock(confinement: &Confinement) -> io::Result<Option<durability::Held>> {
    caches_of(confinement).map(durability::hold).transpose()
}

fn caches_of(confinement: &Confinement) -> Option<&Path> {
    confinement
        .access
        .caches
        .as_deref()
        .filter(|_| confinement.backend.has_views())
}

impl Backend {
    /// The access of a command on this backend: without layers, if there can be none.
    pub(super) fn limited(self, access: &Access) -> Access {
        let caches = access.caches.clone().filter(|_| self.has_views());
        Access {
            caches,
            ..access.clone()
        }
    }
}
