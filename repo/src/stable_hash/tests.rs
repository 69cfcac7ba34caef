#![expect(
    clippy::disallowed_methods,
    reason = "the tests write their trees plainly"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;

use super::*;

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    tree
}

fn hash(files: &[(&str, &str)]) -> String {
    stable_hash(tree(files).path(), &|| Ok(())).unwrap()
}

/// The rule: `for each file, sorted: path NUL bytes NUL`.
#[test]
fn files_are_hashed_in_the_order_of_their_whole_paths() {
    let files = [("a.b", "1"), ("a/z", "2"), ("a", "never")];
    let expected = sha256(b"a.b\x001\0a/z\x002\0");
    assert_eq!(hash(&files[..2]), expected);
    assert_eq!(hash(&[]), sha256(b""));
}

#[test]
fn folders_that_do_not_count_are_left_out_at_every_level() {
    let plain = hash(&[("src/a", "1")]);
    for folder in code_commit_names::left_out(By::Hash) {
        assert_eq!(
            hash(&[("src/a", "1"), (&format!("src/{folder}/x"), "2")]),
            plain,
            "{folder}"
        );
        assert_eq!(
            hash(&[("src/a", "1"), (&format!("{folder}/deep/x"), "2")]),
            plain,
            "{folder}"
        );
    }
    assert_eq!(
        hash(&[
            ("src/a", "1"),
            (".git", "gitdir: elsewhere"),
            (".code-commit/lock", "")
        ]),
        plain
    );
    for counted in [
        "envelope/x",
        "src/node_modules2/x",
        "src/.code-commit/x",
        "src/venv.txt",
    ] {
        assert_ne!(hash(&[("src/a", "1"), (counted, "2")]), plain, "{counted}");
    }
}

#[test]
fn links_do_not_count_and_are_not_followed() {
    let tree = tree(&[("a", "1")]);
    let before = stable_hash(tree.path(), &|| Ok(())).unwrap();
    symlink("a", tree.path().join("link")).unwrap();
    symlink("/", tree.path().join("root")).unwrap();
    assert_eq!(stable_hash(tree.path(), &|| Ok(())).unwrap(), before);
}

#[test]
fn a_name_cannot_stand_in_for_a_content() {
    assert_ne!(hash(&[("a", "b")]), hash(&[("ab", "")]));
    assert_ne!(hash(&[("a", ""), ("b", "")]), hash(&[("a", "b")]));
}

/// Whoever left them there would stop every order after it. Root can read them all the same.
#[test]
fn what_may_not_be_read_counts_by_its_name_and_is_no_error() {
    let tree = tree(&[("a", "1"), ("closed/file", "2"), ("secret", "3")]);
    let hash = || stable_hash(tree.path(), &|| Ok(())).unwrap();
    let open = hash();
    let close = |mode: u32| {
        for path in ["closed", "secret"] {
            fs::set_permissions(tree.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    close(0o000);
    let (closed, is_root) = (hash(), fs::read(tree.path().join("secret")).is_ok());
    close(0o700);
    assert_eq!(hash(), open);
    let by_name = sha256(b"a\x001\0closed\0\0\0secret\0\0\0");
    assert_eq!(closed, if is_root { open } else { by_name });
}
