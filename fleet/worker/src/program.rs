//! The ordinary program, started for one order.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::limits::Group;

/// What is passed on of the worker's environment. No key is in it: those are the gateway's.
const PASSED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CARGO_HOME"];
/// Clients ask for a key. The product takes a word this short for no secret, so it is redacted nowhere.
const NO_KEY: &str = "fleet";
/// Who commits.
const IDENTITY: [&str; 2] = ["AUTHOR", "COMMITTER"];
/// How long the program may take to put its things away.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What it says of itself.
pub(crate) async fn version(program: &Path) -> anyhow::Result<String> {
    let done = command(program, None).arg("--version").output().await;
    let done = done.with_context(|| format!("{} cannot be started", program.display()))?;
    anyhow::ensure!(done.status.success(), "{} does not say its version", program.display());
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// A running program, in a process group of its own; dropping it ends the whole group.
#[derive(Debug)]
pub(crate) struct Program {
    child: Option<Child>,
    group: Option<Group>,
}

impl Program {
    /// Starts it with its output in files.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        folder: &Path,
        output: &Path,
        group: Option<Group>,
    ) -> anyhow::Result<Self> {
        let file =
            |name: &str| File::create(output.join(name)).with_context(|| format!("{name} cannot be made"));
        let child = command(program, group.as_ref())
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?)
            .process_group(0)
            .spawn();
        let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
        Ok(Self { child: Some(child), group })
    }

    /// Its exit code; 128 and more if a signal ended it.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<i32> {
        let Some(child) = &mut self.child else { anyhow::bail!("it was ended") };
        let status = child.wait().await?;
        self.child = None;
        Ok(status.code().unwrap_or(128))
    }
}

impl Drop for Program {
    /// First asks, because the program leaves no process of its sandbox behind if it may end by itself.
    fn drop(&mut self) {
        let (Some(child), group) = (self.child.take(), self.group.take()) else { return };
        tokio::spawn(end(child, group));
    }
}

async fn end(mut child: Child, group: Option<Group>) {
    // Not waited for yet, so the number is still that of this child.
    let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    for signal in [Signal::TERM, Signal::KILL] {
        // The group may have ended since.
        leader.map(|leader| kill_process_group(leader, signal));
        if timeout(GRACE, child.wait()).await.is_ok() {
            break;
        }
    }
    drop(group);
}

fn command(program: &Path, group: Option<&Group>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this module starts the product")]
    let mut command = match group {
        None => Command::new(program),
        Some(group) => {
            let mut shell = Command::new("/bin/sh");
            // The shell enters the group and becomes the program, so nothing of it ever runs outside.
            shell.args(["-c", r#"echo 0 > "$0" && exec "$@""#]).arg(group.entrance()).arg(program);
            shell
        }
    };
    command.env_clear();
    #[expect(clippy::disallowed_methods, reason = "the environment is passed on here, name by name")]
    command.envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    for key in ["GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        command.env(key, NO_KEY);
    }
    for who in IDENTITY {
        command.env(format!("GIT_{who}_NAME"), "code-commit fleet");
        command.env(format!("GIT_{who}_EMAIL"), "code-commit-fleet@localhost");
    }
    command
}
