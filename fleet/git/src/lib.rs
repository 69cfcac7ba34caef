//! Starts git, and nothing else: mirrors of hubs, clones of mirrors, pushes to hubs.
//!
//! Addresses come from whoever submits orders, so no transport that runs a command is allowed, no hook runs, and git never asks.

mod group;
mod mirrors;
mod names;
mod upon;

pub use mirrors::{Mirror, Mirrors};
pub use names::{Branch, CommitId, NameError};

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::group::Group;

/// A transfer that takes longer is not going to end.
const PATIENCE: Duration = Duration::from_mins(10);
/// A hub that does not say which refs it has for this long is not there.
const ANSWER: Duration = Duration::from_secs(30);

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
    #[error("git {command} took longer than {} s", limit.as_secs())]
    Slow {
        /// Its first argument.
        command: String,
        /// How long it was given.
        limit: Duration,
    },
    /// It says so.
    #[error("git {command}: {message}")]
    Failed {
        /// Its first argument.
        command: String,
        /// The last lines that it printed.
        message: String,
    },
    /// It was not even asked.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The hub has no such name.
    #[error("{hub} has no `{rev}`: name a branch, a tag, a ref in full, or a commit in full")]
    Missing {
        /// Which hub.
        hub: String,
        /// Which name.
        rev: String,
    },
    /// The hub has a branch and a tag of this name.
    #[error(
        "{hub} has a branch `{rev}` ({branch}) and a tag `{rev}` ({tag}): write refs/heads/{rev} or refs/tags/{rev}"
    )]
    Ambiguous {
        /// Which hub.
        hub: String,
        /// Which name.
        rev: String,
        /// The head of the branch.
        branch: CommitId,
        /// The commit of the tag.
        tag: CommitId,
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

/// Runs git in `folder` and returns what it prints. Dropping the future ends it.
pub async fn git(folder: &Path, args: &[&str]) -> Result<String, GitError> {
    git_within(PATIENCE, folder, args).await
}

async fn git_within(limit: Duration, folder: &Path, args: &[&str]) -> Result<String, GitError> {
    let command = || args.first().copied().unwrap_or_default().to_owned();
    #[expect(clippy::disallowed_methods, reason = "this crate starts git")]
    let mut git = tokio::process::Command::new("git");
    // The repository is the one that we say, also where a hook of git starts us.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
    ] {
        git.env_remove(name);
    }
    git.args([
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ])
    .args(args)
    .current_dir(folder)
    .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
    .env("GIT_TERMINAL_PROMPT", "0")
    .stdin(Stdio::null())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .process_group(0);
    let child = git.spawn().map_err(GitError::Start)?;
    let group = Group::of(&child);
    let done = tokio::time::timeout(limit, child.wait_with_output()).await;
    let done = done
        .map_err(|_| GitError::Slow {
            command: command(),
            limit,
        })?
        .map_err(GitError::Start)?;
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
    let message = lines
        .get(lines.len().saturating_sub(LINES)..)
        .unwrap_or_default()
        .join("; ");
    let message = if message.is_empty() {
        done.status.to_string()
    } else {
        message
    };
    Err(GitError::Failed {
        command: command(),
        message,
    })
}

/// The commit that `rev` names in the hub: a branch, a tag, a ref in full, `HEAD`, or the commit itself in full.
pub async fn resolve(hub: &str, rev: &str) -> Result<CommitId, GitError> {
    if let Ok(commit) = rev.parse() {
        return Ok(commit);
    }
    if !names::is_ref(rev) {
        return Err(NameError::Ref(rev.escape_debug().to_string()).into());
    }
    if rev == "HEAD" || rev.starts_with("refs/") {
        let [commit] = look_up(hub, [rev.to_owned()]).await?;
        return commit.ok_or_else(|| GitError::Missing {
            hub: hub.to_owned(),
            rev: rev.to_owned(),
        });
    }
    let (hub, rev) = (hub.to_owned(), rev.to_owned());
    match look_up(
        &hub,
        [format!("refs/heads/{rev}"), format!("refs/tags/{rev}")],
    )
    .await?
    {
        [Some(branch), Some(tag)] => Err(GitError::Ambiguous {
            hub,
            rev,
            branch,
            tag,
        }),
        [Some(commit), None] | [None, Some(commit)] => Ok(commit),
        [None, None] => Err(GitError::Missing { hub, rev }),
    }
}

/// The commit of each of these refs. Git takes a name for the end of one, so `main` alone would also be `release/main`.
async fn look_up<const N: usize>(
    hub: &str,
    names: [String; N],
) -> Result<[Option<CommitId>; N], GitError> {
    let peeled = |name: &String| format!("{name}^{{}}");
    let asked: Vec<String> = names
        .iter()
        .flat_map(|name| [name.clone(), peeled(name)])
        .collect();
    let args = ["ls-remote", "--", hub]
        .into_iter()
        .chain(asked.iter().map(String::as_str));
    let listed = git_within(ANSWER, Path::new("/"), &args.collect::<Vec<_>>()).await?;
    let found: BTreeMap<&str, &str> = listed
        .lines()
        .filter_map(|line| line.split_once('\t').map(|(id, name)| (name, id)))
        .collect();
    // Of a tag with a text of its own, the commit that it is for.
    let commit = |name: String| {
        found
            .get(&*peeled(&name))
            .or_else(|| found.get(&*name))?
            .parse()
            .ok()
    };
    Ok(names.map(commit))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_transport_that_runs_a_command_is_refused() {
        let error = resolve("ext::sh -c 'touch /tmp/never'", "main")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("not allowed"), "{error}");
    }

    #[tokio::test]
    async fn an_address_that_looks_like_a_flag_is_none() {
        let error = resolve("--upload-pack=touch", "main").await.unwrap_err();
        assert!(matches!(error, GitError::Failed { .. }), "{error}");
    }

    #[tokio::test]
    async fn nothing_of_a_git_that_waits_for_a_silent_hub_is_left() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = format!("http://{}/hub", silent.local_addr().unwrap());
        let args = ["ls-remote", "--", &hub];
        let asked = git_within(Duration::from_millis(500), Path::new("/"), &args);
        let (asked, accepted) = tokio::join!(asked, silent.accept());
        assert!(matches!(asked, Err(GitError::Slow { .. })), "{asked:?}");
        // The transport is a process of its own; with its end the connection ends.
        let (mut connection, _) = accepted.unwrap();
        connection.read_to_end(&mut Vec::new()).await.unwrap();
    }

    #[tokio::test]
    async fn a_name_means_the_ref_that_has_exactly_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (hub, who) = (
            scratch.path(),
            ["-c", "user.name=a", "-c", "user.email=a@example.invalid"],
        );
        let run = async |args: &[&str]| git(hub, &[&who[..], args].concat()).await.unwrap();
        run(&["init", "-q", "-b", "main"]).await;
        let mut commits = Vec::new();
        for branch in ["release/main", "both", "main"] {
            run(&["checkout", "-q", "-B", branch]).await;
            run(&["commit", "-q", "--allow-empty", "-m", branch]).await;
            commits.push(run(&["rev-parse", "HEAD"]).await.trim().to_owned());
        }
        run(&["tag", "-a", "-m", "first", "v1", &commits[0]]).await;
        run(&["tag", "both", &commits[0]]).await;
        let hub = hub.to_str().unwrap();
        for (rev, expected) in [
            ("main", &commits[2]),
            ("HEAD", &commits[2]),
            ("v1", &commits[0]),
            ("refs/tags/v1", &commits[0]),
            ("refs/heads/both", &commits[1]),
            (commits[1].as_str(), &commits[1]),
        ] {
            assert_eq!(
                resolve(hub, rev).await.unwrap().to_string(),
                *expected,
                "{rev}"
            );
        }
        for rev in ["elease/main", "heads/main", "refs/heads/*", "m*", "", "no"] {
            resolve(hub, rev).await.unwrap_err();
        }
        let error = resolve(hub, "both").await.unwrap_err().to_string();
        assert!(
            commits[..2].iter().all(|commit| error.contains(commit)),
            "{error}"
        );
    }
}
