//! What a commit changed, with the content before and after.

use std::path::PathBuf;

use crate::objects::Objects;
use crate::{Git, GitError};

/// A regular file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedIn {
    /// Relative to the root.
    pub path: PathBuf,
    /// Its content in the parent; `None` if it was not there.
    pub before: Option<Vec<u8>>,
    /// Its content in the commit; `None` if it was removed.
    pub after: Option<Vec<u8>>,
    /// Its mode in the parent.
    pub before_mode: Option<u32>,
    /// Its mode in the commit.
    pub after_mode: Option<u32>,
}

/// Larger contents are not read: callers compare lines.
const LARGEST: u64 = 4 << 20;

const AGAINST_PARENT: &str = "diff-tree -r -z --root --no-renames --no-commit-id \
    --diff-merges=first-parent --end-of-options";

impl Git {
    /// The regular files below the folder that a commit changed against its first parent, by path. Files of more than
    /// 4 MiB are left out.
    pub fn changed_in(&self, commit: &str) -> Result<Vec<ChangedIn>, GitError> {
        let tree = self.tree()?;
        let words: Vec<&str> = AGAINST_PARENT.split(' ').chain([commit]).collect();
        let listed = self.run_for_bytes(&words)?;
        let failed = |source| self.no_start(source);
        let mut objects = Objects::of(self, &tree.store()).map_err(failed)?;
        // `Some(None)` if there is no file, `None` if it is not read.
        let mut read = |mode, id: &str| match mode {
            None => Ok(Some(None)),
            Some(0o100_644 | 0o100_755) => {
                let content = objects.content(id, LARGEST);
                content.map(|content| content.map(Some)).map_err(failed)
            }
            Some(_) => Ok(None),
        };
        let mode = |octal: &str| u32::from_str_radix(octal, 8).ok().filter(|mode| *mode != 0);
        let mut found = Vec::new();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(change), Some(path)) = (fields.next(), fields.next()) {
            // `:MODE MODE ID ID STATUS`, the old ones first.
            let change = String::from_utf8_lossy(change);
            let mut words = change.trim_start_matches(':').split(' ');
            let mut word = || words.next().unwrap_or_default();
            let (before_mode, after_mode) = (mode(word()), mode(word()));
            if let Some(path) = tree.relative(path)
                && let Some(before) = read(before_mode, word())?
                && let Some(after) = read(after_mode, word())?
            {
                found.push(ChangedIn {
                    path: path.to_owned(),
                    before,
                    after,
                    before_mode,
                    after_mode,
                });
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tests::scratch::{self, Scratch};

    /// `PATH OLD NEW` of each file.
    fn changed(git: &Git, commit: &str) -> Vec<String> {
        let text = |side: Option<Vec<u8>>| {
            side.map_or("-".to_owned(), |bytes| String::from_utf8(bytes).unwrap())
        };
        let files = git.changed_in(commit).unwrap().into_iter();
        files
            .map(|file| {
                format!(
                    "{} {} {}",
                    file.path.display(),
                    text(file.before),
                    text(file.after)
                )
            })
            .collect()
    }

    #[test]
    fn a_commit_is_read_with_the_content_before_and_after() {
        let scratch = Scratch::with(&[("kept", "k"), ("sub/changed", "old"), ("gone", "g")]);
        let (tree, git) = (scratch.tree(), scratch::git(scratch.path()));
        let first = tree.head().unwrap().unwrap();
        assert_eq!(
            changed(&git, &first),
            ["gone - g", "kept - k", "sub/changed - old"]
        );
        scratch.write("sub/changed", "new");
        scratch.write("sub/added", "a");
        std::fs::remove_file(scratch.path().join("gone")).unwrap();
        std::os::unix::fs::symlink("kept", scratch.path().join("link")).unwrap();
        scratch.commit();
        let second = tree.head().unwrap().unwrap();
        assert_eq!(
            changed(&git, &second),
            ["gone g -", "sub/added - a", "sub/changed old new"]
        );
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scratch.path().join("kept"), program).unwrap();
        scratch.commit();
        let third = git.changed_in(&tree.head().unwrap().unwrap()).unwrap();
        let modes = third.iter().map(|file| (file.before_mode, file.after_mode));
        assert_eq!(
            modes.collect::<Vec<_>>(),
            [(Some(0o100_644), Some(0o100_755))]
        );
        let below = scratch::git(&scratch.path().join("sub"));
        assert_eq!(changed(&below, &second), ["added - a", "changed old new"]);
        assert!(git.changed_in("no commit").is_err());
    }

    #[test]
    fn a_merge_is_compared_with_its_first_parent_and_large_files_are_left_out() {
        let scratch = Scratch::with(&[("base", "b")]);
        scratch.git(&["checkout", "-qb", "side"]);
        scratch.write("of side", "s");
        scratch.write("large", &"x".repeat(usize::try_from(LARGEST).unwrap() + 1));
        scratch.commit();
        scratch.git(&["checkout", "-q", "main"]);
        scratch.write("of main", "m");
        scratch.commit();
        scratch.git(&["merge", "-q", "--no-edit", "side"]);
        let git = scratch::git(scratch.path());
        assert_eq!(changed(&git, "HEAD"), ["of side - s"]);
    }
}
