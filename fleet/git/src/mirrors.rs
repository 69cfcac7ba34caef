//! Bare copies of hubs on this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::{GitError, git, is_commit};

/// A folder of mirrors. One process uses it at a time.
#[derive(Debug)]
pub struct Mirrors {
    folder: PathBuf,
    open: Mutex<HashMap<String, Arc<Mutex<Mirror>>>>,
}

/// The copy of one hub. Nothing is ever removed from it: clones borrow its objects.
#[derive(Debug)]
pub struct Mirror {
    hub: String,
    folder: PathBuf,
}

impl Mirrors {
    /// Mirrors in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// The mirror of a hub; only one task has it at a time.
    pub async fn of(&self, hub: &str) -> Result<Arc<Mutex<Mirror>>, GitError> {
        let mut open = self.open.lock().await;
        if let Some(mirror) = open.get(hub) {
            return Ok(Arc::clone(mirror));
        }
        let name: String = Sha256::digest(hub).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)
            .map_err(|source| GitError::Folder { folder: folder.clone(), source })?;
        // Does nothing where the mirror exists.
        alone(&folder, &["init", "-q", "--bare", "."]).await?;
        let mirror = Arc::new(Mutex::new(Mirror { hub: hub.to_owned(), folder }));
        open.insert(hub.to_owned(), Arc::clone(&mirror));
        Ok(mirror)
    }
}

impl Mirror {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn hub(&self) -> &str {
        &self.hub
    }

    /// Makes sure that it has a commit; asks the hub only if it has not.
    pub async fn bring(&self, commit: &str) -> Result<(), GitError> {
        if self.has(commit).await {
            return Ok(());
        }
        self.refresh().await?;
        if self.has(commit).await {
            return Ok(());
        }
        // The result of another order is on no branch.
        alone(&self.folder, &["fetch", "-q", "--", &self.hub, commit]).await.map(drop)
    }

    /// Fetches all branches.
    pub async fn refresh(&self) -> Result<(), GitError> {
        let all = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        alone(&self.folder, &["fetch", "-q", "--no-tags", "--prune", "--", &self.hub, all[0], all[1]])
            .await
            .map(drop)
    }

    /// A work tree at `commit`, on a branch of its own, that borrows the mirror's objects.
    pub async fn check_out(&self, commit: &str, folder: &Path) -> Result<(), GitError> {
        let (from, to) = (self.folder.to_string_lossy(), folder.to_string_lossy());
        git(&self.folder, &["clone", "-q", "--shared", "--no-checkout", "--", &from, &to]).await?;
        git(folder, &["checkout", "-q", "-B", "fleet", commit]).await.map(drop)
    }

    /// The commit of a branch as of the last refresh; `None` if there is no such branch.
    pub async fn head(&self, branch: &str) -> Option<String> {
        let head = format!("refs/heads/{branch}^{{commit}}");
        let printed =
            git(&self.folder, &["rev-parse", "-q", "--verify", "--end-of-options", &head]).await.ok()?;
        Some(printed.trim().to_owned())
    }

    /// Whether `commit` is in the history of `head`. Whatever is no whole hash, such as the `+` of a forced push, is in none and
    /// has none.
    pub async fn contains(&self, head: &str, commit: &str) -> bool {
        let are_commits = is_commit(head) && is_commit(commit);
        are_commits && git(&self.folder, &["merge-base", "--is-ancestor", commit, head]).await.is_ok()
    }

    /// Moves a branch of the hub forward to `commit`. Never forced: git refuses if that loses a commit of the branch, also one
    /// that somebody has pushed a moment ago.
    pub async fn advance(&self, branch: &str, commit: &str) -> Result<(), GitError> {
        let commit = git(&self.folder, &["rev-parse", "-q", "--verify", "--end-of-options", commit]).await?;
        let update = format!("{}:refs/heads/{branch}", commit.trim());
        git(&self.folder, &["push", "-q", "--", &self.hub, &update]).await.map(drop)
    }

    /// The names in the hub below `refs/fleet/`.
    pub async fn results(&self) -> Result<Vec<String>, GitError> {
        let listed = git(&self.folder, &["ls-remote", "--", &self.hub, "refs/fleet/*"]).await?;
        Ok(listed.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect())
    }

    /// Removes names from the hub.
    pub async fn remove(&self, names: &[String]) -> Result<(), GitError> {
        // A command line has its limits.
        for names in names.chunks(500) {
            let updates: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
            let mut args = vec!["push", "-q", "--", &self.hub];
            args.extend(updates.iter().map(String::as_str));
            git(&self.folder, &args).await?;
        }
        Ok(())
    }

    async fn has(&self, commit: &str) -> bool {
        git(&self.folder, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).await.is_ok()
    }
}

/// Runs git in a mirror. Only one task has it, so a lock that is in the way was left by a git that was killed, and would be in the
/// way forever.
async fn alone(folder: &Path, args: &[&str]) -> Result<String, GitError> {
    match git(folder, args).await {
        Err(_) if unlock(folder) > 0 => git(folder, args).await,
        done => done,
    }
}

/// Removes locks of refs and settings; how many there were. Git allows no branch such a name.
fn unlock(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let remove = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() && entry.file_name() != "objects" => unlock(&entry.path()),
        Ok(kind) if kind.is_file() && entry.path().extension().is_some_and(|end| end == "lock") => {
            usize::from(std::fs::remove_file(entry.path()).is_ok())
        }
        _ => 0,
    };
    entries.map(remove).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn commit(hub: &Path) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        git(hub, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "more"]].concat()).await.unwrap();
        git(hub, &["rev-parse", "HEAD"]).await.unwrap().trim().to_owned()
    }

    #[tokio::test]
    async fn a_branch_of_the_hub_only_moves_forward() {
        let scratch = tempfile::tempdir().unwrap();
        let hub = scratch.path().join("hub");
        std::fs::create_dir(&hub).unwrap();
        git(&hub, &["init", "-q", "-b", "main"]).await.unwrap();
        let first = commit(&hub).await;
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        let alone = [&who[..], &["commit-tree", "-m", "alone", "HEAD^{tree}"]].concat();
        let orphan = git(&hub, &alone).await.unwrap().trim().to_owned();
        git(&hub, &["branch", "orphan", &orphan]).await.unwrap();
        git(&hub, &["checkout", "-q", "-b", "next"]).await.unwrap();
        let next = commit(&hub).await;
        let mirror = Mirrors::new(scratch.path().join("mirrors")).of(hub.to_str().unwrap()).await.unwrap();
        let mirror = mirror.lock().await;
        mirror.refresh().await.unwrap();
        for refused in [&orphan, &format!("+{orphan}")] {
            assert!(!mirror.contains(refused, &first).await);
            mirror.advance("main", refused).await.unwrap_err();
        }
        assert_eq!(git(&hub, &["rev-parse", "main"]).await.unwrap().trim(), first);
        assert!(mirror.contains(&next, &first).await);
        mirror.advance("main", &next).await.unwrap();
        assert_eq!(git(&hub, &["rev-parse", "main"]).await.unwrap().trim(), next);
    }

    #[tokio::test]
    async fn stale_locks_of_a_killed_git_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let hub = scratch.path().join("hub");
        std::fs::create_dir(&hub).unwrap();
        git(&hub, &["init", "-q", "-b", "main"]).await.unwrap();
        let address = hub.to_str().unwrap();
        let first = commit(&hub).await;
        let mirrors = || Mirrors::new(scratch.path().join("mirrors"));
        let mirror = mirrors().of(address).await.unwrap();
        mirror.lock().await.bring(&first).await.unwrap();
        let second = commit(&hub).await;
        for lock in ["config.lock", "packed-refs.lock", "refs/heads/main.lock"] {
            std::fs::write(mirror.lock().await.folder.join(lock), "").unwrap();
        }
        let mirror = mirrors().of(address).await.unwrap();
        mirror.lock().await.refresh().await.unwrap();
        assert_eq!(mirror.lock().await.head("main").await, Some(second));
    }
}
