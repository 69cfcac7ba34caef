//! Starts git, and nothing else: mirrors of hubs, clones of mirrors, pushes to hubs.
//!
//! Addresses come from whoever submits orders, so no transport that runs a command is allowed, no hook runs, and git never asks.

mod mirrors;
mod upon;

pub use mirrors::{Mirror, Mirrors};

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// A hub that does not answer for this long is not there.
const PATIENCE: Duration = Duration::from_mins(10);

/// Of an error, for people.
const LINES: usize = 8;

/// Why git did not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// It cannot be started.
    #[error("git cannot be started")]
    Start(#[source] std::io::Error),
    /// It took too long.
    #[error("git {command} took longer than {} s", PATIENCE.as_secs())]
    Slow {
        /// Its first argument.
        command: String,
    },
    /// It says so.
    #[error("git {command}: {message}")]
    Failed {
        /// Its first argument.
        command: String,
        /// The last lines that it printed.
        message: String,
    },
    /// A folder for mirrors cannot be made.
    #[error("{folder} cannot be made")]
    Folder {
        /// Which one.
        folder: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Runs git in `folder` and returns what it prints. Dropping the future kills it.
pub async fn git(folder: &Path, args: &[&str]) -> Result<String, GitError> {
    let command = || args.first().copied().unwrap_or_default().to_owned();
    #[expect(clippy::disallowed_methods, reason = "this crate starts git")]
    let mut git = tokio::process::Command::new("git");
    // The repository is the one that we say, also where a hook of git starts us.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        git.env_remove(name);
    }
    git.args(["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        .args(args)
        .current_dir(folder)
        .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let done = tokio::time::timeout(PATIENCE, git.output()).await;
    let done = done.map_err(|_| GitError::Slow { command: command() })?.map_err(GitError::Start)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    // The last line alone often says only that it failed, and one of those before it says why.
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let message = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("; ");
    let message = if message.is_empty() { done.status.to_string() } else { message };
    Err(GitError::Failed { command: command(), message })
}

/// The commit that `rev` names in the hub: a branch, a tag, or the commit itself in full.
pub async fn resolve(hub: &str, rev: &str) -> Result<String, GitError> {
    if is_commit(rev) {
        return Ok(rev.to_owned());
    }
    let listed = git(Path::new("/"), &["ls-remote", "--", hub, rev, &format!("{rev}^{{}}")]).await?;
    // A tag's own line comes before that of its commit.
    let line = listed.lines().last().and_then(|line| line.split('\t').next());
    let missing =
        || GitError::Failed { command: "ls-remote".into(), message: format!("{hub} has no `{rev}`") };
    line.map(str::to_owned).ok_or_else(missing)
}

fn is_commit(rev: &str) -> bool {
    matches!(rev.len(), 40 | 64) && rev.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transport_that_runs_a_command_is_refused() {
        let error = resolve("ext::sh -c 'touch /tmp/never'", "main").await.unwrap_err().to_string();
        assert!(error.contains("not allowed"), "{error}");
    }

    #[tokio::test]
    async fn an_address_that_looks_like_a_flag_is_none() {
        let error = resolve("--upload-pack=touch", "main").await.unwrap_err();
        assert!(matches!(error, GitError::Failed { .. }), "{error}");
    }

    #[test]
    fn only_a_whole_hash_is_a_commit() {
        assert!(is_commit(&"a1".repeat(20)) && is_commit(&"0f".repeat(32)));
        for other in ["main", "a1a1a1", &"A1".repeat(20), &"g1".repeat(20)] {
            assert!(!is_commit(other), "{other}");
        }
    }
}
