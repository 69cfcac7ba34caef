//! Rebases results: puts each of them upon another commit, without a work tree.

use crate::{GitError, Mirror, git};

impl Mirror {
    /// The result `commit`, which was made on `onto`, as one commit upon `head`, with its own author, date and message: the same
    /// each time. `None` if both have changed the same lines, or if this git cannot tell (before 2.40).
    pub async fn put_upon(
        &self,
        head: &str,
        onto: &str,
        commit: &str,
    ) -> Result<Option<String>, GitError> {
        if head == onto {
            return Ok(Some(commit.to_owned()));
        }
        if !self.contains(head, onto).await {
            return Ok(None);
        }
        let merge_base = format!("--merge-base={onto}");
        let merge = [
            "merge-tree",
            "--write-tree",
            "--no-messages",
            &merge_base,
            head,
            commit,
        ];
        let Ok(tree) = git(self.folder(), &merge).await else {
            return Ok(None);
        };
        let made = git(self.folder(), &["cat-file", "commit", commit]).await?;
        let file = self.folder().join("upon");
        std::fs::write(&file, rewritten(&made, tree.trim(), head)).map_err(|source| {
            GitError::Folder {
                folder: file.clone(),
                source,
            }
        })?;
        let path = file.to_string_lossy();
        let written = git(
            self.folder(),
            &["hash-object", "-t", "commit", "-w", "--", &path],
        )
        .await?;
        Ok(Some(written.trim().to_owned()))
    }

    /// Gives the hub a commit under a name, so that workers can fetch it.
    pub async fn offer(&self, commit: &str, name: &str) -> Result<(), GitError> {
        git(
            self.folder(),
            &["push", "-q", "--", self.hub(), &format!("{commit}:{name}")],
        )
        .await
        .map(drop)
    }
}

/// A commit object with another tree and parent. A signature is dropped, because it would be invalid.
fn rewritten(commit: &str, tree: &str, parent: &str) -> String {
    let (head, message) = commit.split_once("\n\n").unwrap_or((commit, ""));
    let mut lines = vec![format!("tree {tree}"), format!("parent {parent}")];
    let mut is_kept = false;
    for line in head.lines() {
        // A header goes on in lines that begin with a space.
        if !line.starts_with(' ') {
            is_kept = ["author ", "committer ", "encoding "]
                .iter()
                .any(|header| line.starts_with(header));
        }
        if is_kept {
            lines.push(line.to_owned());
        }
    }
    format!("{}\n\n{message}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Mirrors;

    async fn run(hub: &Path, args: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        git(hub, &[&who[..], args].concat())
            .await
            .unwrap()
            .trim()
            .to_owned()
    }

    /// A branch off `from` with one commit that writes a file; the commit.
    async fn writes(hub: &Path, from: &str, name: &str, content: &str) -> String {
        run(
            hub,
            &[
                "checkout",
                "-q",
                "-B",
                &format!("on-{name}-{}", content.len()),
                from,
            ],
        )
        .await;
        std::fs::write(hub.join(name), content).unwrap();
        run(hub, &["add", "."]).await;
        run(
            hub,
            &["commit", "-q", "-m", &format!("{name}\n\nits reason\n")],
        )
        .await;
        run(hub, &["rev-parse", "HEAD"]).await
    }

    #[tokio::test]
    async fn a_result_is_put_upon_another_unless_both_change_the_same_lines() {
        let scratch = tempfile::tempdir().unwrap();
        let hub = scratch.path().join("hub");
        std::fs::create_dir(&hub).unwrap();
        run(&hub, &["init", "-q", "-b", "main"]).await;
        run(&hub, &["commit", "-q", "--allow-empty", "-m", "first"]).await;
        let base = writes(&hub, "HEAD", "base", "0\n").await;
        let one = writes(&hub, &base, "one", "1\n").await;
        let two = writes(&hub, &base, "two", "2\n").await;
        let rival = writes(&hub, &base, "one", "another\n").await;
        let mirror = Mirrors::new(scratch.path().join("mirrors"))
            .of(hub.to_str().unwrap())
            .await
            .unwrap();
        mirror.refresh().await.unwrap();
        assert_eq!(
            mirror.put_upon(&base, &base, &one).await.unwrap(),
            Some(one.clone())
        );
        let both = mirror.put_upon(&one, &base, &two).await.unwrap().unwrap();
        assert_eq!(
            mirror.put_upon(&one, &base, &two).await.unwrap(),
            Some(both.clone()),
            "the same each time"
        );
        assert_eq!(mirror.put_upon(&one, &base, &rival).await.unwrap(), None);
        assert_eq!(
            mirror.put_upon(&base, &one, &two).await.unwrap(),
            None,
            "it was made on what is not there"
        );

        mirror.offer(&both, "refs/fleet/f/trains/1").await.unwrap();
        let files = run(&hub, &["ls-tree", "--name-only", &both]).await;
        assert_eq!(files, "base\none\ntwo");
        let of = ["show", "-s", "--format=%an %ad %cn %cd %B"];
        assert_eq!(
            run(&hub, &[&of[..], &[&both]].concat()).await,
            run(&hub, &[&of[..], &[&two]].concat()).await
        );
        assert_eq!(run(&hub, &["rev-parse", &format!("{both}^")]).await, one);
    }

    #[test]
    fn a_signature_does_not_outlive_what_it_signed() {
        let signed = "tree t\nparent p\nauthor a <a> 1 +0000\ncommitter c <c> 1 +0000\ngpgsig -----BEGIN\n more\n end\n\nmessage\n";
        assert_eq!(
            rewritten(signed, "T", "P"),
            "tree T\nparent P\nauthor a <a> 1 +0000\ncommitter c <c> 1 +0000\n\nmessage\n"
        );
    }
}
