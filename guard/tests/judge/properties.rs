//! Arbitrary paths, and paths assembled from hostile parts: whatever is admitted is below the root.
#![expect(clippy::disallowed_methods, reason = "a tree is made with files")]

use std::fs;
use std::os::unix::fs::symlink;

use code_commit_guard::{Configuration, Guard, Op, Policy, Request, Verdict};
use proptest::prelude::*;

fn part() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(
        &[
            "..",
            ".",
            "",
            ".git",
            ".GIT",
            "git~1",
            ".git ",
            "link",
            "dang",
            "src",
            "a.rs",
            "NUL",
            "a.",
            "\\",
            "a:b",
            "\u{202e}",
            "\u{200b}",
            "\u{2215}",
            "target",
            ".gitignore",
            "build.sh",
            "fifo",
            "e\u{301}",
            "é",
            "\0",
            "\n",
            "new",
        ][..],
    );
    prop_oneof![4 => hostile.prop_map(str::to_owned), 1 => any::<String>(), 1 => "[a-z]{1,8}"]
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::collection::vec(part(), 1..6).prop_map(|parts| parts.join("/").into_bytes());
    prop_oneof![6 => parts, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

fn moves_the_cursor(c: char) -> bool {
    c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_lies_below_the_root(paths in prop::collection::vec(path(), 1..8)) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("a.rs"), "a").unwrap();
        fs::write(root.join(".gitignore"), "/target\n").unwrap();
        symlink("..", root.join("link")).unwrap();
        symlink("../nowhere", root.join("dang")).unwrap();
        let policy = Policy::commit().configuration(Configuration::RepositoryOnly);
        let guard = Guard::open(&root, policy).unwrap();
        let requests: Vec<Request<'_>> =
            paths.iter().map(|path| Request { path, op: Op::Write, base_sha256: None }).collect();
        let verdicts = guard.judge(&requests).unwrap();
        prop_assert_eq!(verdicts.len(), paths.len());
        for (verdict, path) in verdicts.iter().zip(&paths) {
            match verdict {
                Verdict::Admitted(admitted) => {
                    prop_assert_eq!(admitted.path().as_bytes(), path.as_slice());
                    prop_assert!(admitted.path().split('/').all(|name| !matches!(name, "" | "." | "..")));
                    let folder = root.join(admitted.folder_path()).canonicalize().unwrap();
                    prop_assert!(folder.starts_with(root.canonicalize().unwrap()));
                    prop_assert!(guard.refused_for_good(admitted.path()).is_none());
                }
                Verdict::Refused(refusal) => {
                    let text = refusal.to_string();
                    prop_assert!(text.len() < 4_000 && text.ends_with('.'));
                    prop_assert!(!text.contains(moves_the_cursor));
                }
            }
        }
    }
}
