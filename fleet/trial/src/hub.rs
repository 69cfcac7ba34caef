//! A bare repository, the orders for it and the vendor that answers them.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};

use crate::{Program, until};

/// The SHA-256 of an empty file.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A bare repository with a small project on branch `main`.
#[derive(Debug)]
pub struct Hub {
    project: Project,
    /// The first commit.
    pub base: String,
    /// Where it is served, if not as a folder.
    served: Option<String>,
}

impl Hub {
    /// A new one.
    pub fn new() -> anyhow::Result<Self> {
        let project = Project::with(&[
            ("scripts/verify.sh", "test -d done\n"),
            ("done/README", "results\n"),
        ])?;
        let base = project.git(&["rev-parse", "HEAD"])?.trim().to_owned();
        project.git(&["clone", "-q", "--bare", ".", "../hub.git"])?;
        Ok(Self {
            project,
            base,
            served: None,
        })
    }

    /// As for `git clone`.
    pub fn url(&self) -> String {
        self.served
            .clone()
            .unwrap_or_else(|| self.path().display().to_string())
    }

    /// Serves it by `git daemon` at this host, from the machine that the calling thread is on, as long as what this returns lives.
    pub fn serve(&mut self, host: &str) -> anyhow::Result<Program> {
        let git = Command::new("git").arg("--exec-path").output()?;
        // Started by git, it would outlive that.
        let mut daemon =
            Command::new(Path::new(String::from_utf8(git.stdout)?.trim()).join("git-daemon"));
        daemon.args([
            "--export-all",
            "--enable=receive-pack",
            &format!("--listen={host}"),
        ]);
        daemon.arg(format!("--base-path={}", self.scratch().display()));
        let daemon = Program::start(daemon, &self.scratch().join("daemon.log"))?;
        until("git daemon", || TcpStream::connect((host, 9418)).ok())?;
        self.served = Some(format!("git://{host}/hub.git"));
        Ok(daemon)
    }

    /// Runs git in it.
    pub fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        let done = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(args)
            .output()?;
        anyhow::ensure!(
            done.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(String::from_utf8(done.stdout)?)
    }

    /// Commits a file to `main`, as a person does in the meantime; the new head.
    pub fn push(&self, path: &str) -> anyhow::Result<String> {
        self.project
            .git(&["pull", "-q", "--rebase", "../hub.git", "main"])?;
        self.project.write(path, b"by a person\n")?;
        self.project.commit("by a person")?;
        self.project
            .git(&["push", "-q", "../hub.git", "HEAD:main"])?;
        Ok(self.project.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// The files of a commit that `base` does not have, with their content.
    pub fn added(&self, base: &str, commit: &str) -> anyhow::Result<Vec<(String, String)>> {
        let names = self.git(&["diff", "--name-only", "--diff-filter=A", base, commit])?;
        let changed = self.git(&["diff", "--name-only", base, commit])?;
        anyhow::ensure!(
            names == changed,
            "{commit} changes or removes files: {changed}"
        );
        let content = |name: &str| {
            Ok((
                name.to_owned(),
                self.git(&["show", &format!("{commit}:{name}")])?,
            ))
        };
        names.lines().map(content).collect()
    }

    /// A folder for a test's files, removed with the hub.
    pub fn scratch(&self) -> PathBuf {
        self.project.beside().to_owned()
    }

    fn path(&self) -> PathBuf {
        self.project.beside().join("hub.git")
    }
}

/// Order `number`: it wants one new file.
pub fn content(number: usize) -> anyhow::Result<String> {
    asks(number, &[])
}

/// Order `number`, whose commands fail where the result of the order before it is.
pub fn rival(number: usize) -> anyhow::Result<String> {
    asks(
        number,
        &[format!(
            "test ! -e done/{:05}.txt",
            number.saturating_sub(1)
        )],
    )
}

fn asks(number: usize, more: &[String]) -> anyhow::Result<String> {
    let mut commands = vec![format!("grep -x result-{number:05} done/{number:05}.txt")];
    commands.extend_from_slice(more);
    let order = serde_json::json!({
        "id": format!("order-{number:05}"),
        "title": "a result",
        "intent": format!("Write the result of order-{number:05}."),
        "allowed_files": [format!("done/{number:05}.txt")],
        "forbidden": [],
        "acceptance_commands": commands,
        "context_files": [],
        "notes": null
    });
    serde_json::to_string(&order).context("an order")
}

/// A service that answers orders 0 to `count`, each as often as it is asked. `delay_ms` is how long it thinks.
pub fn vendor(count: usize, delay_ms: u64) -> anyhow::Result<Server> {
    let script = (0..count).fold(Script::default(), |script, number| {
        let reply = serde_json::json!({
            "summary": "a result",
            "writes": [{
                "path": format!("done/{number:05}.txt"),
                "base_sha256": EMPTY,
                "content": format!("result-{number:05}\n"),
            }]
        });
        let step = Step {
            delay_ms,
            ..Step::text(&reply.to_string())
        };
        script.rule(&format!("the result of order-{number:05}."), step)
    });
    Ok(Server::start(script)?)
}

/// A service that takes what OpenTelemetry's exporters send.
pub fn collector() -> anyhow::Result<Server> {
    Ok(Server::start(
        Script::default().rule("POST /v1/traces", Step::status(200)),
    )?)
}
