//! Repositories inside a work tree.

use std::path::PathBuf;

use crate::{RepoError, WorkTree};

impl WorkTree {
    /// The folders below the root that are the top of another repository, relative to the root:
    /// submodules, even if they are not checked out, and their own submodules; and repositories
    /// that git neither tracks nor ignores. Uses what git listed last as [not committed](Self::dirty_paths), or walks the
    /// tree if it was not asked.
    pub fn repositories_below(&self) -> Result<Vec<PathBuf>, RepoError> {
        let listed = self.below.borrow().clone();
        let mut all = if let Some(all) = listed {
            all
        } else {
            let submodules = self.submodules_in_index()?.into_iter();
            let untracked = self.untracked_repositories()?;
            submodules.map(|one| one.path).chain(untracked).collect()
        };
        for folder in all.clone() {
            // A repository that cannot be opened or scanned has none that git would enter.
            if let Ok(inner) = Self::at(&self.root.join(&folder))
                && inner.root == inner.top
                && inner.top != self.top
                && let Ok(below) = inner.repositories_below()
            {
                all.extend(below.into_iter().map(|below| folder.join(below)));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::Scratch;

    #[test]
    fn submodules_and_untracked_repositories_are_found_at_any_depth() {
        let (outer, inner) = (Scratch::new(), Scratch::new());
        inner.write("file", "x");
        inner.commit();
        let from = inner.path().to_str().unwrap();
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            from,
        ];
        outer.git(&[&add[..], &["sm"]].concat());
        outer.git(&[&add[..], &["libs/other"]].concat());
        outer.commit();
        outer.git(&["submodule", "--quiet", "deinit", "libs/other"]);
        outer.git(&["init", "-q", "vendor/lib"]);
        outer.git(&["init", "-q", "sm/deep"]);
        outer.write("vendor/lib/file", "x");
        outer.write("sm/deep/file", "x");
        let tree = WorkTree::at(outer.path()).unwrap();
        let mut below = tree.repositories_below().unwrap();
        below.sort();
        assert_eq!(
            below,
            ["libs/other", "sm", "sm/deep", "vendor/lib"].map(PathBuf::from)
        );
        let part = WorkTree::at(&outer.path().join("libs")).unwrap();
        assert_eq!(part.repositories_below().unwrap(), [PathBuf::from("other")]);
    }
}
