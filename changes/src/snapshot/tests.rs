use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn paths(changes: &ChangeSet) -> Vec<String> {
    let sign = |one: &Change| match (one.before, one.after) {
        (None, Some(seen)) if seen.is_ignored => '!',
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    changes
        .iter()
        .map(|one| format!("{} {}", sign(one), one.path.display()))
        .collect()
}

#[test]
fn what_changed_is_told_by_the_rules_of_the_start() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let at = |name: &str| root.join(name);
    let write = |name: &str, text: &str| {
        File::create(at(name))
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    };
    fs::create_dir_all(at("src/deep")).unwrap();
    fs::create_dir_all(at("vendor/.git/hooks")).unwrap();
    fs::create_dir_all(at(".git")).unwrap();
    write(".git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(at(".git/objects")).unwrap();
    fs::create_dir_all(at(".git/refs")).unwrap();
    write(".gitignore", "target/\n*.o\n!keep.o\n");
    write("src/.gitignore", "made\n");
    for name in ["src/a", "src/deep/b", "gone", "mode", "same"] {
        write(name, name);
    }
    let guard = Guard::open(root, Policy::commit()).unwrap();
    let look = || {
        let is_own = |path: &Path, _| path.starts_with("own");
        Look::at(&guard, &Tracked::None, &is_own).whole().unwrap()
    };
    let before = look();
    assert!(
        before.get(Path::new("src/deep/b")).is_some() && before.get(Path::new(".git")).is_none()
    );
    fs::create_dir_all(at("target/x")).unwrap();
    fs::create_dir_all(at("own")).unwrap();
    fs::create_dir_all(at("new/folder")).unwrap();
    fs::create_dir_all(at("src/deep/.git")).unwrap();
    for name in [
        "a.o",
        "keep.o",
        "src/made",
        "target/x/y",
        "own/log",
        "new/folder/file",
        "src/deep/.git/HEAD",
        "src/a",
        "vendor/.git/config",
        "vendor/.git/index",
        "vendor/.git/hooks/pre-commit",
        "vendor/.git/hooks/pre-push.sample",
    ] {
        write(name, "new");
    }
    // New ignore rules of a command do not hide what was not ignored before.
    write("src/deep/.gitignore", "*\n");
    fs::remove_file(at("gone")).unwrap();
    fs::set_permissions(at("mode"), Permissions::from_mode(0o600)).unwrap();
    symlink("same", at("link")).unwrap();
    let after = look();
    insta::assert_snapshot!(paths(&before.differences(&after)).join("\n"), @r"
    ! a.o
    - gone
    + keep.o
    + link
    ~ mode
    + new
    + new/folder
    + new/folder/file
    ~ src/a
    + src/deep/.git
    + src/deep/.gitignore
    ! src/made
    + vendor/.git/config
    + vendor/.git/hooks/pre-commit
    ");
    assert!(after.differences(&after).is_empty());
}
