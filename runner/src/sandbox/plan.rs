//! What is visible in the sandbox, in the order of creation: later entries cover earlier ones.
//! Namespaces and Docker turn the list into mounts; Landlock uses the lists that it is made of.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::iter::once;
use std::path::{Path, PathBuf};

use code_commit_names::Kind;
use code_commit_names::ours::STATE_IN_GIT;

use super::access::{Access, Backend, CARGO, Confinement};
use super::mount::{Mount, Overlay, SYSTEM};
use super::{caches, own_files, settings, sockets, toolchains};
use crate::trusted::Changeable;

/// All entries, in order.
pub(super) fn plan(access: &Access) -> Vec<Mount> {
    let mut plan = of_files(access);
    sockets::cover(access, &mut plan);
    // An earlier entry for the same path would be invisible, and Docker rejects it.
    let mut places = HashSet::new();
    plan.reverse();
    plan.retain(|mount| places.insert(mount.place().to_owned()));
    plan.reverse();
    plan
}

/// All but what covers sockets.
fn of_files(access: &Access) -> Vec<Mount> {
    let all = |kind: fn(PathBuf) -> Mount, paths: Vec<PathBuf>| -> Vec<Mount> {
        paths.into_iter().map(kind).collect()
    };
    let is_in_tree = |path: &PathBuf| path.starts_with(&access.tree);
    let (home_in_tree, home) = access.hidden_home().into_iter().partition(is_in_tree);
    // A new one, unless the old one is in the tree.
    let mut cargo_home: Vec<PathBuf> = access.cargo_home.iter().cloned().collect();
    cargo_home.retain(|folder| !is_in_tree(folder) && folder.is_dir());
    let caches = caches::all(access).into_iter();
    let caches = caches.map(|cache| Mount::At(cache.overlay.place, cache.place));
    let held = access.held(&access.read_only);
    let open = open_in_read_only(access, &held);
    let masked = masked(access, &held);
    [
        SYSTEM.iter().filter_map(as_on_host).collect(),
        all(Mount::ReadOnly, settings::shown(access).to_vec()),
        all(Mount::Private, vec!["/tmp".into(), "/var/tmp".into()]),
        all(Mount::Private, home),
        all(Mount::Private, above_what_is_open(access)),
        all(Mount::Private, cargo_home),
        all(Mount::ReadOnly, toolchains::all(access)),
        caches.collect(),
        all(Mount::Writable, vec![access.tree.clone()]),
        // A mount point cannot be moved, but a folder that contains one can.
        all(Mount::Writable, access.held(&access.pinned)),
        all(Mount::Private, home_in_tree),
        all(Mount::ReadOnly, outside_the_tree(access, &access.readable)),
        all(Mount::Writable, outside_the_tree(access, &access.writable)),
        all(Mount::ReadOnly, held),
        all(Mount::Writable, open),
        all(empty, masked),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn as_on_host(path: &&str) -> Option<Mount> {
    let path = PathBuf::from(path);
    match fs::read_link(&path) {
        Ok(target) => Some(Mount::Link(target, path)),
        Err(_) => path.exists().then_some(Mount::ReadOnly(path)),
    }
}

fn empty(path: PathBuf) -> Mount {
    if path.is_dir() {
        Mount::EmptyFolder(path)
    } else {
        Mount::EmptyFile(path)
    }
}

/// What the caller opens in the hidden home directory.
pub(super) fn open_in_home(access: &Access) -> Vec<PathBuf> {
    let home = access.hidden_home();
    let Some(home) = home.filter(|home| !home.starts_with(&access.tree)) else {
        return Vec::new();
    };
    let open = outside_the_tree(access, &[&*access.readable, &access.writable].concat());
    let names = open.iter().filter_map(|path| path.strip_prefix(&home).ok());
    let names = names.filter(|name| !name.as_os_str().is_empty());
    names.map(Path::to_owned).collect()
}

/// The folders between the home directory and what is opened in it are new and writable, too, parents first.
/// Docker would create them as root.
fn above_what_is_open(access: &Access) -> Vec<PathBuf> {
    let home = access.home.as_deref().unwrap_or(Path::new("/"));
    let names = open_in_home(access);
    let above = names.iter().flat_map(|name| name.ancestors().skip(1));
    let mut folders: Vec<PathBuf> = above.map(|name| home.join(name)).collect();
    folders.retain(|folder| folder != home);
    folders.sort();
    folders
}

/// Creates the writable folders that do not exist yet. Fails where there can be no sandbox around this tree.
pub(super) fn make_ready(access: &Access) -> Result<(), String> {
    let tree = access.tree.display();
    if !access.tree.is_absolute() || access.tree.parent().is_none() {
        return Err(format!("the work tree {tree} is not a folder of its own"));
    }
    if access.hidden_home().as_ref() == Some(&access.tree) {
        return Err(format!(
            "the work tree is the home directory {tree}, which must stay hidden"
        ));
    }
    let mut missing = access.writable.iter().filter(|folder| !folder.exists());
    missing.try_for_each(|folder| {
        make_folder(access, folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))
    })
}

/// Inside the tree step by step and never through a symlink, because an earlier build may have
/// planted one.
fn make_folder(access: &Access, folder: &Path) -> io::Result<()> {
    let Ok(below) = folder.strip_prefix(&access.tree) else {
        return fs::create_dir_all(folder);
    };
    let mut here = access.tree.clone();
    below.iter().try_for_each(|name| {
        here.push(name);
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
            Err(_) => fs::create_dir(&here),
        }
    })
}

/// Those that exist and are outside the tree. Paths in the tree have its rights already, and a
/// symlink that commands can change must not open a way out.
pub(super) fn outside_the_tree(access: &Access, paths: &[PathBuf]) -> Vec<PathBuf> {
    let changeable = Changeable::new(access.changeable());
    let mut outside = paths.to_vec();
    outside.retain(|path| path.exists() && changeable.fixed_among_others(path).is_some());
    outside
}

/// Writable folders below read-only ones, which are `held`; none behind a symlink, which could lead anywhere.
pub(super) fn open_in_read_only(access: &Access, held: &[PathBuf]) -> Vec<PathBuf> {
    let is_real = |path: &Path| path.canonicalize().is_ok_and(|real| real == path);
    let mut open = access.writable.clone();
    open.retain(|path| is_inside(path, held) && is_real(path));
    open
}

fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    let mut above = folders.iter().filter(|folder| path.starts_with(folder));
    above.any(|folder| folder != path)
}

/// The hidden paths: those that the caller names, and cargo's credentials, our own layers and our state in git
/// directories wherever they would be visible. `held` is what is read-only.
pub(super) fn masked(access: &Access, held: &[PathBuf]) -> Vec<PathBuf> {
    let credentials = access.cargo_home.iter().flat_map(|home| {
        code_commit_names::at_home(CARGO, Kind::Hidden).map(|name| home.join(name))
    });
    // The kernel refuses to enter the layers through the view, which would make a search fail. So their parent
    // is hidden.
    let layers = access.view.iter().filter_map(|view| view.upper.parent());
    let repositories = own_files::repositories(access, held).into_iter();
    let ours = repositories.map(|repository| repository.join(STATE_IN_GIT));
    let roots = once(&access.tree)
        .chain(&access.readable)
        .chain(&access.writable);
    let mut hidden: Vec<PathBuf> = credentials
        .chain(layers.map(Path::to_owned))
        .chain(access.caches.clone())
        .chain(ours)
        .collect();
    hidden.retain(|path| path.exists() && roots.clone().any(|root| path.starts_with(root)));
    hidden.extend(access.held(&access.masked));
    // In an empty folder there is nothing to hide.
    let outer = hidden.clone();
    hidden.retain(|path| !is_inside(path, &outer));
    // Where a sandbox can show other files, what is left of them takes this place.
    let files = own_files::without_secrets(access, held).into_iter();
    hidden.extend(files.map(|(file, _)| file));
    hidden
}

/// The overlays that a sandbox mounts before anything else, in this order.
pub(super) fn overlays(access: &Access) -> Vec<Overlay> {
    let caches = caches::all(access).into_iter().map(|cache| cache.overlay);
    caches.chain(Overlay::of_tree(access)).collect()
}

/// Starts to look up, in a thread, what all commands with this tree, environment and writable places have in common. It
/// takes about a thousand disk accesses; the first plan uses the result, or waits for it.
pub fn look_ahead(access: Access) {
    let look_up = move || (settings::shown(&access), toolchains::all(&access));
    // Without a thread, the plan looks it up itself.
    let _ = std::thread::Builder::new().spawn(look_up);
}

/// Which files of the host, given by their canonical paths, a command in the sandbox can see. Made once for many files: it
/// takes hundreds of disk accesses.
pub fn visible(confinement: &Confinement) -> impl Fn(&Path) -> bool + use<> {
    let is_confined = confinement.backend != Backend::Off;
    let plan = is_confined.then(|| of_files(&confinement.access));
    move |path| plan.as_ref().is_none_or(|plan| shows(plan, path))
}

fn shows(plan: &[Mount], path: &Path) -> bool {
    let mut covers = plan.iter().rev();
    match covers.find(|mount| path.starts_with(mount.place())) {
        Some(Mount::ReadOnly(_) | Mount::Writable(_) | Mount::At(..) | Mount::Link(..)) => true,
        Some(Mount::Private(_) | Mount::EmptyFolder(_) | Mount::EmptyFile(_)) => false,
        None => path.starts_with("/proc") || path.starts_with("/dev"),
    }
}
