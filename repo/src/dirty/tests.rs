use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::work_tree::{Threads, differing};
use super::*;
use crate::tests::scratch::Scratch;

fn differs(scratch: &Scratch, threads: Threads) -> Vec<String> {
    let repository = gix::open(scratch.path()).unwrap();
    let index = repository.index_or_empty().unwrap();
    let (untracked, changed) = differing(&repository, &index, threads).unwrap();
    let mut found = [untracked.paths, changed].concat();
    found.sort_unstable();
    found.iter().map(ToString::to_string).collect()
}

/// One of every kind of difference.
fn with_everything(library: &Scratch) -> Scratch {
    library.write("file", "one");
    library.commit();
    let scratch = Scratch::new();
    for path in [
        "clean",
        "changed",
        "deleted",
        "folder/file",
        "linked/file",
        "mode",
        "staged",
        "sub/clean",
    ] {
        scratch.write(path, "one");
    }
    scratch.write(".gitignore", "ignored\n");
    scratch.write("sub/.gitignore", "*.o\n");
    let from = library.path().to_str().unwrap();
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        from,
        "library",
    ]);
    scratch.commit();

    let at = |path: &str| scratch.path().join(path);
    scratch.write("changed", "two");
    fs::remove_file(at("deleted")).unwrap();
    fs::remove_dir_all(at("folder")).unwrap();
    scratch.write("folder", "no folder any more");
    fs::rename(at("linked"), at("moved")).unwrap();
    symlink("moved", at("linked")).unwrap();
    fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    scratch.write("staged", "two");
    scratch.git(&["add", "staged"]);
    scratch.write("library/file", "two, longer");
    for path in [
        "ignored/file",
        "new/inner/file",
        "new/other",
        "sub/a.o",
        "sub/new",
    ] {
        scratch.write(path, "x");
    }
    scratch.git(&["init", "-q", "nested"]);
    scratch.write("nested/file", "x");
    scratch
}

#[test]
fn one_thread_sees_what_many_see() {
    let library = Scratch::new();
    let scratch = with_everything(&library);
    let seen = differs(&scratch, Threads::One);
    assert_eq!(
        seen,
        [
            "changed",
            "deleted",
            "folder",
            "folder/file",
            "library",
            "linked",
            "linked/file",
            "mode",
            "moved/file",
            "nested",
            "new/inner/file",
            "new/other",
            "sub/new"
        ]
    );
    assert_eq!(differs(&scratch, Threads::Many), seen);
}

#[test]
fn the_length_of_the_index_says_whether_a_tree_is_small() {
    let scratch = Scratch::new();
    let repository = gix::open(scratch.path()).unwrap();
    assert!(is_small(&repository));
    scratch.write("file", "x");
    scratch.commit();
    assert!(is_small(&repository));
    let index = fs::OpenOptions::new()
        .write(true)
        .open(repository.index_path())
        .unwrap();
    index.set_len(ONE_THREAD_BYTES + 1).unwrap();
    assert!(!is_small(&repository));
}

#[test]
fn a_branch_that_stands_for_another_has_its_commit() {
    let scratch = Scratch::new();
    scratch.write("file", "x");
    scratch.commit();
    scratch.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let commit = scratch.git(&["rev-parse", "HEAD"]);
    let repository = gix::open(scratch.path()).unwrap();
    assert_eq!(
        head(&repository).unwrap().unwrap().to_string(),
        commit.trim()
    );
    assert!(look(&repository, |_| ()).unwrap().paths.is_empty());
}
