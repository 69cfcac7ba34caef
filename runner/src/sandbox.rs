//! The walls around a command, and the ladder of ways to put them up.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use crate::spawn::{Group, program};
use crate::{Command, Ended, Env, RunError};

mod bwrap;
mod docker;
mod landlock;
mod memory;
mod mounts;
mod probe;
mod seccomp;
mod visible;

pub(crate) use docker::{Container, remove_orphans};
pub(crate) use landlock::is_in_private_home;
pub use probe::{NoSandbox, Probed, Reason, how_to_get_bubblewrap, probe, survey};
pub(crate) use visible::Visible;

/// What the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The strongest of bubblewrap and Landlock that works here; never nothing.
    #[default]
    Auto,
    /// bubblewrap with seccomp, or nothing runs.
    Bwrap,
    /// Landlock with seccomp, or nothing runs.
    Landlock,
    /// A Docker container, or nothing runs.
    Docker,
    /// No confinement.
    Off,
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Namespaces by bubblewrap, and seccomp.
    Bwrap,
    /// Landlock and seccomp.
    Landlock,
    /// A Docker container.
    Docker,
    /// Nothing but the sweep.
    Off,
}

/// The name that `--sandbox` takes.
impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Off => "off",
        })
    }
}

/// What a command may see and change. All paths absolute; those that are not there are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The work tree: writable.
    pub tree: PathBuf,
    /// Inside the tree, but not to be changed: `.git`, `build.sh`, specifications, configuration.
    pub read_only: Vec<PathBuf>,
    /// Inside the tree, but not to be seen: keys.
    pub masked: Vec<PathBuf>,
    /// Folders inside the tree that may be changed, but not moved away: something further down is not to be changed or seen. Upper
    /// ones first. Not for Landlock.
    pub pinned: Vec<PathBuf>,
    /// More that may be changed. A folder that is not there is made.
    pub writable: Vec<PathBuf>,
    /// More that may be seen.
    pub readable: Vec<PathBuf>,
    /// Whether the network of the host can be reached.
    pub network: bool,
    /// The user's home: an empty folder takes its place.
    pub home: Option<PathBuf>,
    /// The folders of PATH, where tools lie: visible, also below `home`.
    pub path: Vec<PathBuf>,
    /// `CARGO_HOME`: programs, registry cache and configuration are visible, credentials never.
    pub cargo_home: Option<PathBuf>,
    /// `RUSTUP_HOME`: visible.
    pub rustup_home: Option<PathBuf>,
    /// Where the Docker daemon listens (`unix:///…`), if not in the usual place. [`Probed::confine`] sets it.
    pub docker_host: Option<OsString>,
}

impl Access {
    /// The walls around `tree` for a command with this environment: tools and home are read off it,
    /// nothing else is opened and the network is off.
    pub fn new(tree: impl Into<PathBuf>, env: &Env) -> Self {
        let home = env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let folder =
            |name: &str, default: &str| env.get(name).map(PathBuf::from).or_else(|| below_home(default));
        Self {
            tree: tree.into(),
            cargo_home: folder("CARGO_HOME", mounts::CARGO).filter(|folder| folder.is_dir()),
            rustup_home: folder("RUSTUP_HOME", ".rustup").filter(|folder| folder.is_dir()),
            path: env.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default(),
            home,
            ..Self::default()
        }
    }
}

/// Which walls, and what they are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// What they are made of; [`probe`] tells what works here.
    pub rung: Rung,
    /// The walls; without meaning for [`Rung::Off`].
    pub access: Access,
}

impl Confinement {
    /// No walls.
    pub fn off() -> Self {
        Self { rung: Rung::Off, access: Access::default() }
    }
}

/// What has to be done to start a command behind the walls.
pub(crate) struct Launch {
    pub(crate) command: std::process::Command,
    /// To be put around the thread that starts it.
    pub(crate) fence: Option<landlock::Fence>,
    /// Descriptors that it inherits; closed once it runs.
    pub(crate) inherited: Vec<OwnedFd>,
    /// Its standard input, where the launcher needs that for itself.
    pub(crate) stdin: Option<PipeReader>,
    pub(crate) container: Option<Container>,
    pub(crate) aftercare: Aftercare,
}

/// What is needed to understand how a confined command ended, and to clean up behind it.
pub(crate) enum Aftercare {
    Plain,
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

/// Makes ready to start `command`, whose `argv[0]` has been looked up.
pub(crate) fn prepare(
    command: &Command,
    confinement: &Confinement,
    marker: &str,
    group: Group,
) -> Result<Launch, RunError> {
    let Confinement { rung, access } = confinement;
    let launch = match rung {
        Rung::Off => Ok(Launch::new(direct(command), Aftercare::Plain)),
        Rung::Bwrap => bwrap::prepare(command, access, group),
        Rung::Landlock => landlock::prepare(command, access),
        Rung::Docker => docker::prepare(command, access, marker, group),
    };
    launch.map_err(|message| RunError::Sandbox { rung: *rung, message })
}

/// The command as it stands.
fn direct(command: &Command) -> std::process::Command {
    let mut words = command.argv.iter();
    let mut direct = program(words.next().cloned().unwrap_or_default());
    direct.args(words).env_clear().envs(command.env.iter()).current_dir(&command.cwd);
    direct
}

/// The command's variables where the places that they name look different inside: temporary files are in a new `/tmp`.
fn environment(command: &Command, access: &Access) -> Env {
    let mut env = command.env.clone();
    point_inside(&mut env, access);
    if env.get("TMPDIR").is_some() {
        env.set("TMPDIR", "/tmp");
    }
    env
}

/// Makes something where `TMPDIR` says, or in `/tmp` where nothing can be made there: no wall has to depend on that folder.
fn in_temporary<T>(folder: PathBuf, make: impl Fn(PathBuf) -> io::Result<T>) -> io::Result<T> {
    make(folder).or_else(|_| make(PathBuf::from("/tmp")))
}

/// Names the places that a program would otherwise look for below a home that is not there, and
/// tells cargo not to try the network in vain.
fn point_inside(env: &mut Env, access: &Access) {
    for (name, folder) in [("CARGO_HOME", &access.cargo_home), ("RUSTUP_HOME", &access.rustup_home)] {
        if let Some(folder) = folder {
            env.set(name, folder);
        }
    }
    if !access.network {
        env.set("CARGO_NET_OFFLINE", "true");
    }
    // The tree is a mount of its own, where git would not look for a repository above it.
    env.set("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
}

impl Aftercare {
    /// How the command ended, given how its launcher did. `text` is what was written.
    pub(crate) fn read(&self, status: ExitStatus, text: impl FnOnce() -> String) -> Result<Ended, RunError> {
        let sandbox = |rung, message| RunError::Sandbox { rung, message };
        match self {
            Self::Plain | Self::Landlock(_) => Ok(plainly(status)),
            Self::Bwrap(report) => {
                report.read(status, &text()).map_err(|message| sandbox(Rung::Bwrap, message))
            }
            Self::Docker(_) => {
                docker::read(status, &text()).map_err(|message| sandbox(Rung::Docker, message))
            }
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

/// A launcher of a process namespace reports a signal N as the exit code 128 + N.
fn by_shell_code(code: i32) -> Ended {
    match code {
        129..=192 => Ended::Signaled(code - 128),
        _ => Ended::Exited(code),
    }
}

/// Where a program of the system lies. Never looked up in a PATH that a project could set.
fn system_program(name: &str) -> Result<PathBuf, String> {
    let folders = ["/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin"];
    let places = folders.map(|folder| PathBuf::from(folder).join(name));
    places.into_iter().find(|file| file.is_file()).ok_or_else(|| format!("{name} is not installed"))
}
