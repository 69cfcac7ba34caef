//! The Docker daemon, asked through its client.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::RUN_MARKER;
use crate::owner;
use crate::program::program;
use crate::temporary::in_temporary;
use crate::trusted::system_program;
use crate::wait::wait_for;

/// How long the daemon may take to answer: storing an image is slow on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running container. Killing the client does not stop it: it must be removed by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(super) name: String,
    pub(super) host: Option<OsString>,
}

impl Container {
    /// Kills and removes it if it still exists.
    pub(crate) fn remove(&self) {
        // If the daemon does not answer, there is nothing more to do.
        let _ = ask(self.host.as_deref(), &["rm", "--force", &self.name]);
    }
}

/// The result for the containers that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Containers {
    /// How many were removed.
    pub removed: usize,
    /// The names of those that the daemon did not remove.
    pub left: Vec<String>,
}

/// Removes the containers of runs whose harness is dead. Containers of other harnesses are left
/// alone.
pub(crate) fn remove_orphans(host: Option<&OsStr>) -> Result<Containers, String> {
    let format = format!("{{{{.Names}}}} {{{{.Label \"{RUN_MARKER}\"}}}}");
    let filter = format!("label={RUN_MARKER}");
    let list = ask(
        host,
        &[
            "ps",
            "--all",
            "--no-trunc",
            "--filter",
            &filter,
            "--format",
            &format,
        ],
    )?;
    let orphans = list
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, marker)| owner::is_gone(marker));
    let mut containers = Containers::default();
    for (name, _) in orphans {
        match ask(host, &["rm", "--force", name]) {
            Ok(_) => containers.removed += 1,
            Err(_) => containers.left.push(name.to_owned()),
        }
    }
    Ok(containers)
}

/// The client, with no environment except the address of the daemon.
pub(super) fn client(host: Option<&OsStr>) -> Result<std::process::Command, String> {
    let mut client = program(system_program("docker")?);
    client
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nonexistent");
    if let Some(host) = host {
        client.arg("--host").arg(host);
    }
    Ok(client)
}

/// Sends one request to the daemon. The error is the first line of the client's output.
pub(super) fn ask(host: Option<&OsStr>, words: &[&str]) -> Result<String, String> {
    let file = || {
        in_temporary(std::env::temp_dir(), tempfile::tempfile_in).map_err(|error| error.to_string())
    };
    let (mut answer, mut said) = (file()?, file()?);
    let mut client = client(host)?;
    let copy = |file: &std::fs::File| file.try_clone().map_err(|error| error.to_string());
    client
        .args(words)
        .stdin(Stdio::null())
        .stdout(copy(&answer)?)
        .stderr(copy(&said)?);
    let mut child = client.spawn().map_err(|error| error.to_string())?;
    wait(&child);
    match child.try_wait() {
        Ok(Some(status)) if status.success() => Ok(text_of(&mut answer)),
        Ok(Some(_)) => Err(first_line(&text_of(&mut said))),
        Ok(None) | Err(_) => {
            let _ = child.kill().and_then(|()| child.wait());
            Err("the Docker daemon does not answer".to_owned())
        }
    }
}

fn wait(child: &std::process::Child) {
    let handle = Pid::from_raw(child.id().cast_signed()).ok_or(rustix::io::Errno::SRCH);
    if let Ok(handle) = handle.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        wait_for(&handle, PATIENCE);
    }
}

fn text_of(file: &mut std::fs::File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    // If it cannot be read back, there is no output.
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    text
}

fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or("docker failed without a message")
        .to_owned()
}
