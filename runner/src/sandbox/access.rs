//! What a sandbox lets through, and how it is enforced.

use std::ffi::OsString;
use std::fmt;
use std::iter::once;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{Binds, Name, Writer};
use serde::{Deserialize, Serialize};

use crate::trusted::real;
use crate::{AllowedHost, Env};

/// The usual name of `CARGO_HOME`, from which the table knows its content.
pub(super) const CARGO: &str = ".cargo";

/// The sandbox that the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Namespaces if they work here, otherwise Landlock; never no sandbox.
    #[default]
    Auto,
    /// Namespaces with seccomp, or nothing runs.
    Namespaces,
    /// Landlock with seccomp, or nothing runs.
    Landlock,
    /// A Docker container, or nothing runs.
    Docker,
    /// No confinement.
    Off,
}

/// The sandbox in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Namespaces set up by this crate, and seccomp.
    Namespaces,
    /// Landlock and seccomp.
    Landlock,
    /// A Docker container.
    Docker,
    /// No sandbox; leftover processes are still killed.
    Off,
}

/// The value for `--sandbox`.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Off => "off",
        })
    }
}

/// What a command may see and change. All paths are absolute; paths that do not exist are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The work tree: writable.
    pub tree: PathBuf,
    /// Paths in the tree that are read-only: `.git`, `build.sh`, specifications, configuration.
    pub read_only: Vec<PathBuf>,
    /// Paths in the tree that are hidden: keys.
    pub masked: Vec<PathBuf>,
    /// Folders in the tree that are writable but cannot be moved away, because something below them
    /// is read-only or hidden. Parents first. Landlock ignores them.
    pub pinned: Vec<PathBuf>,
    /// Other writable paths. Folders that do not exist are created.
    pub writable: Vec<PathBuf>,
    /// Other readable paths.
    pub readable: Vec<PathBuf>,
    /// Whether the host's network is reachable.
    pub network: bool,
    /// What is reachable without the network, by a proxy that `HTTPS_PROXY` names. Only with [`Backend::Namespaces`].
    pub hosts: Vec<AllowedHost>,
    /// The user's home directory, which an empty folder replaces.
    pub home: Option<PathBuf>,
    /// The folders in `PATH`, where tools are: visible, even below `home`.
    pub path: Vec<PathBuf>,
    /// `CARGO_HOME`: programs, registry cache and configuration are visible, credentials never are.
    pub cargo_home: Option<PathBuf>,
    /// `RUSTUP_HOME`: visible.
    pub rustup_home: Option<PathBuf>,
    /// Where changes of the tree go, instead of the tree itself, if [`Backend::has_views`].
    pub view: Option<View>,
    /// The folder for the project's own layers over the caches of tools, if [`Backend::has_views`]: a command reads
    /// the user's, and what it writes to them stays here. Without, it sees those of cargo, and changes none.
    pub caches: Option<PathBuf>,
    /// The folder in which it is remembered which sandbox works; nothing is without it.
    pub memory: Option<PathBuf>,
    /// The address of the Docker daemon (`unix:///…`), if it is not the default.
    /// [`Probed::confine`](crate::Probed::confine) sets it.
    pub docker_host: Option<OsString>,
}

impl Access {
    /// Access to `tree` for a command with this environment, which also determines tools and home
    /// directory. Nothing else is open, and the network is off. `.git`, the build script and files of the tree
    /// that run later (`names` lists them) are read-only, and `agent-config` is hidden, where they exist: nothing can be
    /// mounted over a missing path.
    pub fn new(tree: impl Into<PathBuf>, env: &Env) -> Self {
        let tree = tree.into();
        let home = env
            .get("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let folder = |name: &str, default: &str| {
            let usual = home.as_ref().map(|home| home.join(default));
            let folder = env.get(name).map(PathBuf::from).or(usual)?;
            folder.is_dir().then_some(folder)
        };
        let mut masked = vec![tree.join(AGENT_CONFIG)];
        masked.retain(|folder| folder.exists());
        Self {
            read_only: started_later(&tree),
            masked,
            cargo_home: folder("CARGO_HOME", CARGO),
            rustup_home: folder("RUSTUP_HOME", ".rustup"),
            path: env
                .get("PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .collect(),
            tree,
            home,
            ..Self::default()
        }
    }

    /// What commands may change.
    pub(crate) fn changeable(&self) -> impl Iterator<Item = &Path> {
        once(&self.tree).chain(&self.writable).map(PathBuf::as_path)
    }

    /// The home directory to hide. A home directory of `/` does not count.
    pub(super) fn hidden_home(&self) -> Option<PathBuf> {
        let home = self.home.as_ref()?;
        (home.is_absolute() && home.parent().is_some()).then(|| home.clone())
    }

    /// Paths relative to the tree's canonical spelling: another spelling would protect nothing. Without devices.
    pub(super) fn held(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let tree = real(&self.tree);
        let target = |path: &PathBuf| {
            let real = path.canonicalize().ok()?;
            let kind = real.metadata().ok()?.file_type();
            let path = match real.strip_prefix(&tree) {
                Ok(below) => Some(self.tree.join(below)),
                Err(_) => (!path.is_symlink()).then(|| path.clone()),
            };
            path.filter(|_| !kind.is_char_device() && !kind.is_block_device())
        };
        paths.iter().filter_map(target).collect()
    }

    /// Whether single hosts are opened, and not everything.
    pub(crate) fn has_proxy(&self) -> bool {
        !self.network && !self.hosts.is_empty()
    }
}

/// What decides whether the work is done, and what somebody starts later without asking.
fn started_later(tree: &Path) -> Vec<PathBuf> {
    let decides = code_commit_names::protected(Binds::Commit);
    let names = decides
        .filter(|name| name.writer() != Some(Writer::Build))
        .chain(code_commit_names::RUNS_LATER)
        .map(Name::at_root)
        .filter(|name| *name != AGENT_CONFIG);
    let paths = once(".git").chain(names).map(|name| tree.join(name));
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    paths.filter(is_there).collect()
}

/// Where the changes of one command go instead of the tree. Both folders must be new and empty, in a folder of
/// their own, which is hidden from the command, and on one file system. Nobody else may use them meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Receives the changes, in the format of overlayfs with `userxattr`.
    pub upper: PathBuf,
    /// For the kernel's own use.
    pub work: PathBuf,
}

/// A sandbox: how it is enforced, and what it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// How it is enforced; [`probe`](crate::probe) finds out what works on this machine.
    pub backend: Backend,
    /// What it lets through; has no meaning for [`Backend::Off`].
    pub access: Access,
}

impl Confinement {
    /// No sandbox.
    pub fn off() -> Self {
        Self {
            backend: Backend::Off,
            access: Access::default(),
        }
    }
}
