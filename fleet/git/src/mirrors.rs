//! Bare copies of hubs on this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, OnceCell};

use crate::{ANSWER, Branch, CommitId, GitError, NameError, git, git_within, names};

/// A folder of mirrors. One process uses it at a time.
#[derive(Debug)]
pub struct Mirrors {
    folder: PathBuf,
    open: Mutex<HashMap<String, Arc<Mirror>>>,
}

/// The copy of one hub. Nothing is ever removed from it: clones borrow its objects. Many tasks may use it at a time; those that
/// fetch wait for each other.
#[derive(Debug)]
pub struct Mirror {
    hub: String,
    folder: PathBuf,
    made: OnceCell<()>,
    fetching: Mutex<()>,
}

impl Mirrors {
    /// Mirrors in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            open: Mutex::default(),
        }
    }

    /// The mirror of a hub.
    pub async fn of(&self, hub: &str) -> Result<Arc<Mirror>, GitError> {
        let mirror = || Arc::new(Mirror::new(&self.folder, hub));
        // Held for no longer than it takes to look: hubs do not wait for each other.
        let mirror = Arc::clone(
            self.open
                .lock()
                .await
                .entry(hub.to_owned())
                .or_insert_with(mirror),
        );
        mirror.made.get_or_try_init(|| make(&mirror.folder)).await?;
        Ok(mirror)
    }
}

/// Does nothing where the mirror exists.
async fn make(folder: &Path) -> Result<(), GitError> {
    std::fs::create_dir_all(folder).map_err(|source| GitError::Folder {
        folder: folder.to_owned(),
        source,
    })?;
    alone(folder, &["init", "-q", "--bare", "."])
        .await
        .map(drop)
}

impl Mirror {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn hub(&self) -> &str {
        &self.hub
    }

    fn new(mirrors: &Path, hub: &str) -> Self {
        let name: String = Sha256::digest(hub)
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (made, fetching) = (OnceCell::new(), Mutex::default());
        Self {
            hub: hub.to_owned(),
            folder: mirrors.join(name),
            made,
            fetching,
        }
    }

    /// Makes sure that it has a commit with all of its history, and returns that; asks the hub only if it has not.
    pub async fn bring(&self, commit: &str) -> Result<CommitId, GitError> {
        let commit: CommitId = commit.parse()?;
        // Git sets a ref when all that it needs is there. The commit alone may be there earlier, in the middle of a fetch.
        let whole = format!("refs/whole/{commit}");
        if self.has(&whole).await {
            return Ok(commit);
        }
        self.answers().await?;
        let _fetching = self.fetching.lock().await;
        if !self.has(&whole).await {
            self.fetch_all().await?;
            // Asks the hub only if no branch has it: the result of another order is on none.
            let one = format!("{commit}:{whole}");
            alone(
                &self.folder,
                &["fetch", "-q", "--no-tags", "--", &self.hub, &one],
            )
            .await?;
        }
        Ok(commit)
    }

    /// Fetches all branches.
    pub async fn refresh(&self) -> Result<(), GitError> {
        self.answers().await?;
        let _fetching = self.fetching.lock().await;
        self.fetch_all().await
    }

    /// Fails if the hub is not there. Without the lock, so that of many tasks none waits for the others to find that out.
    async fn answers(&self) -> Result<(), GitError> {
        git_within(
            ANSWER,
            &self.folder,
            &["ls-remote", "-q", "--", &self.hub, "HEAD"],
        )
        .await
        .map(drop)
    }

    async fn fetch_all(&self) -> Result<(), GitError> {
        let all = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        alone(
            &self.folder,
            &[
                "fetch",
                "-q",
                "--no-tags",
                "--prune",
                "--",
                &self.hub,
                all[0],
                all[1],
            ],
        )
        .await
        .map(drop)
    }

    /// A work tree at `commit`, on a branch of its own, that borrows the mirror's objects.
    pub async fn check_out(&self, commit: &CommitId, folder: &Path) -> Result<(), GitError> {
        let (from, to) = (self.folder.to_string_lossy(), folder.to_string_lossy());
        git(
            &self.folder,
            &["clone", "-q", "--shared", "--no-checkout", "--", &from, &to],
        )
        .await?;
        git(folder, &["checkout", "-q", "-B", "fleet", commit.as_str()])
            .await
            .map(drop)
    }

    /// The commit of a branch as of the last refresh; `None` if there is no such branch.
    pub async fn head(&self, branch: &str) -> Option<String> {
        let branch: Branch = branch.parse().ok()?;
        let printed = git(
            &self.folder,
            &["rev-parse", "-q", "--verify", &branch.full()],
        )
        .await
        .ok()?;
        Some(printed.trim().to_owned())
    }

    /// Whether `commit` is in the history of `head`. Whatever is not a commit id in full, such as the `+` of a forced push, is in
    /// none and has none.
    pub async fn contains(&self, head: &str, commit: &str) -> bool {
        let (Ok(head), Ok(commit)) = (head.parse::<CommitId>(), commit.parse::<CommitId>()) else {
            return false;
        };
        let args = [
            "merge-base",
            "--is-ancestor",
            commit.as_str(),
            head.as_str(),
        ];
        git(&self.folder, &args).await.is_ok()
    }

    /// Moves a branch of the hub forward to `commit`. Never forced: git refuses if that loses a commit of the branch, also one
    /// that somebody has pushed a moment ago.
    pub async fn advance(&self, branch: &str, commit: &str) -> Result<(), GitError> {
        let (branch, commit): (Branch, CommitId) = (branch.parse()?, commit.parse()?);
        let update = format!("{commit}:{}", branch.full());
        git(&self.folder, &["push", "-q", "--", &self.hub, &update])
            .await
            .map(drop)
    }

    /// The names in the hub below `refs/fleet/`.
    pub async fn results(&self) -> Result<Vec<String>, GitError> {
        let listed = git(
            &self.folder,
            &["ls-remote", "--", &self.hub, "refs/fleet/*"],
        )
        .await?;
        Ok(listed
            .lines()
            .filter_map(|line| Some(line.split_once('\t')?.1.to_owned()))
            .collect())
    }

    /// Removes names below `refs/fleet/` from the hub.
    pub async fn remove(&self, names: &[String]) -> Result<(), GitError> {
        if let Some(other) = names
            .iter()
            .find(|name| !(name.starts_with("refs/fleet/") && names::is_ref(name)))
        {
            return Err(NameError::Ref(other.escape_debug().to_string()).into());
        }
        // A command line has its limits.
        for names in names.chunks(500) {
            let updates: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
            let mut args = vec!["push", "-q", "--", &self.hub];
            args.extend(updates.iter().map(String::as_str));
            git(&self.folder, &args).await?;
        }
        Ok(())
    }

    async fn has(&self, reference: &str) -> bool {
        git(&self.folder, &["rev-parse", "-q", "--verify", reference])
            .await
            .is_ok()
    }
}

/// Runs git in a mirror while no other task writes there: a lock that is in the way was left by a git that was killed, and would
/// be in the way forever.
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
        git(
            hub,
            &[&who[..], &["commit", "-q", "--allow-empty", "-m", "more"]].concat(),
        )
        .await
        .unwrap();
        git(hub, &["rev-parse", "HEAD"])
            .await
            .unwrap()
            .trim()
            .to_owned()
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
        let mirror = Mirrors::new(scratch.path().join("mirrors"))
            .of(hub.to_str().unwrap())
            .await
            .unwrap();
        mirror.refresh().await.unwrap();
        for refused in [&orphan, &format!("+{orphan}")] {
            assert!(!mirror.contains(refused, &first).await);
            mirror.advance("main", refused).await.unwrap_err();
        }
        mirror.advance("main", "").await.unwrap_err();
        mirror
            .advance("main:refs/heads/next", &next)
            .await
            .unwrap_err();
        assert_eq!(
            git(&hub, &["rev-parse", "main"]).await.unwrap().trim(),
            first
        );
        assert!(mirror.contains(&next, &first).await);
        mirror.advance("main", &next).await.unwrap();
        assert_eq!(
            git(&hub, &["rev-parse", "main"]).await.unwrap().trim(),
            next
        );
    }

    #[tokio::test]
    async fn what_is_no_commit_is_not_brought() {
        let scratch = tempfile::tempdir().unwrap();
        git(scratch.path(), &["init", "-q", "-b", "main"])
            .await
            .unwrap();
        let commit = commit(scratch.path()).await;
        let hub = scratch.path().to_str().unwrap();
        let mirror = Mirrors::new(scratch.path().join("mirrors"))
            .of(hub)
            .await
            .unwrap();
        mirror
            .remove(&["refs/heads/main".to_owned()])
            .await
            .unwrap_err();
        for refused in [
            "",
            "main",
            "HEAD",
            "a1a1a1a1a1a1",
            &format!("+{commit}"),
            &format!("{commit}:x"),
        ] {
            assert!(mirror.bring(refused).await.is_err(), "{refused}");
        }
        mirror.bring(&commit).await.unwrap();
    }

    #[tokio::test]
    async fn a_hub_that_says_nothing_delays_no_other_and_nobody_who_has_the_commit() {
        let scratch = tempfile::tempdir().unwrap();
        let hub = scratch.path().join("hub");
        std::fs::create_dir(&hub).unwrap();
        git(&hub, &["init", "-q", "-b", "main"]).await.unwrap();
        let (first, mirrors) = (
            commit(&hub).await,
            Mirrors::new(scratch.path().join("mirrors")),
        );
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("git://{}/hub", silent.local_addr().unwrap());
        let dead = mirrors.of(&address).await.unwrap();
        tokio::select! {
            done = async { tokio::join!(dead.bring(&first), dead.refresh()) } => panic!("{done:?}"),
            () = async {
                // Both are under way.
                let _connections = (silent.accept().await.unwrap(), silent.accept().await.unwrap());
                let good = mirrors.of(hub.to_str().unwrap()).await.unwrap();
                good.bring(&first).await.unwrap();
                // Somebody else may fetch at the moment.
                let _fetching = good.fetching.lock().await;
                let commit = good.bring(&first).await.unwrap();
                good.check_out(&commit, &scratch.path().join("tree")).await.unwrap();
                assert!(mirrors.of(&address).await.is_ok());
            } => {}
        }
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
        mirror.bring(&first).await.unwrap();
        let second = commit(&hub).await;
        for lock in ["config.lock", "packed-refs.lock", "refs/heads/main.lock"] {
            std::fs::write(mirror.folder.join(lock), "").unwrap();
        }
        let mirror = mirrors().of(address).await.unwrap();
        mirror.refresh().await.unwrap();
        assert_eq!(mirror.head("main").await, Some(second));
    }
}
