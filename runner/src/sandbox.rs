//! The sandbox around a command, and the ladder of ways to build one.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind, PipeWriter};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{Binds, Name, Writer};
use serde::{Deserialize, Serialize};

use crate::spawn::{Group, program};
use crate::{AllowedHost, Command, Ended, Env, Programs, RunError};

mod bwrap;
mod caches;
mod docker;
mod git_config;
mod helper;
mod landlock;
mod memory;
mod mount_table;
mod mounts;
mod namespaces;
mod own_files;
mod probe;
mod seccomp;
mod sockets;
mod toolchains;
mod view;
mod visible;

pub(crate) use caches::{lock as lock_caches, places as cache_places};
pub(crate) use docker::{Container, remove_orphans};
pub use helper::{helper, helper_is};
pub(crate) use landlock::is_in_private_home;
pub(crate) use memory::memory_file;
pub use probe::{NoSandbox, Probed, Reason, has_layers, how_to_get_namespaces, probe, survey};
use view::Overlay;
pub use view::View;
pub(crate) use visible::Visible;

/// The name of the machine in a sandbox with namespaces; it resolves to the loopback.
const HOST_NAME: &str = "code-commit";

/// The sandbox that the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The strongest of namespaces, bubblewrap and Landlock that works here; never no sandbox.
    #[default]
    Auto,
    /// Namespaces with seccomp, or nothing runs.
    Namespaces,
    /// bubblewrap with seccomp, or nothing runs.
    Bwrap,
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
pub enum Rung {
    /// Namespaces set up by this crate, and seccomp.
    Namespaces,
    /// Namespaces set up by bubblewrap, and seccomp.
    Bwrap,
    /// Landlock and seccomp.
    Landlock,
    /// A Docker container.
    Docker,
    /// No sandbox; leftover processes are still killed.
    Off,
}

/// The value for `--sandbox`.
impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Bwrap => "bwrap",
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
    /// What is reachable without the network, by a proxy that `HTTPS_PROXY` names. Only with [`Rung::Namespaces`].
    pub hosts: Vec<AllowedHost>,
    /// The user's home directory, which an empty folder replaces.
    pub home: Option<PathBuf>,
    /// The folders in `PATH`, where tools are: visible, even below `home`.
    pub path: Vec<PathBuf>,
    /// `CARGO_HOME`: programs, registry cache and configuration are visible, credentials never are.
    pub cargo_home: Option<PathBuf>,
    /// `RUSTUP_HOME`: visible.
    pub rustup_home: Option<PathBuf>,
    /// Where changes of the tree go, instead of the tree itself, if [`Rung::has_views`].
    pub view: Option<View>,
    /// The folder for the project's own layers over the caches of tools, if [`Rung::has_views`]: a command reads
    /// the user's, and what it writes to them stays here. Without, it sees those of cargo, and changes none.
    pub caches: Option<PathBuf>,
    /// The address of the Docker daemon (`unix:///…`), if it is not the default.
    /// [`Probed::confine`] sets it.
    pub docker_host: Option<OsString>,
}

impl Access {
    /// Access to `tree` for a command with this environment, which also determines tools and home
    /// directory. Nothing else is open, and the network is off. `.git`, the build script and files of the tree
    /// that run later (`names` lists them) are read-only, and `agent-config` is hidden, where they exist: nothing can be
    /// mounted over a missing path.
    pub fn new(tree: impl Into<PathBuf>, env: &Env) -> Self {
        let tree = tree.into();
        let home = env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let folder =
            |name: &str, default: &str| env.get(name).map(PathBuf::from).or_else(|| below_home(default));
        Self {
            read_only: started_later(&tree),
            masked: [tree.join(AGENT_CONFIG)].into_iter().filter(|folder| folder.exists()).collect(),
            tree,
            cargo_home: folder("CARGO_HOME", mounts::CARGO).filter(|folder| folder.is_dir()),
            rustup_home: folder("RUSTUP_HOME", ".rustup").filter(|folder| folder.is_dir()),
            path: env.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default(),
            home,
            ..Self::default()
        }
    }
}

impl Access {
    /// What commands may change.
    pub(crate) fn changeable(&self) -> impl Iterator<Item = &Path> {
        [&self.tree].into_iter().chain(&self.writable).map(PathBuf::as_path)
    }

    /// Whether single hosts are opened, and not everything.
    pub(crate) fn has_proxy(&self) -> bool {
        !self.network && !self.hosts.is_empty()
    }
}

/// What decides whether the work is done, and what somebody starts later without asking.
fn started_later(tree: &Path) -> Vec<PathBuf> {
    let decides =
        code_commit_names::protected(Binds::Commit).filter(|name| name.writer() != Some(Writer::Build));
    let rows =
        decides.chain(code_commit_names::RUNS_LATER).map(Name::at_root).filter(|name| *name != AGENT_CONFIG);
    let paths = [".git"].into_iter().chain(rows).map(|name| tree.join(name));
    paths.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// A sandbox: how it is enforced, and what it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// How it is enforced; [`probe`] finds out what works on this machine.
    pub rung: Rung,
    /// What it lets through; has no meaning for [`Rung::Off`].
    pub access: Access,
}

impl Confinement {
    /// No sandbox.
    pub fn off() -> Self {
        Self { rung: Rung::Off, access: Access::default() }
    }
}

/// Everything needed to start a command in the sandbox.
pub(crate) struct Launch {
    pub(crate) command: std::process::Command,
    /// Restrictions for the thread that starts it.
    pub(crate) fence: Option<landlock::Fence>,
    /// Descriptors that it inherits; closed once it runs.
    pub(crate) inherited: Vec<OwnedFd>,
    /// Its standard input, if the launcher needs standard input for itself.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) container: Option<Container>,
    pub(crate) aftercare: Aftercare,
}

/// What is needed to interpret how a sandboxed command ended, and to clean up after it.
pub(crate) enum Aftercare {
    Plain,
    Namespaces(namespaces::Control),
    Bwrap(bwrap::Report),
    Landlock(#[expect(dead_code, reason = "removed when dropped")] landlock::Private),
    Docker(
        #[expect(dead_code, reason = "the line: closed when dropped, or when this process dies")]
        Option<PipeWriter>,
    ),
}

impl Launch {
    fn new(command: std::process::Command, aftercare: Aftercare) -> Self {
        Self { command, fence: None, inherited: Vec::new(), stdin: None, container: None, aftercare }
    }
}

/// Prepares to start `command`, whose `argv[0]` has been resolved.
pub(crate) fn prepare(
    command: &Command,
    confinement: &Confinement,
    marker: &str,
    group: Group,
) -> Result<Launch, RunError> {
    let rung = &confinement.rung;
    let access = &rung.limited(&confinement.access);
    let launch = match rung {
        Rung::Off => Ok(Launch::new(direct(command), Aftercare::Plain)),
        Rung::Bwrap | Rung::Landlock | Rung::Docker if access.has_proxy() => {
            Err("only the sandbox namespaces can open single hosts".to_owned())
        }
        Rung::Namespaces => namespaces::prepare(command, access, marker, group),
        Rung::Bwrap => bwrap::prepare(command, access, group),
        Rung::Landlock => landlock::prepare(command, access),
        Rung::Docker => docker::prepare(command, access, marker, group),
    };
    launch.map_err(|message| RunError::Sandbox { rung: *rung, message })
}

/// The command without a sandbox.
fn direct(command: &Command) -> std::process::Command {
    let mut words = command.argv.iter();
    let mut direct = program(words.next().cloned().unwrap_or_default());
    direct.args(words).env_clear().envs(command.env.iter()).current_dir(&command.cwd);
    direct
}

/// The command's variables, adjusted where paths differ in the sandbox: temporary files are in a
/// new `/tmp`.
fn environment(command: &Command, access: &Access) -> Env {
    let mut env = command.env.clone();
    point_inside(&mut env, access);
    if env.get("TMPDIR").is_some() {
        env.set("TMPDIR", "/tmp");
    }
    env
}

/// Creates something in `TMPDIR`, or in `/tmp` if that fails: a sandbox must not depend on that
/// folder.
fn in_temporary<T>(folder: PathBuf, make: impl Fn(PathBuf) -> io::Result<T>) -> io::Result<T> {
    make(folder).or_else(|_| make(PathBuf::from("/tmp")))
}

/// Sets the paths that programs would otherwise look up in a home directory that does not exist,
/// and tells cargo not to try the network in vain.
fn point_inside(env: &mut Env, access: &Access) {
    for (name, folder) in [("CARGO_HOME", &access.cargo_home), ("RUSTUP_HOME", &access.rustup_home)] {
        if let Some(folder) = folder {
            env.set(name, folder);
        }
    }
    if !access.network && access.hosts.is_empty() {
        env.set("CARGO_NET_OFFLINE", "true");
    }
    // The tree is a mount of its own, and git would not search for a repository above it.
    env.set("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
}

impl Aftercare {
    /// Gives the launcher what it waits for before it starts anything, and the command's standard input, if the
    /// launcher's own is another one.
    pub(crate) fn hand_over(&mut self, stdin: BorrowedFd<'_>) -> Result<(), RunError> {
        let (rung, done) = match self {
            Self::Namespaces(control) => (Rung::Namespaces, control.hand_over(stdin)),
            Self::Bwrap(report) => (Rung::Bwrap, report.hand_over()),
            Self::Plain | Self::Landlock(_) | Self::Docker(_) => return Ok(()),
        };
        match done {
            // A launcher that has ended already says why.
            Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Err(RunError::Sandbox { rung, message: error.to_string() })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// How the command ended, given how its launcher ended. `text` is what was printed.
    pub(crate) fn read(&self, status: ExitStatus, text: impl FnOnce() -> String) -> Result<Ended, RunError> {
        let sandbox = |rung, message| RunError::Sandbox { rung, message };
        match self {
            Self::Plain | Self::Landlock(_) => Ok(plainly(status)),
            Self::Namespaces(control) => control.read(status).map_err(|why| why.on(Rung::Namespaces)),
            Self::Bwrap(report) => report.read(status, &text()).map_err(|why| why.on(Rung::Bwrap)),
            Self::Docker(_) => {
                docker::read(status, &text()).map_err(|message| sandbox(Rung::Docker, message))
            }
        }
    }
}

/// The overlays that a sandbox mounts before anything else, in this order.
fn overlays(access: &Access) -> Vec<Overlay> {
    let caches = caches::all(access).into_iter().map(|cache| cache.overlay);
    caches.chain(Overlay::of_tree(access)).collect()
}

/// Why the command was not started, in one line.
#[derive(Debug)]
enum NotStarted {
    View(String),
    Sandbox(String),
}

impl NotStarted {
    fn on(self, rung: Rung) -> RunError {
        match self {
            Self::View(message) => RunError::View { message },
            Self::Sandbox(message) => RunError::Sandbox { rung, message },
        }
    }
}

fn plainly(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
    }
}

/// A launcher with a process namespace reports signal N as exit code 128 + N.
fn by_shell_code(code: i32) -> Ended {
    match code {
        129..=192 => Ended::Signaled(code - 128),
        _ => Ended::Exited(code),
    }
}

/// The path of a system program. Never searched in a `PATH` that a project could set.
fn system_program(name: &str) -> Result<PathBuf, String> {
    let folders = OsStr::new("/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin");
    Programs::new(Some(folders), []).find(name).map_err(|_| format!("{name} is not installed"))
}
