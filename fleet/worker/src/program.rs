//! The ordinary program, started for one order.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_llm::Provider;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::limits::Group;

/// Variables that the program inherits. None of them is a key: keys are the gateway's.
const PASSED: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "CARGO_HOME",
];
/// Clients ask for a key. The product takes a word this short for no secret, so it is redacted nowhere.
const NO_KEY: &str = "fleet";
/// Author and committer of results.
const IDENTITY: [&str; 2] = ["AUTHOR", "COMMITTER"];
/// How long the program may take to put its things away.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// The ordinary program.
#[derive(Debug)]
pub(crate) struct Ordinary {
    pub(crate) path: PathBuf,
    /// Trusted by it instead of the system's authorities; a file of certificates in PEM.
    pub(crate) authority: Option<PathBuf>,
}

/// The program's version line.
pub(crate) async fn version(program: &Ordinary) -> anyhow::Result<String> {
    let done = command(program, None).arg("--version").output().await;
    let done = done.with_context(|| format!("{} cannot be started", program.path.display()))?;
    anyhow::ensure!(
        done.status.success(),
        "{} does not say its version",
        program.path.display()
    );
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// How a program is started.
#[derive(Debug)]
pub(crate) struct Start<'s> {
    pub(crate) program: &'s Ordinary,
    pub(crate) folder: &'s Path,
    /// The folder for files with its output.
    pub(crate) output: &'s Path,
    /// Where it reaches models. It holds the token of a lease, and everybody on the machine can read a command line.
    pub(crate) models: Option<&'s str>,
    pub(crate) group: Option<Group>,
    /// Runs its end if it is dropped.
    pub(crate) ends: &'s TaskTracker,
}

/// A running program, in a process group of its own; dropping it ends the whole group.
#[derive(Debug)]
pub(crate) struct Program {
    child: Option<Child>,
    group: Option<Group>,
    ends: TaskTracker,
}

impl Program {
    /// Starts it with its output in files.
    pub(crate) fn start<A: AsRef<OsStr>>(
        start: Start<'_>,
        args: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<Self> {
        let Start {
            program,
            folder,
            output,
            models,
            group,
            ends,
        } = start;
        let file = |name: &str| {
            File::create(output.join(name)).with_context(|| format!("{name} cannot be made"))
        };
        let addresses = Provider::all_built_in()
            .iter()
            .filter_map(|provider| provider.base_env.as_ref());
        let child = command(program, group.as_ref())
            .args(args)
            // Each dialect has paths of its own, so one address serves them all.
            .envs(addresses.filter_map(|variable| Some((variable, models?))))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?)
            .process_group(0)
            // Where the worker itself ends before the program does.
            .kill_on_drop(true)
            .spawn();
        let child =
            child.with_context(|| format!("{} cannot be started", program.path.display()))?;
        Ok(Self {
            child: Some(child),
            group,
            ends: ends.clone(),
        })
    }

    /// Its exit code; 128 and more if a signal ended it.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<i32> {
        let Some(child) = &mut self.child else {
            anyhow::bail!("it was ended")
        };
        let status = child.wait().await?;
        self.child = None;
        Ok(status.code().unwrap_or(128))
    }
}

impl Drop for Program {
    /// SIGTERM comes first: it lets the program end the processes in its sandbox.
    fn drop(&mut self) {
        let (Some(child), group) = (self.child.take(), self.group.take()) else {
            return;
        };
        self.ends.spawn(end(child, group));
    }
}

async fn end(mut child: Child, group: Option<Group>) {
    // Not waited for yet, so the number is still that of this child.
    let leader = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    for signal in [Signal::TERM, Signal::KILL] {
        // The group may have ended since.
        leader.map(|leader| kill_process_group(leader, signal));
        if timeout(GRACE, child.wait()).await.is_ok() {
            break;
        }
    }
    drop(group);
}

/// What each program is started by: it ends with the worker even where that is killed. Nobody would read its result, and it would
/// go on asking the model for as long as the lease holds.
const WITH_WORKER: [&str; 4] = ["setpriv", "--pdeathsig", "TERM", "--"];

fn command(program: &Ordinary, group: Option<&Group>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this module starts the product")]
    let mut command = Command::new("/usr/bin/env");
    if let Some(group) = group {
        // The shell enters the group and becomes the program, so nothing of it ever runs outside.
        command
            .args(["sh", "-c", r#"echo 0 > "$0" && exec "$@""#])
            .arg(group.entrance());
    }
    command.args(WITH_WORKER).arg(&program.path);
    command.env_clear();
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is passed on here, name by name"
    )]
    command.envs(
        PASSED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    command.envs(program.authority.iter().map(|file| ("SSL_CERT_FILE", file)));
    let keys = Provider::all_built_in()
        .iter()
        .flat_map(|provider| &provider.key_env);
    command.envs(keys.map(|key| (key, NO_KEY)));
    for who in IDENTITY {
        command.env(format!("GIT_{who}_NAME"), "code-commit fleet");
        command.env(format!("GIT_{who}_EMAIL"), "code-commit-fleet@localhost");
    }
    command
}
