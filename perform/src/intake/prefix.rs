//! Paths that a model copied from a diff, including the prefix.

use std::path::Path;

use code_commit_parser::{Reply, habits};

use super::Rules;
use code_commit_engine::Problem;

impl Rules {
    /// Paths copied from a diff: `a/src/main.rs` without a folder `a`. Checks the disk only for paths that
    /// may be written: anything else would reveal whether the file exists.
    pub(super) fn diff_prefixes(&self, reply: &Reply<'_>) -> Vec<Problem> {
        let is_folder = |name: &str| self.root.join(name).is_dir();
        let slip = |path: &str| {
            // A reply may create a folder `a`. Only an existing file without the prefix proves a slip, unless
            // the reply names that one too: then it moved or copied the file.
            let is_named = |meant: &str| reply.files().any(|file| file.path == meant);
            let meant = habits::diff_prefix(path, is_folder)
                .filter(|meant| !is_named(meant) && self.is_in_the_tree(meant))?;
            let (path, meant) = (
                code_commit_guard::shown_path(path),
                code_commit_guard::shown_path(meant),
            );
            let message = format!(
                "`{path}` begins with the prefix of a diff and there is no such folder; write `{meant}`."
            );
            Some(Problem {
                code: "diff-prefix".to_owned(),
                path: Some(path),
                line: None,
                message,
            })
        };
        reply.files().filter_map(|file| slip(file.path)).collect()
    }

    /// Whether a path that may be written exists, with no symlink on the way.
    fn is_in_the_tree(&self, path: &str) -> bool {
        let file = self.guard.root().join(path);
        let is_real = |folder: &Path| folder.canonicalize().is_ok_and(|real| real == folder);
        self.guard.refused_for_good(path).is_none()
            && file.parent().is_some_and(is_real)
            && file.symlink_metadata().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use code_commit_apply::Lock;
    use code_commit_guard::Guard;

    use super::*;

    #[test]
    fn only_a_path_that_may_be_written_is_looked_up_without_the_prefix_of_a_diff() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::File::create(root.join("src/\u{e9}.rs")).unwrap();
        std::fs::File::create(root.join("build.sh")).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        let guard = Guard::open(&root, code_commit_guard::Policy::commit()).unwrap();
        let lock = Lock::acquire(&scratch.path().join("state"), "test")
            .unwrap()
            .into();
        let guard = guard.into();
        let rules = Rules { root, guard, lock };
        let slips = |path: &str| {
            let text = format!("^^^{path}\nx\n^^^end\n");
            let reply = code_commit_parser::parse(&text).unwrap();
            rules
                .diff_prefixes(&reply)
                .into_iter()
                .map(|problem| problem.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            slips("a/src/\u{e9}.rs"),
            [
                "`a/src/\u{e9}.rs` begins with the prefix of a diff and there is no such folder; write `src/\u{e9}.rs`."
            ]
        );
        for hidden in [
            "a//etc/passwd",
            "a/../root/src",
            "a/out/etc/passwd",
            "a/build.sh",
            "a/src/none.rs",
        ] {
            assert_eq!(slips(hidden), [""; 0], "{hidden}");
        }
        let moved = "^^^src/\u{e9}.rs\n^^^delete\n^^^a/src/\u{e9}.rs\nx\n^^^end\n";
        assert_eq!(
            rules
                .diff_prefixes(&code_commit_parser::parse(moved).unwrap())
                .len(),
            0,
            "a file may be moved into a new folder"
        );
        std::fs::File::create(rules.root.join("a")).unwrap();
        assert_eq!(slips("a/src/\u{e9}.rs").len(), 1, "a file is no folder");
        std::os::unix::fs::symlink("src", rules.root.join("b")).unwrap();
        assert_eq!(
            slips("b/src/\u{e9}.rs"),
            [""; 0],
            "a link to a folder is one"
        );
    }
}
