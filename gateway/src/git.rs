//! Git, as a worker uses it: a mirror in the cache, a clone of it for one attempt, a push of the result.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sha2::{Digest as _, Sha256};
use tokio::process::{Child, Command};

use crate::store::hex;
use crate::wire::is_hash;

/// A transfer that takes longer is not going to end.
const PATIENCE: Duration = Duration::from_mins(10);
/// A remote that does not say which refs it has for this long is lost.
const ANSWER: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(100);
/// Of an error, for people.
const LINES: usize = 8;
/// Whoever has the mirror's lock is alone with it: a lock of git's that is in the way was left by a git that was killed. The lock
/// is held by all processes of the command together, so it also outlives a worker that is killed while its git goes on.
const ALONE: &str = r#"find . -name '*.lock' -not -path './objects/*' -delete; exec "$@""#;

/// The processes of one command; dropping this ends them. Git's transports would wait on for a remote that says nothing.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// Of a child that leads it.
    pub(crate) fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
        )
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It may have ended since.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// Waits until none of them is left.
    pub(crate) async fn end(&self) {
        while self
            .0
            .is_some_and(|leader| test_kill_process_group(leader).is_ok())
        {
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The number may be another group's by now.
    pub(crate) fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SIGTERM lets git remove its locks.
        self.signal(Signal::TERM);
    }
}

/// A remote repository, by an address that git takes.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) url: String,
    mirror: PathBuf,
}

impl Remote {
    /// Its mirror lies in `cache`.
    pub(crate) fn new(url: &str, cache: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(
            !url.starts_with('-'),
            "`{url}` is not the address of a repository"
        );
        // Git hands addresses to programs that others see.
        let authority = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next());
        let user = authority.and_then(|authority| authority.rsplit_once('@'));
        anyhow::ensure!(
            user.is_none_or(|(user, _)| !user.contains(':') && !url.starts_with("http")),
            "the address of the repository names a user or a password; use a credential helper of git"
        );
        let hash = hex(&Sha256::digest(url));
        Ok(Self {
            url: url.to_owned(),
            mirror: cache.join(hash),
        })
    }

    /// The commit of a branch, a tag, a ref in full, or a commit in full; `None` if the remote has no such one.
    pub(crate) async fn resolve(&self, rev: &str) -> anyhow::Result<Option<String>> {
        if is_hash(rev) {
            return Ok(Some(rev.to_owned()));
        }
        let full = rev == "HEAD" || rev.starts_with("refs/");
        let names = if full {
            vec![rev.to_owned()]
        } else {
            vec![format!("refs/heads/{rev}"), format!("refs/tags/{rev}")]
        };
        // Of a tag with a text of its own, the commit that it is for.
        let asked = names
            .iter()
            .flat_map(|name| [format!("{name}^{{}}"), name.clone()])
            .collect::<Vec<_>>();
        let mut args = vec!["ls-remote", "--", &self.url];
        args.extend(asked.iter().map(String::as_str));
        let listed = run(ANSWER, Path::new("/"), &["git"], &args).await?;
        let found = |name: &String| {
            let mut lines = listed.lines().filter_map(|line| line.split_once('\t'));
            lines
                .find(|(_, ref_name)| ref_name == name)
                .map(|(commit, _)| commit.to_owned())
        };
        Ok(asked.iter().find_map(found))
    }

    /// A work tree at `commit`, on a branch of its own. It knows the mirror and not the remote, and shares no file with it.
    pub(crate) async fn check_out(&self, commit: &str, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.mirror)
            .with_context(|| format!("{} cannot be made", self.mirror.display()))?;
        // Git sets a ref when all that it needs is there. The commit alone may be there earlier, in the middle of a fetch.
        let whole = format!("refs/whole/{commit}");
        if run(
            ANSWER,
            &self.mirror,
            &["git"],
            &["rev-parse", "-q", "--verify", &whole],
        )
        .await
        .is_err()
        {
            self.alone(&["init", "-q", "--bare", "."]).await?;
            let refs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
            let fetch = [
                "fetch",
                "-q",
                "--no-tags",
                "--no-write-fetch-head",
                "--prune",
                "--",
                &self.url,
            ];
            self.alone(&[&fetch[..], &refs[..]].concat()).await?;
            // Asks the remote only if no branch has it.
            let one = format!("{commit}:{whole}");
            self.alone(&[
                "fetch",
                "-q",
                "--no-tags",
                "--no-write-fetch-head",
                "--",
                &self.url,
                &one,
            ])
            .await?;
        }
        let (from, to) = (self.mirror.to_string_lossy(), folder.to_string_lossy());
        git(
            &self.mirror,
            &[
                "clone",
                "-q",
                "--no-hardlinks",
                "--no-checkout",
                "--no-tags",
                "--",
                &from,
                &to,
            ],
        )
        .await?;
        // Empty mirrors' clones have no branch that the commit is on.
        git(folder, &["fetch", "-q", "--no-tags", "--", &from, &whole]).await?;
        git(folder, &["checkout", "-q", "-B", "code-commit", commit])
            .await
            .map(drop)
    }

    /// Gives the result's commit a name in the remote. Never forced. From the mirror, because the order's program may have left
    /// commands in the configuration of `folder`: that gives its objects only.
    pub(crate) async fn push(&self, folder: &Path, reference: &str) -> anyhow::Result<String> {
        let from = folder.to_string_lossy();
        let listed = git(&self.mirror, &["ls-remote", "--", &from, "HEAD"]).await?;
        let commit = listed.split_whitespace().next();
        let commit = commit.context("the result has no commit")?.to_owned();
        let objects = format!("GIT_ALTERNATE_OBJECT_DIRECTORIES={from}/.git/objects");
        let named = format!("{commit}:{reference}");
        let push = ["push", "-q", "--", &self.url, &named];
        run(PATIENCE, &self.mirror, &["env", &objects, "git"], &push).await?;
        Ok(commit)
    }

    async fn alone(&self, args: &[&str]) -> anyhow::Result<String> {
        let lock = self.mirror.with_extension("flock");
        let lock = lock.to_string_lossy();
        run(
            PATIENCE,
            &self.mirror,
            &["flock", &lock, "sh", "-c", ALONE, "sh", "git"],
            args,
        )
        .await
    }
}

async fn git(folder: &Path, args: &[&str]) -> anyhow::Result<String> {
    run(PATIENCE, folder, &["git"], args).await
}

/// Runs git in `folder` and returns what it prints. No transport that runs a command is allowed, no hook runs, and git never asks.
async fn run(
    limit: Duration,
    folder: &Path,
    program: &[&str],
    args: &[&str],
) -> anyhow::Result<String> {
    let name = args.first().copied().unwrap_or_default();
    let (first, rest) = program.split_first().context("no program")?;
    #[expect(clippy::disallowed_methods, reason = "this module starts git")]
    let mut command = Command::new(first);
    // The repository is the one that we say, also where a hook of git starts us.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        command.env_remove(name);
    }
    let quiet = [
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ];
    command
        .args(rest)
        .args(quiet)
        .args(args)
        .current_dir(folder);
    command
        .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command
        .spawn()
        .with_context(|| format!("{first} cannot be started"))?;
    let group = Group::of(&child);
    let done = tokio::time::timeout(limit, child.wait_with_output()).await;
    let done =
        done.with_context(|| format!("git {name} took longer than {} s", limit.as_secs()))??;
    group.has_ended();
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    // The last line alone often says only that it failed, and one of those before it says why.
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = lines
        .get(lines.len().saturating_sub(LINES)..)
        .unwrap_or_default();
    anyhow::bail!(
        "git {name}: {}",
        if last.is_empty() {
            done.status.to_string()
        } else {
            last.join("; ")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transport_that_runs_a_command_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let remote = Remote::new("ext::sh -c 'touch /tmp/never'", scratch.path()).unwrap();
        let error = remote.resolve("main").await.unwrap_err().to_string();
        assert!(error.contains("not allowed"), "{error}");
        for (url, is_good) in [
            ("--upload-pack=touch", false),
            ("https://user:password@host/path", false),
            ("https://token@host/path", false),
            ("ssh://user:password@host/path", false),
            ("ssh://git@host/path", true),
            ("git@host:path", true),
            ("https://host/@path", true),
        ] {
            assert_eq!(Remote::new(url, scratch.path()).is_ok(), is_good, "{url}");
        }
    }

    #[tokio::test]
    async fn locks_of_a_git_that_was_killed_do_not_matter() {
        let scratch = tempfile::tempdir().unwrap();
        let hub = scratch.path().join("hub");
        std::fs::create_dir(&hub).unwrap();
        git(&hub, &["init", "-q", "-b", "main"]).await.unwrap();
        let mut commits = Vec::new();
        for _ in 0..2 {
            let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
            git(
                &hub,
                &[&who[..], &["commit", "-q", "--allow-empty", "-m", "a"]].concat(),
            )
            .await
            .unwrap();
            let remote = Remote::new(hub.to_str().unwrap(), &scratch.path().join("cache")).unwrap();
            let commit = remote.resolve("main").await.unwrap().unwrap();
            let tree = scratch.path().join(format!("tree-{}", commits.len()));
            remote.check_out(&commit, &tree).await.unwrap();
            for lock in ["config.lock", "packed-refs.lock", "refs/heads/main.lock"] {
                std::fs::write(remote.mirror.join(lock), "").unwrap();
            }
            commits.push(commit);
        }
        assert_ne!(commits[0], commits[1]);
    }
}
