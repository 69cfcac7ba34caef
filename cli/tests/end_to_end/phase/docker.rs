//! A Docker daemon of the test's own: no registry, no bridge, a folder and a socket of its own.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon; it ends when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    host: String,
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts one, or says loudly why not.
    pub(crate) fn start() -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("dockerd-")
            .tempdir_in("/var/tmp")
            .unwrap();
        let host = format!("unix://{}/sock", folder.path().display());
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let started = Command::new("dockerd")
            .args([
                "--iptables=false",
                "--ip6tables=false",
                "--bridge=none",
                "-H",
                &host,
            ])
            .args([
                "--data-root",
                &at("data"),
                "--exec-root",
                &at("exec"),
                "--pidfile",
                &at("pid"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let Ok(child) = started else {
            return skipped("there is no dockerd");
        };
        let mut daemon = Self {
            child,
            host,
            folder,
        };
        let begun = Instant::now();
        while daemon.docker(&["version"]).is_none() {
            let is_over = daemon.child.try_wait().unwrap().is_some();
            if is_over || begun.elapsed() > Duration::from_secs(30) {
                let log =
                    std::fs::read_to_string(daemon.folder.path().join("log")).unwrap_or_default();
                return skipped(&format!(
                    "dockerd does not start: {}",
                    log.lines().last().unwrap_or_default()
                ));
            }
        }
        Some(daemon)
    }

    /// Where it listens.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Names of all containers, one a line.
    pub(crate) fn containers(&self) -> String {
        self.docker(&["ps", "--all", "--format", "{{.Names}}"])
            .unwrap()
    }

    fn docker(&self, args: &[&str]) -> Option<String> {
        let done = Command::new("docker")
            .arg("--host")
            .arg(&self.host)
            .args(args)
            .output()
            .ok()?;
        done.status
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: the roles in containers, because {why}");
    None
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SIGTERM lets it take its helpers down with it.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
        // The daemon leaves this mounted, so the folder could not be removed.
        let mounted = self.folder.path().join("exec/netns/default");
        let _ = Command::new("umount")
            .arg(mounted)
            .stderr(Stdio::null())
            .status();
    }
}
