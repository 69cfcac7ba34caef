//! The project's layers over the caches of tools: what its builds have fetched.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use code_commit_dir::Folder;
use code_commit_report::{Output, phrases};
use code_commit_runner::{Backend, Confinement, works};
use code_commit_settings::Settings;

use crate::exit::Failure;

/// Folder in the state folder.
const CACHES: &str = "caches";

/// Lets commands write to the caches of tools, which goes to the layers of this project. Where the system allows no
/// layers, the caches stay as they are, and whoever opens the network hears why nothing new will be in them.
///
/// The caller holds the project's lock.
pub(crate) fn in_layers(
    mut confinement: Confinement,
    state: &Path,
    settings: &Settings,
    output: &Output,
) -> Result<Confinement, Failure> {
    if confinement.backend == Backend::Off {
        return Ok(confinement);
    }
    confinement.access.memory = Some(state.to_owned());
    if !confinement.backend.has_views() {
        say_if_missing(confinement.backend, settings, output);
        return Ok(confinement);
    }
    confinement.access.caches = Some(layers(state, settings, output)?);
    if let Err(why) = works(&confinement) {
        say_missing(&why, settings, output);
        confinement.access.caches = None;
    }
    Ok(confinement)
}

/// Tells whoever opens the network that builds keep nothing of what they fetch, in a sandbox without layers.
pub(crate) fn say_if_missing(backend: Backend, settings: &Settings, output: &Output) {
    if !backend.has_views() {
        say_missing(
            &format!("the sandbox {backend} has no layers over them"),
            settings,
            output,
        );
    }
}

fn say_missing(why: &str, settings: &Settings, output: &Output) {
    if settings.network() || !settings.sandbox.hosts.is_empty() {
        output.warn(&format!(
            "builds cannot add to the caches of tools here: {why}"
        ));
    }
}

/// The folder of the layers, which are removed if they are larger than allowed.
pub(crate) fn layers(
    state: &Path,
    settings: &Settings,
    output: &Output,
) -> Result<PathBuf, Failure> {
    let (bytes, most) = (size(state), settings.cache_limit());
    if bytes > most {
        remove(state).map_err(|error| failed(state, &error))?;
        let (bytes, most) = (phrases::bytes(bytes), phrases::bytes(most));
        output.warn(&format!(
            "removed what builds had written to the caches of tools: {bytes}, more than `[sandbox] cache_limit`, {most}"
        ));
    }
    Ok(folder(state))
}

/// How much builds have written to caches.
pub(crate) fn size(state: &Path) -> u64 {
    size_below(&folder(state))
}

/// Removes all of it.
pub(crate) fn remove(state: &Path) -> io::Result<()> {
    remove_layers(state, CACHES)
}

/// Removes a folder of layers in the state folder. The kernel and builds leave folders in them that even their owner
/// may not enter.
pub(crate) fn remove_layers(state: &Path, name: &str) -> io::Result<()> {
    code_commit_dir::reach::remove(
        &Folder::open(state)?.as_fd().try_clone_to_owned()?,
        name.as_ref(),
    )
}

pub(crate) fn failed(state: &Path, error: &io::Error) -> Failure {
    let folder = folder(state);
    Failure::refused(
        anyhow::anyhow!("cannot remove {}: {error}", folder.display()),
        "remove it by hand",
    )
}

fn folder(state: &Path) -> PathBuf {
    state.join(CACHES)
}

/// The size of all files below; follows no symlink. Unreadable files count as empty.
pub(crate) fn size_below(folder: &Path) -> u64 {
    let entries = code_commit_dir::list(folder)
        .into_iter()
        .flatten()
        .flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    });
    sizes.sum()
}
