//! A program that a test can stop, continue and kill.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::postgres::children_of;
use crate::until;

/// A running program; dropping it kills it.
#[derive(Debug)]
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts it with its output in `log`.
    pub fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        Ok(Self { child })
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Kills it without warning and waits for its end.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        self.child.wait()?;
        Ok(())
    }

    /// Waits for its end; whether it ended well. An error after two minutes.
    pub fn wait(&mut self) -> anyhow::Result<bool> {
        let status = until("the end of a program", || self.child.try_wait().transpose())?;
        Ok(status?.success())
    }

    /// The time that processors have spent on it.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        // The name, in parentheses, may hold anything.
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let [user, system] = [11, 12].map(|at| {
            after_name
                .split(' ')
                .nth(at)
                .unwrap_or_default()
                .parse::<u64>()
        });
        // Linux counts in hundredths of a second there.
        Ok(Duration::from_millis((user? + system?) * 10))
    }

    /// Whether it runs no more.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn and_children(&self) -> anyhow::Result<Vec<Pid>> {
        let pid = self.pid()?;
        let mut all = children_of(pid)?;
        all.push(pid);
        Ok(all)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The network namespace that it is in.
    pub(crate) fn namespace(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("no pid")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.kill();
    }
}

/// The product's program, which the first call builds: the tests of the fleet use it as a user does.
pub fn product() -> anyhow::Result<PathBuf> {
    static BUILT: LazyLock<Result<PathBuf, String>> =
        LazyLock::new(|| build().map_err(|error| format!("{error:#}")));
    BUILT.clone().map_err(anyhow::Error::msg)
}

fn build() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--quiet", "--target-dir", "target"])
        .current_dir(&root);
    anyhow::ensure!(
        cargo.status()?.success(),
        "cannot build the program in {}",
        root.display()
    );
    Ok(root.join("target/debug/code-commit"))
}

/// A program of this workspace, built together with the test.
pub fn sibling(name: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test
        .parent()
        .and_then(Path::parent)
        .context("the test is nowhere")?;
    Ok(folder.join(name))
}
