//! What is visible in the sandbox, in the order of creation: later entries cover earlier ones.
//! Namespaces and Docker turn the list into mounts; Landlock uses the lists that it is made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use code_commit_names::Kind;
use code_commit_names::ours::STATE_IN_GIT;

use super::access::{Access, CARGO};
use super::mount::{Mount, Overlay, SYSTEM};
use super::{caches, own_files, packages, sockets, toolchains};
use crate::trusted::Changeable;

/// The files in `/etc` that programs read, without accounts, keys and host configuration.
const ETC: [&str; 21] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "maven/logging",
    "maven/m2.conf",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
];

/// The files needed to resolve host names.
const ETC_NETWORK: [&str; 4] = ["gai.conf", "host.conf", "hosts", "resolv.conf"];

/// All entries, in order.
pub(super) fn plan(access: &Access) -> Vec<Mount> {
    let mut plan: Vec<Mount> = SYSTEM
        .iter()
        .map(PathBuf::from)
        .filter_map(as_on_host)
        .collect();
    plan.extend(etc(access).into_iter().map(Mount::ReadOnly));
    plan.extend(["/tmp", "/var/tmp"].map(|folder| Mount::Private(folder.into())));
    let home = access.hidden_home();
    plan.extend(
        home.iter()
            .filter(|home| !home.starts_with(&access.tree))
            .cloned()
            .map(Mount::Private),
    );
    plan.extend(above_what_is_open(access).into_iter().map(Mount::Private));
    plan.extend(private_cargo_home(access).map(Mount::Private));
    plan.extend(tools(access).into_iter().map(Mount::ReadOnly));
    plan.extend(
        caches::all(access)
            .into_iter()
            .map(|cache| Mount::At(cache.overlay.place, cache.place)),
    );
    plan.push(Mount::Writable(access.tree.clone()));
    // A mount point cannot be moved, but a folder that contains one can.
    plan.extend(access.held(&access.pinned).into_iter().map(Mount::Writable));
    plan.extend(
        home.iter()
            .filter(|home| home.starts_with(&access.tree))
            .cloned()
            .map(Mount::Private),
    );
    plan.extend(outside_the_tree(access, &access.readable).map(Mount::ReadOnly));
    plan.extend(outside_the_tree(access, &access.writable).map(Mount::Writable));
    plan.extend(read_only(access).into_iter().map(Mount::ReadOnly));
    plan.extend(open_in_read_only(access).map(Mount::Writable));
    plan.extend(masked(access).into_iter().map(empty));
    sockets::cover(access, &mut plan);
    last_of_each_place(plan)
}

/// Keeps only the last entry for each path: earlier ones would be invisible, and Docker rejects
/// duplicates.
fn last_of_each_place(plan: Vec<Mount>) -> Vec<Mount> {
    let mut places = std::collections::HashSet::new();
    let mut last: Vec<Mount> = plan
        .into_iter()
        .rev()
        .filter(|mount| places.insert(mount.place().to_owned()))
        .collect();
    last.reverse();
    last
}

fn as_on_host(path: PathBuf) -> Option<Mount> {
    let data = fs::symlink_metadata(&path).ok()?;
    if data.is_symlink() {
        return Some(Mount::Link(fs::read_link(&path).ok()?, path));
    }
    Some(Mount::ReadOnly(path))
}

fn empty(path: PathBuf) -> Mount {
    if path.is_dir() {
        Mount::EmptyFolder(path)
    } else {
        Mount::EmptyFile(path)
    }
}

/// What is shown of `/etc`. Looked up once in a process: no command can change it.
pub(super) fn etc(access: &Access) -> Vec<PathBuf> {
    static KNOWN: [OnceLock<Vec<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [without, with] = &KNOWN;
    let known = if access.network { with } else { without };
    known.get_or_init(|| look_up_etc(access)).clone()
}

fn look_up_etc(access: &Access) -> Vec<PathBuf> {
    let network: &[&str] = if access.network { &ETC_NETWORK } else { &[] };
    let names = ETC.iter().chain(network);
    let files = names
        .map(|name| Path::new("/etc").join(name))
        .filter(|path| path.exists());
    let settings = files
        .chain(toolchains::java_settings(Path::new("/etc")))
        .collect::<Vec<_>>();
    let is_apart = |path: &&PathBuf| !settings.iter().any(|shown| shown.starts_with(path));
    let of_packages = packages::shown(access)
        .iter()
        .filter(is_apart)
        .cloned()
        .collect();
    [settings, of_packages].concat()
}

/// What the caller opens in the hidden home directory.
pub(super) fn open_in_home(access: &Access) -> Vec<PathBuf> {
    let Some(home) = access
        .hidden_home()
        .filter(|home| !home.starts_with(&access.tree))
    else {
        return Vec::new();
    };
    let open = [&access.readable, &access.writable].map(|paths| outside_the_tree(access, paths));
    let names = open
        .into_iter()
        .flatten()
        .filter_map(|path| Some(path.strip_prefix(&home).ok()?.to_owned()));
    names.filter(|name| !name.as_os_str().is_empty()).collect()
}

/// The folders between the home directory and what is opened in it are new and writable, too.
/// Docker would create them as root.
fn above_what_is_open(access: &Access) -> Vec<PathBuf> {
    let Some(home) = access.hidden_home() else {
        return Vec::new();
    };
    let names = open_in_home(access);
    let above = names
        .iter()
        .flat_map(|name| name.ancestors().skip(1))
        .filter(|name| !name.as_os_str().is_empty());
    let mut folders: Vec<PathBuf> = above.map(|name| home.join(name)).collect();
    // Parents first.
    folders.sort();
    folders
}

/// Why there can be no sandbox around this tree.
pub(super) fn refuse(access: &Access) -> Result<(), String> {
    let tree = &access.tree;
    if !tree.is_absolute() || tree.parent().is_none() {
        return Err(format!(
            "the work tree {} is not a folder of its own",
            tree.display()
        ));
    }
    if access.hidden_home().as_ref() == Some(tree) {
        return Err(format!(
            "the work tree is the home directory {}, which must stay hidden",
            tree.display()
        ));
    }
    Ok(())
}

/// Creates the writable folders that do not exist yet.
pub(super) fn make_writable(access: &Access) -> Result<(), String> {
    access
        .writable
        .iter()
        .filter(|folder| !folder.exists())
        .try_for_each(|folder| {
            make_folder(access, folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))
        })
}

/// Inside the tree step by step and never through a symlink, because an earlier build may have
/// planted one.
fn make_folder(access: &Access, folder: &Path) -> std::io::Result<()> {
    let Ok(below) = folder.strip_prefix(&access.tree) else {
        return fs::create_dir_all(folder);
    };
    let mut here = access.tree.clone();
    for name in below {
        here.push(name);
        match fs::symlink_metadata(&here) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => return Err(std::io::ErrorKind::NotADirectory.into()),
            Err(_) => fs::create_dir(&here)?,
        }
    }
    Ok(())
}

/// The path of a new `CARGO_HOME`, unless the old one is in the tree.
fn private_cargo_home(access: &Access) -> Option<PathBuf> {
    access
        .cargo_home
        .clone()
        .filter(|folder| !folder.starts_with(&access.tree) && folder.is_dir())
}

/// The folders of tools outside the system's folders, where no command can have put a link to something else.
pub(super) fn tools(access: &Access) -> Vec<PathBuf> {
    let mut tools = toolchains::all(access);
    add_tools(
        access,
        access.cargo_home.iter().flat_map(|home| cargo_parts(home)),
        &mut tools,
    );
    tools
}

/// Adds those that may be shown, and are not yet.
pub(super) fn add_tools(
    access: &Access,
    more: impl IntoIterator<Item = PathBuf>,
    tools: &mut Vec<PathBuf>,
) {
    let changeable = Changeable::new(access.changeable());
    for tool in more {
        let Some(real) = changeable.fixed(&tool) else {
            continue;
        };
        let is_seen = SYSTEM.iter().any(|system| tool.starts_with(system))
            || tools.iter().any(|seen| tool.starts_with(seen));
        // An entry in `PATH` that contains the home directory would reveal what must stay hidden.
        let shows_more = [
            access.hidden_home().as_ref(),
            Some(&access.tree),
            access.cargo_home.as_ref(),
        ]
        .iter()
        .flatten()
        .any(|hidden| hidden.starts_with(&tool) || hidden.starts_with(&real));
        if tool.exists() && !is_seen && !shows_more {
            tools.push(tool);
        }
    }
}

/// The parts of `CARGO_HOME` that a build needs; no file that holds a token.
fn cargo_parts(home: &Path) -> impl Iterator<Item = PathBuf> {
    let has_no_token = |file: &Path| {
        fs::read_to_string(file).is_ok_and(|text| !text.to_ascii_lowercase().contains("token"))
    };
    code_commit_names::at_home(CARGO, Kind::Shown)
        .chain(code_commit_names::at_home(CARGO, Kind::Cache))
        .map(|name| home.join(name))
        .filter(move |part| part.is_dir() || has_no_token(part))
}

/// Those that exist and are outside the tree. Paths in the tree have its rights already, and a
/// symlink that commands can change must not open a way out.
pub(super) fn outside_the_tree<'a>(
    access: &'a Access,
    paths: &'a [PathBuf],
) -> impl Iterator<Item = PathBuf> {
    let changeable = Changeable::new(access.changeable());
    let is_fixed = move |path: &PathBuf| changeable.fixed_among_others(path).is_some();
    paths
        .iter()
        .filter(move |path| path.exists() && is_fixed(path))
        .cloned()
}

/// The read-only paths. For a symlink its target, if that is in the tree, because the link itself
/// cannot be mounted over.
pub(super) fn read_only(access: &Access) -> Vec<PathBuf> {
    access.held(&access.read_only)
}

/// Writable folders below read-only ones; none behind a symlink, which could lead anywhere.
pub(super) fn open_in_read_only(access: &Access) -> impl Iterator<Item = PathBuf> {
    let held = read_only(access);
    let is_below = move |path: &Path| {
        held.iter()
            .any(|above| path.starts_with(above) && path != above)
    };
    let is_real = |path: &Path| path.canonicalize().is_ok_and(|real| real == path);
    access
        .writable
        .iter()
        .filter(move |path| is_below(path) && is_real(path))
        .cloned()
}

/// The hidden paths: those that the caller names, and cargo's credentials, our own layers and our state in git
/// directories wherever they would be visible.
pub(super) fn masked(access: &Access) -> Vec<PathBuf> {
    let credentials = access.cargo_home.iter().flat_map(|home| {
        code_commit_names::at_home(CARGO, Kind::Hidden).map(|name| home.join(name))
    });
    let shown: Vec<&PathBuf> = [&access.tree]
        .into_iter()
        .chain(&access.readable)
        .chain(&access.writable)
        .collect();
    let mut masked = access.held(&access.masked);
    // The kernel refuses to enter the layers through the view, which would make a search fail. So their parent
    // is hidden.
    let layers = access
        .view
        .iter()
        .filter_map(|view| view.upper.parent())
        .map(Path::to_owned);
    let states: Vec<PathBuf> = own_files::repositories(access)
        .into_iter()
        .map(|repository| repository.join(STATE_IN_GIT))
        .collect();
    let hidden = credentials
        .chain(layers)
        .chain(access.caches.clone())
        .chain(states.clone());
    masked.extend(
        hidden.filter(|path| path.exists() && shown.iter().any(|root| path.starts_with(root))),
    );
    // In an empty folder there is nothing to hide.
    let is_inside = |path: &PathBuf, state: &PathBuf| path != state && path.starts_with(state);
    masked.retain(|path| !states.iter().any(|state| is_inside(path, state)));
    // Where a sandbox can show other files, what is left of them takes this place.
    masked.extend(
        own_files::without_secrets(access)
            .into_iter()
            .map(|(file, _)| file),
    );
    masked
}

/// The overlays that a sandbox mounts before anything else, in this order.
pub(super) fn overlays(access: &Access) -> Vec<Overlay> {
    let caches = caches::all(access).into_iter().map(|cache| cache.overlay);
    caches.chain(Overlay::of_tree(access)).collect()
}

/// Which files of the host are visible in the sandbox: a cache, so that many files can be checked: computing it takes hundreds of
/// disk accesses.
pub(crate) struct Visible {
    shown: Vec<PathBuf>,
    masked: Vec<PathBuf>,
}

impl Visible {
    pub(crate) fn behind(access: &Access) -> Self {
        let own = SYSTEM
            .into_iter()
            .chain(["/proc", "/dev"])
            .map(PathBuf::from);
        let given = [&access.tree]
            .into_iter()
            .chain(&access.readable)
            .chain(&access.writable)
            .cloned();
        let tools = tools(access).into_iter();
        let tools = tools.chain(caches::all(access).into_iter().map(|cache| cache.place));
        let shown = own.chain(etc(access)).chain(tools).chain(given).collect();
        Self {
            shown,
            masked: masked(access),
        }
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        let is_below = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        !is_below(&self.masked) && is_below(&self.shown)
    }
}
