pub(crate) mod scratch;

use std::io;

use bstr::ByteSlice as _;

use super::*;
use scratch::Scratch;

fn tracked(tree: &WorkTree) -> Vec<String> {
    let index = tree.index().unwrap();
    let files = index.iter().filter_map(|one| one.file());
    files.map(str::to_owned).collect()
}

#[test]
fn a_change_in_a_submodule_is_seen() {
    let (library, scratch) = (Scratch::with(&[("file", "one")]), Scratch::new());
    scratch.add_submodule(&library, "library");
    scratch.commit();
    let tree = scratch.tree();
    assert!(tree.dirty().unwrap().is_empty());
    scratch.write("library/file", "two, longer");
    assert_eq!(tree.dirty().unwrap(), ["library"]);
    scratch.git(&["config", "submodule.library.ignore", "all"]);
    let tree = scratch.tree();
    assert!(tree.dirty().unwrap().is_empty(), "git ignores it");
}

#[test]
fn a_submodule_without_its_repository_counts_as_changed() {
    let (library, scratch) = (Scratch::with(&[("file", "one")]), Scratch::new());
    scratch.add_submodule(&library, "library");
    scratch.commit();
    scratch.write("library/.git", "gitdir: nowhere\n");
    let tree = scratch.tree();
    assert_eq!(tree.dirty().unwrap(), ["library"]);
    fs::remove_file(scratch.path().join("library/.git")).unwrap();
    assert!(tree.dirty().unwrap().is_empty(), "it is not checked out");
}

#[test]
fn a_branch_that_stands_for_another_has_its_commit() {
    let scratch = Scratch::with(&[("file", "x")]);
    scratch.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let commit = scratch.git(&["rev-parse", "HEAD"]);
    let tree = scratch.tree();
    assert_eq!(tree.head().unwrap().as_deref(), Some(commit.trim()));
    assert!(tree.dirty().unwrap().is_empty());
}

#[test]
fn the_length_of_the_index_says_whether_a_tree_is_small() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    assert!(tree.is_small());
    scratch.write("file", "x");
    scratch.commit();
    assert!(tree.is_small());
    let index = fs::File::options()
        .write(true)
        .open(tree.git_dir().join("index"))
        .unwrap();
    index.set_len(ONE_THREAD_BYTES + 1).unwrap();
    assert!(!tree.is_small());
}

#[test]
fn what_is_staged_is_seen_whether_or_not_the_index_knows_its_tree() {
    let scratch = Scratch::with(&[("sub/kept", "one")]);
    let tree = scratch.tree();
    scratch.write("sub/kept", "two, longer");
    scratch.git(&["add", "sub/kept"]);
    assert_eq!(tree.dirty().unwrap(), ["sub/kept"]);
    // The index matches a tree again, but not the one that is checked out.
    scratch.git(&["write-tree"]);
    assert_eq!(tree.dirty().unwrap(), ["sub/kept"]);
    scratch.git(&["rm", "-q", "--cached", "sub/kept"]);
    assert_eq!(tree.dirty().unwrap(), ["sub/kept"]);
}

#[test]
fn staged_changed_deleted_and_untracked_files_are_dirty_and_ignored_ones_are_not() {
    let files = ["kept", "changed", "deleted", "sub/also"].map(|path| (path, "one"));
    let scratch = Scratch::with(&[&files[..], &[(".gitignore", "/ignored\n")]].concat());
    let tree = scratch.tree();
    assert!(tree.dirty().unwrap().is_empty());
    assert_eq!(tree.head().unwrap().unwrap().len(), 40);

    scratch.write("changed", "two, longer");
    scratch.write("ignored", "x");
    scratch.write("new folder/new ü", "x");
    scratch.write("staged", "x");
    scratch.git(&["add", "staged"]);
    fs::remove_file(scratch.path().join("deleted")).unwrap();
    assert_eq!(
        tree.dirty().unwrap(),
        ["changed", "deleted", "new folder/new ü", "staged"]
    );
}

#[test]
fn a_small_repository_is_seen_as_its_dirty_paths_its_tracked_files_and_one_hash() {
    let scratch = Scratch::with(&[
        (".gitignore", "/target\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("notes", "one\n"),
    ]);
    scratch.write("notes", "one\ntwo\n");
    scratch.write("src/new.rs", "mod new;\n");
    scratch.write("target/made", "by a build\n");
    scratch.git(&["rm", "-q", "--cached", "src/main.rs"]);
    let tree = scratch.tree();
    let index = tree.index().unwrap();
    let files = index
        .iter()
        .map(|one| format!("{} ({} B)", one.file().unwrap(), one.bytes));
    let tracked: Vec<String> = files.collect();
    let seen = [
        tree.dirty().unwrap().join(" "),
        tracked.join(" "),
        stable_hash(tree.root(), &|| Ok(())).unwrap(),
    ];
    insta::assert_snapshot!(seen.join("\n"), @"
    notes src/main.rs src/new.rs
    .gitignore (8 B) notes (4 B)
    96dd5d6322ab03b5d99b133cc1b722bf371ddf93acfbab5542c6864ed0915a9b
    ");
}

/// So that a full disk is known as one.
#[test]
fn an_error_of_the_system_below_an_error_of_git_stays_one() {
    let scratch = Scratch::with(&[("a", "x")]);
    let tree = scratch.tree();
    let index = scratch.path().join(".git/index");
    fs::remove_file(&index).unwrap();
    // A file that nobody can read from its start, not even root.
    std::os::unix::fs::symlink("/proc/self/mem", &index).unwrap();
    let error = io::Error::from(tree.index().unwrap_err());
    assert!(error.raw_os_error().is_some(), "{error}");
    let bare = gix_error::Error::from_error(io::Error::from_raw_os_error(28));
    assert_eq!(error::os_error(&bare), Some(28));
}

#[test]
fn a_folder_below_the_top_sees_its_own_files_only() {
    let scratch = Scratch::with(&[("top", "x"), ("sub/inner", "x")]);
    let tree = WorkTree::at(&scratch.path().join("sub")).unwrap();
    assert_eq!(tracked(&tree), ["inner"]);
    scratch.write("top", "longer");
    assert!(tree.dirty().unwrap().is_empty());
    scratch.write("sub/inner", "longer");
    assert_eq!(tree.dirty().unwrap(), ["inner"]);
}

#[test]
fn references_that_cannot_be_read_are_told_with_the_way_out() {
    let scratch = Scratch::new();
    scratch.commit();
    // Like a git that creates such repositories.
    scratch.git(&["config", "core.repositoryFormatVersion", "1"]);
    scratch.git(&["config", "extensions.refStorage", "reftable"]);
    let tree = scratch.tree();
    let error = tree.head().unwrap_err();
    assert!(matches!(error, RepoError::Reftable { .. }), "{error}");
    let hint = error.hint();
    assert!(
        hint.ends_with("git refs migrate --ref-format=files"),
        "{hint}"
    );
}

#[test]
fn a_configuration_that_cannot_be_read_is_told_with_its_cause() {
    let scratch = Scratch::new();
    scratch.git(&["config", "core.repositoryFormatVersion", "9"]);
    let error = WorkTree::at(scratch.path()).unwrap_err().to_string();
    assert!(
        error.contains("could not be loaded: ") && error.contains("versions 0 and 1"),
        "{error}"
    );
    scratch.write(".git/config", "[core\n");
    let error = WorkTree::at(scratch.path()).unwrap_err().to_string();
    assert!(
        error.contains("could not be loaded: Could not parse configuration: "),
        "{error}"
    );
}

#[test]
fn a_repository_without_commits_has_no_head_and_is_usable() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    assert_eq!((tree.head().unwrap(), tracked(&tree).len()), (None, 0));
    scratch.write("a", "x");
    assert_eq!(tree.dirty().unwrap(), ["a"]);
}

#[test]
fn a_plain_folder_and_a_bare_repository_are_refused() {
    let plain = tempfile::tempdir().unwrap();
    assert!(matches!(
        WorkTree::at(plain.path()),
        Err(OpenError::NotARepository { .. })
    ));
    let scratch = Scratch::new();
    scratch.git(&["init", "-q", "--bare", "bare.git"]);
    assert!(matches!(
        WorkTree::at(&scratch.path().join("bare.git")),
        Err(OpenError::Bare { .. })
    ));
}

#[test]
fn a_linked_work_tree_has_a_state_folder_of_its_own() {
    let scratch = Scratch::with(&[("a", "x")]);
    scratch.git(&["worktree", "add", "-q", "linked"]);
    let main = scratch.tree().state_dir().unwrap();
    let linked = WorkTree::at(&scratch.path().join("linked")).unwrap();
    let own = linked.state_dir().unwrap();
    assert!(
        own.ends_with(".git/worktrees/linked/code-commit"),
        "{}",
        own.display()
    );
    assert_ne!(main, own);
    assert!(linked.dirty().unwrap().is_empty());
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test forges what an archive could bring"
)]
fn what_git_reads_elsewhere_is_named_only_where_the_repository_knows_the_tree() {
    let (library, forged) = (Scratch::with(&[("file", "one")]), Scratch::new());
    let scratch = Scratch::with(&[("below/a", "x")]);
    scratch.git(&["worktree", "add", "-q", "linked"]);
    scratch.add_submodule(&library, "library");
    let elsewhere = |root: &Path| WorkTree::at(root).unwrap().git_elsewhere();
    let (path, git) = (scratch.path(), scratch.path().join(".git"));
    assert_eq!(elsewhere(path), [] as [PathBuf; 0]);
    assert_eq!(elsewhere(&path.join("below")), [git.as_path()]);
    assert_eq!(
        elsewhere(&path.join("linked")),
        [git.join("worktrees/linked"), git.clone()]
    );
    assert_eq!(
        elsewhere(&path.join("library")),
        [git.join("modules/library")]
    );
    let moved = forged.path().join("moved");
    fs::rename(forged.path().join(".git"), &moved).unwrap();
    fs::write(moved.join("commondir"), format!("{}\n", git.display())).unwrap();
    let gitfile = forged.path().join(".git");
    fs::write(moved.join("gitdir"), format!("{}\n", gitfile.display())).unwrap();
    for names in [git.clone(), git.join("worktrees/linked"), moved] {
        let names = format!("gitdir: {}\n", names.display());
        forged.write(".git", &names);
        assert_eq!(elsewhere(forged.path()), [] as [PathBuf; 0], "{names}");
    }
}

#[test]
fn the_state_folder_in_the_tree_is_never_seen_by_git() {
    let scratch = Scratch::new();
    let state = state_dir_in_tree(scratch.path()).unwrap();
    scratch.write(".code-commit/lock", "x");
    assert_eq!(state, scratch.path().join(".code-commit"));
    assert!(
        WorkTree::at(scratch.path())
            .unwrap()
            .dirty()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_filter_that_the_repository_configures_is_not_started() {
    let scratch = Scratch::with(&[(".gitattributes", "* filter=trap\n"), ("a", "x")]);
    let sprung = scratch.path().join("sprung");
    let touch = format!("touch {}", sprung.display());
    scratch.git(&["config", "filter.trap.clean", &format!("{touch} && cat")]);
    scratch.git(&["config", "core.fsmonitor", &touch]);
    scratch.write("a", "y");
    assert_eq!(scratch.tree().dirty().unwrap(), ["a"]);
    assert!(!sprung.exists());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test makes a lock file")]
fn where_no_state_can_be_is_told_without_opening_anything() {
    let scratch = Scratch::with(&[("below/a", "x")]);
    let holds = |folder: &str| may_hold_state(&scratch.path().join(folder), "txn");
    assert!(!holds("") && !holds("below") && !may_hold_state(Path::new("/"), "txn"));
    let tree = scratch.tree();
    fs::create_dir(tree.state_dir().unwrap().join("txn")).unwrap();
    assert!(holds("") && holds("below"));
    let lock = tree.state_dir().unwrap().join("lock");
    let holds_lock = || may_hold_state(scratch.path(), "lock");
    fs::write(&lock, "").unwrap();
    assert!(!holds_lock(), "nobody holds it");
    fs::write(&lock, "x").unwrap();
    assert!(holds_lock());
    scratch.git(&["worktree", "add", "--quiet", "linked"]);
    assert!(holds("linked"), "its git directory is elsewhere");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test changes what it has made"
)]
fn a_submodule_and_a_tree_whose_git_directory_lies_elsewhere_are_work_trees() {
    let (library, scratch) = (Scratch::with(&[("file", "one")]), Scratch::new());
    scratch.add_submodule(&library, "library");
    let elsewhere = scratch.path().join("elsewhere");
    library.git(&[
        "init",
        "--quiet",
        "--separate-git-dir",
        elsewhere.to_str().unwrap(),
    ]);
    for (root, git_dir) in [
        (
            scratch.path().join("library"),
            scratch.path().join(".git/modules/library"),
        ),
        (library.path().to_owned(), elsewhere),
    ] {
        let tree = WorkTree::at(&root).unwrap();
        assert_eq!((tree.root(), tree.top()), (root.as_path(), root.as_path()));
        assert_eq!(tree.git_dir().canonicalize().unwrap(), git_dir);
        assert!(tree.dirty().unwrap().is_empty());
        fs::write(root.join("file"), "two, longer").unwrap();
        assert_eq!(tree.dirty().unwrap(), ["file"]);
        assert_eq!(tracked(&tree).len(), 1);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test changes what it has made"
)]
fn a_path_of_the_index_that_leads_out_is_no_file_of_the_tree() {
    let scratch = Scratch::with(&[("inside", "x")]);
    let index = scratch.path().join(".git/index");
    let forged = fs::read(&index).unwrap().replace("inside", "../out");
    assert!(forged.contains_str("../out"));
    // Git does not verify an index without a checksum.
    let body = forged.len() - 20;
    fs::write(&index, [&forged[..body], &[0; 20]].concat()).unwrap();
    assert!(tracked(&scratch.tree()).is_empty());
}

#[test]
fn links_and_names_that_are_not_utf_8_are_told_apart_from_files() {
    let scratch = Scratch::new();
    scratch.write("file", "x");
    std::os::unix::fs::symlink("file", scratch.path().join("link")).unwrap();
    let odd = PathBuf::from(b"odd\xff".to_os_str().unwrap());
    fs::File::create_new(scratch.path().join(&odd)).unwrap();
    scratch.git(&["add", "."]);
    let tree = scratch.tree();
    let index = tree.index().unwrap();
    let found: Vec<_> = index
        .iter()
        .map(|one| (one.path, one.kind, one.file()))
        .collect();
    let expected = [
        (Path::new("file"), Kind::File, Some("file")),
        (Path::new("link"), Kind::Link, None),
        (&odd, Kind::File, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_was_changed_since_a_moment_is_known_without_a_look_at_the_files() {
    let scratch = Scratch::new();
    let moment = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    for (name, seconds) in [("before", 0), ("at", 1), ("after", 2), ("sub/after", 3)] {
        scratch.write(name, "x");
        let file = fs::File::options()
            .append(true)
            .open(scratch.path().join(name))
            .unwrap();
        file.set_modified(moment + std::time::Duration::from_secs(seconds))
            .unwrap();
    }
    scratch.commit();
    let since = |root: &Path| {
        let index = WorkTree::at(root).unwrap().index().unwrap();
        let after = moment + std::time::Duration::from_secs(1);
        let younger = index.iter().filter(|one| one.modified > after);
        younger.map(|one| one.path.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        since(scratch.path()),
        ["after", "sub/after"].map(PathBuf::from)
    );
    assert_eq!(since(&scratch.path().join("sub")), [PathBuf::from("after")]);
}

#[test]
fn tens_of_thousands_of_tracked_files_are_read() {
    let scratch = Scratch::new();
    scratch.write("file", "x");
    scratch.git(&["add", "."]);
    // Each step makes a folder that holds the last one twice.
    let doubled = "!tree=$(git write-tree); for step in $(seq 16); do \
        tree=$(printf '040000 tree %s\\ta\\n040000 tree %s\\tb\\n' $tree $tree | git mktree); \
        done; git read-tree $tree";
    scratch.git(&["-c", &format!("alias.doubled={doubled}"), "doubled"]);
    let tree = scratch.tree();
    assert_eq!(tracked(&tree).len(), 1 << 16);
}

#[test]
fn a_git_directory_that_cannot_be_inspected_is_not_taken_for_a_missing_one() {
    let outer = Scratch::with(&[("inner/file", "x")]);
    std::os::unix::fs::symlink(".git", outer.path().join("inner/.git")).unwrap();
    let opened = WorkTree::at(&outer.path().join("inner"));
    assert!(
        matches!(opened, Err(OpenError::Unreadable { .. })),
        "{opened:?}"
    );
}

#[test]
fn a_conflicted_file_is_one_tracked_file_and_is_named() {
    let scratch = Scratch::with(&[("src/both", "base\n"), ("src/same", "same\n")]);
    scratch.git(&["checkout", "-qb", "theirs"]);
    scratch.write("src/both", "theirs\n");
    scratch.commit();
    scratch.git(&["checkout", "-q", "main"]);
    scratch.write("src/both", "ours\n");
    scratch.commit();
    let conflicted = || -> Vec<PathBuf> {
        let index = scratch.tree().index().unwrap();
        let conflicted = index.iter().filter(|one| one.is_conflicted);
        conflicted.map(|one| one.path.to_owned()).collect()
    };
    assert!(conflicted().is_empty());
    scratch.git_line("-c merge.ours.driver=true read-tree -m main~1 main theirs");
    let tree = scratch.tree();
    assert_eq!(tracked(&tree), ["src/both", "src/same"]);
    assert_eq!(conflicted(), [PathBuf::from("src/both")]);
}

#[test]
fn a_work_tree_inside_its_bare_repository_shows_what_git_reads_and_not_itself() {
    let scratch = Scratch::with(&[("file", "x")]);
    let bare = scratch.path().join("all.git");
    scratch.git(&["clone", "-q", "--bare", ".", "all.git"]);
    scratch.git_line("--git-dir=all.git worktree add -q all.git/trees/one main");
    scratch.git_line("--git-dir=all.git worktree add -q all.git/trees/two HEAD~0");
    let root = bare.join("trees/one");
    let elsewhere = WorkTree::at(&root).unwrap().git_elsewhere();
    let names = |read: &Path| elsewhere.iter().any(|path| read.starts_with(path));
    assert!(!names(&root), "{elsewhere:?}");
    for read in ["HEAD", "config", "objects", "refs", "worktrees/one"] {
        assert!(names(&bare.join(read)), "{read} in {elsewhere:?}");
    }
    let trees = bare.join("trees");
    let is_of_a_tree = |path: &PathBuf| path.starts_with(&trees);
    assert!(!elsewhere.iter().any(is_of_a_tree), "{elsewhere:?}");
}

#[test]
fn where_git_keeps_its_files_is_known_whatever_their_folder_is_called() {
    let scratch = Scratch::with(&[("lib/a", "1")]);
    let root = scratch.path().canonicalize().unwrap();
    let tree = || WorkTree::at(&root).unwrap();
    let kept = || {
        let mut below = tree().git_below(&root);
        below.dedup();
        below
    };
    assert_eq!(kept(), [PathBuf::from(".git")]);
    let hash = || stable_hash(&root, &|| Ok(())).unwrap();
    let (plain, real) = (hash(), root.join("lib/real"));
    fs::rename(root.join(".git"), &real).unwrap();
    for gitfile in ["gitdir: lib/real\n", "gitdir: ./lib/../lib/real/"] {
        scratch.write(".git", gitfile);
        assert_eq!(kept(), [PathBuf::from("lib/real")], "{gitfile}");
        assert_eq!(hash(), plain, "git's own files do not count");
    }
    fs::remove_file(root.join(".git")).unwrap();
    std::os::unix::fs::symlink("lib/real", root.join(".git")).unwrap();
    assert_eq!(kept(), [PathBuf::from("lib/real")]);
    assert_eq!((tree().git_dir(), tree().common_dir()), (&*real, &*real));
    assert_eq!(tree().state_dir().unwrap(), real.join("code-commit"));
    let beside = tempfile::tempdir().unwrap();
    let outside = beside.path().canonicalize().unwrap().join("x");
    fs::rename(&real, &outside).unwrap();
    fs::remove_file(root.join(".git")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join(".git")).unwrap();
    assert_eq!(kept(), [] as [PathBuf; 0]);
    assert_eq!(tree().state_dir().unwrap(), outside.join("code-commit"));
}
