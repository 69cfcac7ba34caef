#![expect(
    clippy::disallowed_methods,
    reason = "the tests make trees with plain writes"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use code_commit_apply::Lock;
use code_commit_engine::Action;
use code_commit_names::Binds;
use proptest::prelude::*;

use super::*;
use crate::change::Seen;
use crate::{is_settled, settle};

mod both_ways;
mod by_hand;
mod closed;
mod ignoring;
mod layout;
mod products;
mod sealed;
mod touched;

/// A project with a run in progress.
struct Project {
    scratch: tempfile::TempDir,
    run: PathBuf,
    /// Whether the answer of the build is in the journal.
    is_recorded: bool,
    account: ChangeEngine,
}

fn engine(who: &'static str, may_change: Policy, own: Vec<PathBuf>) -> ChangeEngine {
    ChangeEngine::new(Scope {
        who: who.into(),
        may_change,
        own,
        ..Scope::default()
    })
}

fn git_in(root: &Path) -> Git {
    let path = std::env::var_os("PATH").unwrap();
    Git::new(root, "git", [("PATH".into(), path)])
}

/// Where a command works: the account is the same.
#[derive(Debug, Clone, Copy)]
enum Where {
    Tree,
    View,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("tree");
        fs::create_dir(&root).unwrap();
        code_commit_repo::Git::new(&root, "git", []).init().unwrap();
        let run = scratch.path().join("run");
        fs::create_dir(&run).unwrap();
        let account = engine(
            "the build",
            Policy::build(Binds::Commit),
            vec![PathBuf::from("target")],
        );
        let account = account.asking(Some(git_in(&root)));
        let project = Self {
            scratch,
            run,
            is_recorded: false,
            account,
        };
        files
            .iter()
            .for_each(|(path, text)| project.write(path, text));
        project
    }

    fn works(self, place: Where) -> Self {
        match place {
            Where::Tree => self,
            Where::View => {
                let state = self.state();
                fs::create_dir_all(&state).unwrap();
                Self {
                    account: self.account.in_overlay(&state),
                    ..self
                }
            }
        }
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("tree")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn undo_folder(&self) -> PathBuf {
        self.run.join("backup/1-build")
    }

    /// Runs a command in the account.
    fn command(&mut self, command: impl FnOnce(&Path)) -> Accounted {
        let guard = self.guard();
        self.begin(command);
        self.close(&guard)
    }

    /// Accounts for what the command did.
    fn close(&mut self, guard: &Guard) -> Accounted {
        let undo = self.undo_folder();
        self.account.close(guard, &self.run, &undo).unwrap()
    }

    fn guard(&self) -> Guard {
        Guard::open(&self.root(), Policy::commit()).unwrap()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Runs a command, without any account yet.
    fn begin(&mut self, command: impl FnOnce(&Path)) {
        let root = self.root();
        let guard = Guard::open(&root, Policy::commit()).unwrap();
        assert_eq!(self.account.open(&guard, &self.run).unwrap(), None);
        match self.account.overlay().unwrap() {
            Some(view) => by_hand::work(&root, &view.upper, command),
            None => command(&root),
        }
    }

    fn git(&self) -> Git {
        git_in(&self.root())
    }

    fn lock(&self) -> Lock {
        Lock::acquire(&self.state(), "a test").unwrap()
    }

    /// Cleans up like the next process after a kill.
    fn settle(&self) -> Vec<String> {
        let is_recorded = |name: &str| name == "1-build" && self.is_recorded;
        settle(
            &self.lock(),
            &self.state(),
            &self.root(),
            &self.run,
            Some(self.git()),
            is_recorded,
        )
        .unwrap()
        .restored
    }

    fn undo(&self) {
        let lock = self.lock();
        let sets: Vec<PathBuf> = Some(self.undo_folder())
            .filter(|set| set.exists())
            .into_iter()
            .collect();
        if !sets.is_empty() {
            code_commit_apply::undo(&lock, &self.root(), &sets, code_commit_apply::Force::No)
                .unwrap();
        }
    }

    /// Everything but `.git`, with modes and content.
    fn all(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let root = self.root();
        let (mut found, mut todo) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let stat = fs::symlink_metadata(&path).unwrap();
                let content = if stat.is_symlink() {
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else if stat.is_file() {
                    fs::read(&path).unwrap()
                } else {
                    Vec::new()
                };
                if stat.is_dir() && path != root.join(".git") {
                    todo.push(path.clone());
                }
                found.insert(
                    path.strip_prefix(&root).unwrap().to_owned(),
                    (stat.mode(), content),
                );
            }
        }
        found.retain(|path, _| !path.starts_with(".git") && !path.starts_with("target"));
        found
    }
}

fn shown(accounted: &Accounted) -> String {
    let sign = |change: &code_commit_engine::Changed| match change.action {
        Action::Delete => 'D',
        Action::Write if change.created => 'A',
        Action::Write | Action::None => 'M',
    };
    let stays = accounted
        .changes
        .iter()
        .map(|change| format!("{} {}", sign(change), change.path));
    let back = accounted
        .put_back
        .iter()
        .map(|path| format!("put back {path}"));
    stays.chain(back).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_may_stay_is_known_to_undo_and_the_rest_is_put_back() {
    [Where::Tree, Where::View]
        .into_iter()
        .for_each(account_for_everything);
}

fn account_for_everything(place: Where) {
    let mut project = Project::new(&[
        (".gitignore", "*.o\n"),
        ("src/a.rs", "fn  a(){}\n"),
        ("src/.gitignore", "made\n"),
        ("Cargo.lock", "one\n"),
        ("build.sh", "cargo build\n"),
        ("gone", "gone\n"),
        ("touched", "touched\n"),
        ("becomes/a", "folder\n"),
        ("file", "file\n"),
    ])
    .works(place);
    symlink("src", project.root().join("link")).unwrap();
    let before = project.all();
    let accounted = project.command(|root| {
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        write("src/a.rs", "fn a() {}\n");
        write("touched", "touched\n");
        write("Cargo.lock", "two\n");
        write("build.sh", "true\n");
        write("a.o", "product");
        write("target/debug/a", "product");
        write("gen/deep/new.rs", "new\n");
        write("gen/.gitignore", "deep\n");
        write("src/.gitignore", "*\n");
        write(".cache/.gitignore", "*\n");
        write(".cache/v/lots", "lots\n");
        write("planted/.git/config", "[core]\n\tfsmonitor = ./run\n");
        write("planted/file", "file\n");
        write("src/.git/config", "[core]\n\tfsmonitor = ./run\n");
        write("bare/HEAD", "ref: refs/heads/main\n");
        write("bare/objects/x", "");
        write("bare/refs/x", "");
        fs::remove_file(root.join("gone")).unwrap();
        fs::remove_dir_all(root.join("becomes")).unwrap();
        write("becomes", "a file\n");
        fs::remove_file(root.join("file")).unwrap();
        write("file/inner", "inner\n");
        fs::remove_file(root.join("link")).unwrap();
        symlink("/etc", root.join("link")).unwrap();
        symlink("/etc/passwd", root.join("other")).unwrap();
        write("closed/file", "file\n");
        fs::set_permissions(root.join("closed"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(root.join("src/a.rs"), Permissions::from_mode(0o755)).unwrap();
    });
    insta::allow_duplicates! {
        insta::assert_snapshot!(shown(&accounted), @r"
        M Cargo.lock
        A becomes
        D becomes/a
        D file
        A file/inner
        A gen/deep/new.rs
        D gone
        M src/a.rs
        put back bare
        put back build.sh
        put back closed
        put back gen/.gitignore
        put back link
        put back other
        put back planted
        put back src/.git
        put back src/.gitignore
        ");
    }
    for path in [
        ".cache",
        "planted",
        "src/.git",
        "bare",
        "gen/.gitignore",
        "other",
    ] {
        assert!(
            project.root().join(path).symlink_metadata().is_err(),
            "{path}"
        );
    }
    let now = project.all();
    for path in ["src/.gitignore", "build.sh", "link"] {
        assert_eq!(
            now.get(Path::new(path)),
            before.get(Path::new(path)),
            "{path}"
        );
    }
    project.undo();
    let mut now = project.all();
    assert!(
        now.remove(Path::new("a.o")).is_some(),
        "what is ignored is of no account"
    );
    assert_eq!(now, before);
}

#[test]
fn in_a_scope_of_files_a_command_keeps_these_and_nothing_beside_them() {
    [Where::Tree, Where::View]
        .into_iter()
        .for_each(keep_the_scope);
}

fn keep_the_scope(place: Where) {
    let mut project = Project::new(&[("src/a", "a\n"), ("src/b", "b\n")]);
    project.account = engine(
        "a command",
        Policy::scoped(["src/a", "gen/deep/out"]),
        Vec::new(),
    );
    project = project.works(place);
    let accounted = project.command(|root| {
        fs::create_dir_all(root.join("gen/deep")).unwrap();
        fs::create_dir_all(root.join("report/html")).unwrap();
        for path in [
            "src/a",
            "src/b",
            "gen/deep/out",
            "gen/deep/other",
            "report/html/x",
        ] {
            fs::write(root.join(path), "new\n").unwrap();
        }
    });
    insta::allow_duplicates! {
        insta::assert_snapshot!(shown(&accounted), @r"
        A gen/deep/out
        M src/a
        put back gen/deep/other
        put back report/html/x
        put back src/b
        ");
    }
    assert!(!project.root().join("report").exists());
    assert_eq!(project.read("src/b"), "b\n");
}

#[test]
fn a_command_that_comes_to_no_end_leaves_nothing() {
    let mut project = Project::new(&[("a", "a\n"), ("folder/b", "b\n")]);
    let before = project.all();
    let (root, run) = (project.root(), project.run.clone());
    let guard = Guard::open(&root, Policy::commit()).unwrap();
    let change = || {
        fs::write(root.join("a"), "other\n").unwrap();
        fs::remove_dir_all(root.join("folder")).unwrap();
        fs::create_dir_all(root.join("new/.git")).unwrap();
        fs::write(root.join("new/.gitignore"), "*\n").unwrap();
        fs::write(root.join(".gitignore"), "hidden\n").unwrap();
        fs::write(root.join("hidden"), "hidden\n").unwrap();
    };
    project.account.open(&guard, &run).unwrap();
    change();
    let accounted = project.account.abandon(&guard, &run).unwrap();
    assert_eq!(accounted.warnings.len(), 1);
    assert_eq!(project.all(), before);
    // Recover as after a kill: another process has only what is on disk.
    project.account.open(&guard, &run).unwrap();
    change();
    // A note that a power cut has truncated restores nothing: it would make every other file look new.
    let note = run.join("backup/before/tree");
    let whole = fs::read(&note).unwrap();
    for cut in 0..whole.len() {
        fs::write(&note, whole.get(..cut).unwrap()).unwrap();
        assert!(project.settle().is_empty(), "{cut}");
    }
    fs::write(&note, whole).unwrap();
    let restored = project.settle();
    insta::assert_snapshot!(restored.join("\n"), @r"
    .gitignore
    a
    folder
    folder/b
    hidden
    new
    new/.git
    new/.gitignore
    ");
    assert_eq!(project.all(), before);
    assert!(project.settle().is_empty());
}

/// Changes, removes and makes something.
fn change(root: &Path) {
    fs::write(root.join("a"), "other\n").unwrap();
    fs::remove_dir_all(root.join("folder")).unwrap();
    fs::create_dir(root.join("new")).unwrap();
    fs::write(root.join("new/b"), "new\n").unwrap();
}

#[test]
fn until_the_answer_is_recorded_a_kill_takes_the_changes_back_and_from_then_on_they_stay() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "a\n"), ("folder/b", "b\n")]).works(place);
        let before = project.all();
        project.command(change);
        let after = project.all();
        assert_ne!(after, before);
        let mut restored = project.settle();
        restored.retain(|path| project.root().join(path).is_file() || path.ends_with('b'));
        restored.sort();
        assert_eq!(restored, ["a", "folder/b", "new/b"], "{place:?}");
        assert_eq!(project.all(), before, "{place:?}");
        assert!(
            !project.undo_folder().exists(),
            "the next build makes its own"
        );
        project.command(change);
        // The kill may come before the note is removed, or after.
        project.is_recorded = true;
        assert!(project.settle().is_empty(), "{place:?}");
        assert!(project.settle().is_empty(), "{place:?}");
        assert_eq!(project.all(), after, "{place:?}");
        project.undo();
        assert_eq!(project.all(), before, "{place:?}");
    }
}

#[test]
fn a_recorded_build_is_not_taken_back_with_the_next_one() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "a\n"), ("folder/b", "b\n")]).works(place);
        project.command(change);
        project.is_recorded = true;
        project.account.recorded(&project.run).unwrap();
        assert!(
            is_settled(&project.run).unwrap() && project.undo_folder().exists(),
            "its set is there"
        );
        let after = project.all();
        project.begin(|root| fs::write(root.join("a"), "of the next one\n").unwrap());
        project.settle();
        assert_eq!(project.all(), after, "{place:?}");
    }
}

/// What a command leaves is accounted for like this wherever it works, and undo makes the old tree of it.
fn both_ways_undone(files: &[(&str, &str)], expected: &str, command: impl Fn(&Path)) {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(files).works(place);
        let before = project.all();
        let accounted = project.command(&command);
        assert_eq!(shown(&accounted), expected, "{place:?}");
        project.undo();
        assert_eq!(project.all(), before, "{place:?}");
    }
}

#[test]
fn a_folder_comes_back_whole_if_something_in_it_has_to() {
    let files = [("d/.gitignore", "*.o\n"), ("d/b", "b\n"), ("e/b", "b\n")];
    let back = ["d", "d/.gitignore", "d/b", "e", "e/b"].map(|path| format!("put back {path}"));
    both_ways_undone(&files, &back.join("\n"), |root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d"), "a file\n").unwrap();
        fs::remove_dir_all(root.join("e")).unwrap();
        symlink("/etc", root.join("e")).unwrap();
    });
}

#[test]
fn a_program_with_a_set_id_bit_is_put_back_whatever_it_was() {
    let files = [("a", "a\n"), ("b", "b\n"), ("d/e", "e\n")];
    let back = ["a", "b", "d", "d/e", "new"].map(|path| format!("put back {path}"));
    both_ways_undone(&files, &back.join("\n"), |root| {
        fs::write(root.join("new"), "new\n").unwrap();
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d"), "d\n").unwrap();
        for (path, mode) in [("a", 0o2755), ("b", 0o4755), ("d", 0o4755), ("new", 0o6755)] {
            fs::set_permissions(root.join(path), Permissions::from_mode(mode)).unwrap();
        }
    });
}

#[test]
fn a_file_is_gone_if_the_folders_around_it_were_removed_and_made_again_without_it() {
    let files = [
        ("d/e/f/gone", "gone\n"),
        ("d/e/kept", "kept\n"),
        ("d/x.o", "x\n"),
    ];
    both_ways_undone(&files, "D d/e/f/gone\nD d/x.o", |root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::create_dir_all(root.join("d/e/f")).unwrap();
        fs::write(root.join("d/e/kept"), "kept\n").unwrap();
    });
}

#[test]
fn a_file_in_scope_that_was_moved_away_with_its_folder_is_gone_and_the_others_are_put_back() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("d/mine", "mine\n"), ("d/other", "other\n")]);
        project.account = engine("a command", Policy::scoped(["d/mine"]), Vec::new());
        project = project.works(place);
        let before = project.all();
        let accounted = project.command(|root| fs::rename(root.join("d"), root.join("e")).unwrap());
        assert_eq!(
            shown(&accounted),
            "D d/mine\nput back d/other\nput back e/mine\nput back e/other",
            "{place:?}"
        );
        assert!(!project.root().join("d/mine").exists(), "{place:?}");
        project.undo();
        assert_eq!(project.all(), before, "{place:?}");
    }
}

#[test]
fn a_folder_made_below_one_whose_mode_is_restored_gives_way_to_its_file_again() {
    both_ways_undone(&[("d/file", "old\n")], "D d/file\nput back d", |root| {
        fs::set_permissions(root.join("d"), Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(root.join("d/file")).unwrap();
        fs::create_dir(root.join("d/file")).unwrap();
    });
}

#[test]
fn nothing_that_git_would_run_stays_in_a_repository_that_is_there_already() {
    for place in [Where::Tree, Where::View] {
        let files = [
            ("a", "a\n"),
            ("nested/.git/config", "[core]\n"),
            ("nested/.git/index", "old\n"),
        ];
        let mut project = Project::new(&files).works(place);
        let before = project.all();
        let accounted = project.command(|root| {
            fs::create_dir(root.join("nested/.git/hooks")).unwrap();
            for name in ["config", "commondir", "hooks/post-index-change"] {
                fs::write(
                    root.join("nested/.git").join(name),
                    "[core]\n\tfsmonitor = ./run\n",
                )
                .unwrap();
            }
        });
        assert_eq!(project.all(), before, "{place:?}");
        if let Where::Tree = place {
            assert!(
                shown(&accounted).contains("put back nested/.git/config"),
                "{accounted:?}"
            );
        }
    }
}

#[test]
fn commands_of_one_account_see_each_others_changes_and_a_sealed_file_comes_back_in_between() {
    let mut project = Project::new(&[
        ("build.sh", "true\n"),
        ("deep/seal/ed", "old\n"),
        ("deep/b", "b\n"),
    ])
    .works(Where::View);
    let guard = project.guard();
    let sealed = ["build.sh", "deep/seal/ed", "not/there"].map(PathBuf::from);
    project.account.open(&guard, &project.run).unwrap();
    let upper = project.account.overlay().unwrap().unwrap().upper;
    project.account.sealed = sealed.to_vec();
    let run = project.run.clone();
    let broken = |account: &mut ChangeEngine| account.restore_sealed(&guard, &run).unwrap().0;
    fs::write(upper.join("product"), "of the first\n").unwrap();
    assert!(broken(&mut project.account).is_empty());
    let again = project.account.overlay().unwrap().unwrap();
    assert!(
        again.upper.join("product").exists() && fs::read_dir(again.work).unwrap().next().is_none()
    );
    // Changed, removed with the folder above it, made where none was.
    fs::write(upper.join("build.sh"), "exit 0\n").unwrap();
    by_hand::whiteout(&upper.join("deep"));
    fs::create_dir(upper.join("not")).unwrap();
    fs::write(upper.join("not/there"), "new\n").unwrap();
    assert_eq!(
        broken(&mut project.account),
        ["build.sh", "deep/seal/ed", "not/there"]
    );
    assert!(broken(&mut project.account).is_empty());
    let read = |path: &str| fs::read_to_string(upper.join(path)).unwrap();
    assert_eq!(
        [read("build.sh"), read("deep/seal/ed")],
        ["true\n", "old\n"]
    );
    assert!(!upper.join("not/there").exists());
    fs::remove_dir_all(upper.join("deep")).unwrap();
    // Replaced by another folder.
    fs::create_dir_all(upper.join("deep/seal")).unwrap();
    by_hand::opaque(&upper.join("deep/seal"));
    fs::write(upper.join("deep/c"), "new\n").unwrap();
    assert_eq!(broken(&mut project.account), ["deep/seal/ed"]);
    assert_eq!([read("deep/c"), read("deep/seal/ed")], ["new\n", "old\n"]);
    project
        .account
        .reset(
            &guard,
            &project.run,
            &mut crate::backup::Backup::of(&project.run),
        )
        .unwrap();
    assert!(!upper.exists() && !project.account.is_open());
}

/// What a build may do to a path.
#[derive(Debug, Clone)]
enum Deed {
    Write(String, u8),
    Remove(String),
    Chmod(String, bool),
    Rename(String, String),
    Link(String),
    Folder(String),
    Ignore(String),
    Repository(String),
    Sparse(String),
}

fn path() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "a", "b", "d/a", "d/b", "d/e/a", "d/e", "d", "f/x", "f",
    ])
    .prop_map(str::to_owned)
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (path(), any::<u8>()).prop_map(|(path, byte)| Deed::Write(path, byte)),
        path().prop_map(Deed::Remove),
        (path(), any::<bool>()).prop_map(|(path, runs)| Deed::Chmod(path, runs)),
        (path(), path()).prop_map(|(from, to)| Deed::Rename(from, to)),
        path().prop_map(Deed::Link),
        path().prop_map(Deed::Folder),
        path().prop_map(Deed::Ignore),
        path().prop_map(Deed::Repository),
        path().prop_map(Deed::Sparse),
    ]
}

/// Failures are ignored, as in a script without `set -e`.
fn do_it(root: &Path, deed: &Deed) {
    let parent = |path: &Path| drop(fs::create_dir_all(path.parent().unwrap()));
    match deed {
        Deed::Write(path, byte) => {
            parent(&root.join(path));
            drop(fs::write(root.join(path), [*byte; 3]));
        }
        Deed::Remove(path) => {
            drop(fs::remove_file(root.join(path)).or_else(|_| fs::remove_dir_all(root.join(path))));
        }
        Deed::Chmod(path, runs) => {
            let is_file =
                fs::symlink_metadata(root.join(path)).is_ok_and(|found| !found.is_symlink());
            if is_file {
                let mode = if *runs { 0o755 } else { 0o700 };
                drop(fs::set_permissions(
                    root.join(path),
                    Permissions::from_mode(mode),
                ));
            }
        }
        Deed::Rename(from, to) => drop(fs::rename(root.join(from), root.join(to))),
        Deed::Link(path) => drop(symlink("a", root.join(path))),
        Deed::Folder(path) => {
            drop(fs::remove_file(root.join(path)));
            drop(fs::create_dir_all(root.join(path)));
        }
        Deed::Ignore(folder) => drop(fs::write(root.join(folder).join(".gitignore"), "*\n")),
        Deed::Repository(folder) => drop(fs::create_dir_all(root.join(folder).join(".git"))),
        Deed::Sparse(path) => {
            if let Ok(file) = fs::File::create(root.join(path)) {
                drop(file.set_len(64 << 10));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Empty folders do not count: git does not track them.
    #[test]
    fn undo_makes_the_old_tree_whatever_a_build_has_done(
        place in prop_oneof![Just(Where::Tree), Just(Where::View)],
        tree in proptest::collection::vec(deed(), 0..8),
        build in proptest::collection::vec(deed(), 1..10),
    ) {
        let mut project = Project::new(&[]).works(place);
        // Files that are ignored from the start do not count.
        let tree = tree.iter().filter(|deed| !matches!(deed, Deed::Ignore(_)));
        tree.for_each(|deed| do_it(&project.root(), deed));
        let without_folders = |mut all: BTreeMap<PathBuf, (u32, Vec<u8>)>| {
            all.retain(|_, (mode, _)| !Seen::is_folder(*mode));
            all
        };
        let before = project.all();
        project.command(|root| build.iter().for_each(|deed| do_it(root, deed)));
        project.undo();
        prop_assert_eq!(without_folders(project.all()), without_folders(before));
    }

    #[test]
    fn a_kill_in_the_middle_of_a_build_leaves_the_old_tree(
        place in prop_oneof![Just(Where::Tree), Just(Where::View)],
        tree in proptest::collection::vec(deed(), 0..8),
        build in proptest::collection::vec(deed(), 1..10),
    ) {
        let mut project = Project::new(&[]).works(place);
        let tree = tree.iter().filter(|deed| !matches!(deed, Deed::Ignore(_)));
        tree.for_each(|deed| do_it(&project.root(), deed));
        let before = project.all();
        project.begin(|root| build.iter().for_each(|deed| do_it(root, deed)));
        project.settle();
        prop_assert_eq!(project.all(), before);
    }
}

/// A test runner below Landlock can list them.
#[test]
fn a_copy_has_no_name_that_a_pattern_for_files_of_the_project_matches() {
    let mut project = Project::new(&[("src/a.test.js", "1\n")]);
    let copies = &project.run.join("backup/before/files/src");
    let mut names = Vec::new();
    project.command(|_| {
        let entries = fs::read_dir(copies).unwrap().flatten();
        names.extend(entries.map(|entry| entry.file_name()));
    });
    assert_eq!(names, ["a.test.js.before"]);
}

#[test]
fn the_folder_to_which_dot_git_leads_is_git_s_own_whatever_its_name() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "1\n")]).works(place);
        let root = project.root();
        fs::rename(root.join(".git"), root.join("real")).unwrap();
        fs::write(root.join(".git"), "gitdir: real\n").unwrap();
        let accounted = project.command(|tree| {
            fs::create_dir_all(tree.join("real")).unwrap();
            fs::write(tree.join("real/description"), "changed\n").unwrap();
            fs::write(tree.join("a"), "2\n").unwrap();
        });
        assert_eq!(shown(&accounted), "M a", "{place:?}");
        assert!(accounted.warnings.is_empty(), "{place:?}: {accounted:?}");
    }
}
