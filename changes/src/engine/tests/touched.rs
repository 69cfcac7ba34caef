//! What happens to the user's files while changes come in from a layer.

use std::time::{Duration, SystemTime};

use super::*;

/// The identity of a file.
fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

fn touch(path: &Path, time: SystemTime) {
    fs::File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

/// A project, its layer, and the guard.
fn in_layer(files: &[(&str, &str)]) -> (Project, PathBuf, Guard) {
    let mut project = Project::new(files).works(Where::View);
    let guard = project.guard();
    assert_eq!(project.account.open(&guard, &project.run).unwrap(), None);
    let upper = project.account.overlay().unwrap().unwrap().upper;
    (project, upper, guard)
}

#[test]
fn a_file_that_a_command_only_touched_is_never_moved() {
    let files = [
        (".gitignore", "*.o\n"),
        ("notes", "mine\n"),
        ("deep/notes", "mine\n"),
        ("a.o", "mine\n"),
    ];
    let (mut project, upper, guard) = in_layer(&files);
    let touched = ["notes", "deep/notes", "a.o"];
    let root = project.root();
    let before = touched.map(|path| inode(&root.join(path)));
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    fs::create_dir(upper.join("deep")).unwrap();
    for path in touched {
        fs::copy(root.join(path), upper.join(path)).unwrap();
        touch(&upper.join(path), later);
    }
    let accounted = project.close(&guard);
    assert_eq!(
        touched.map(|path| inode(&root.join(path))),
        before,
        "another file has the name"
    );
    assert_eq!(accounted, Accounted::default());
    for path in touched {
        assert_eq!(
            fs::metadata(root.join(path)).unwrap().modified().unwrap(),
            later,
            "{path}"
        );
    }
}

/// Waits until the clock of the files has moved on: a person is slower than that.
fn after(path: &Path) {
    let old = fs::symlink_metadata(path).unwrap();
    let other = path.with_extension("tick");
    loop {
        fs::write(&other, "").unwrap();
        let new = fs::symlink_metadata(&other).unwrap();
        if (new.ctime(), new.ctime_nsec()) > (old.ctime(), old.ctime_nsec()) {
            return fs::remove_file(other).unwrap();
        }
    }
}

/// What is in the attics of a run, by path.
pub(super) fn attic(run: &Path) -> BTreeMap<PathBuf, String> {
    let (mut found, mut todo) = (BTreeMap::new(), Vec::new());
    let Ok(entries) = fs::read_dir(run.join("backup")) else {
        return found;
    };
    for entry in entries.map(|entry| entry.unwrap()) {
        if entry.file_name().to_str().unwrap().starts_with("left") {
            todo.push((entry.path(), entry.path()));
        }
    }
    while let Some((top, path)) = todo.pop() {
        if path.symlink_metadata().unwrap().is_dir() {
            todo.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| (top.clone(), entry.unwrap().path())),
            );
        } else {
            let text = match fs::read_link(&path) {
                Ok(target) => format!("-> {}", target.display()),
                Err(_) if !path.is_file() => "no file".to_owned(),
                Err(_) => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            };
            found.insert(path.strip_prefix(&top).unwrap().to_owned(), text);
        }
    }
    found
}

pub(super) fn texts<'t>(
    files: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> BTreeMap<PathBuf, String> {
    files
        .into_iter()
        .map(|(path, text)| (path.into(), text.to_owned()))
        .collect()
}

#[test]
fn what_somebody_saves_while_a_command_changes_the_same_file_stays_and_is_named() {
    let files = [
        (".gitignore", "*.o\n"),
        ("a", "old\n"),
        ("a.o", "old\n"),
        ("d/a", "old\n"),
        ("e.o/a", "old\n"),
    ];
    let (mut project, upper, guard) = in_layer(&files);
    for path in ["a", "a.o"] {
        fs::write(upper.join(path), "built\n").unwrap();
    }
    for folder in ["d", "e.o"] {
        by_hand::whiteout(&upper.join(folder));
    }
    after(&upper.parent().unwrap().join("since"));
    for path in ["a", "a.o", "d/theirs", "e.o/theirs"] {
        project.write(path, "theirs\n");
    }
    let accounted = project.close(&guard);
    let theirs = ["a", "a.o", "d/theirs", "e.o/theirs"];
    assert_eq!(
        attic(&project.run),
        texts(["a", "a.o"].map(|path| (path, "built\n")))
    );
    let [warning] = accounted.warnings.as_slice() else {
        panic!("{accounted:?}")
    };
    assert!(
        theirs.iter().all(|path| warning.message.contains(path)),
        "{}",
        warning.message
    );
    for path in theirs {
        let text = project.read(path);
        assert_eq!(text, "theirs\n", "{path}");
    }
    assert_eq!(shown(&accounted), "D d/a");
    project.undo();
    let a = project.read("a");
    assert_eq!(a, "theirs\n", "the run has not written it");
}

#[test]
fn what_a_command_put_into_a_folder_in_the_place_of_a_file_that_somebody_saves_is_not_the_runs() {
    let (mut project, upper, guard) = in_layer(&[("a", "old\n")]);
    fs::create_dir(upper.join("a")).unwrap();
    fs::write(upper.join("a/inner"), "built\n").unwrap();
    after(&upper.parent().unwrap().join("since"));
    project.write("a", "theirs\n");
    let accounted = project.close(&guard);
    assert_eq!(shown(&accounted), "");
    assert_eq!(attic(&project.run), texts([("a/inner", "built\n")]));
    project.undo();
    let a = project.read("a");
    assert_eq!(a, "theirs\n");
}

/// Cargo links every program from `deps`, and each build does so anew.
#[test]
fn a_product_with_another_name_that_a_command_replaces_is_nobody_elses() {
    let files = [
        (".gitignore", "out/\n"),
        ("out/deps/x", "old\n"),
        ("a", "old\n"),
    ];
    let (mut project, upper, guard) = in_layer(&files);
    let root = project.root();
    fs::hard_link(root.join("out/deps/x"), root.join("out/x")).unwrap();
    after(&upper.parent().unwrap().join("since"));
    let mode = fs::metadata(root.join("a")).unwrap().permissions();
    fs::set_permissions(root.join("a"), mode).unwrap();
    fs::create_dir_all(upper.join("out/deps")).unwrap();
    fs::write(upper.join("out/deps/x"), "built\n").unwrap();
    fs::hard_link(upper.join("out/deps/x"), upper.join("out/x")).unwrap();
    fs::write(upper.join("a"), "built\n").unwrap();
    let accounted = project.close(&guard);
    assert_eq!(accounted.warnings, []);
    assert_eq!(attic(&project.run), texts([]));
    assert_eq!(fs::read_to_string(root.join("out/x")).unwrap(), "built\n");
}

/// As git sees it with `core.trustctime=false`, nothing has happened.
#[test]
fn an_edit_of_the_same_size_with_its_time_put_back_is_not_lost() {
    let files = [(".gitignore", "*.o\n"), ("a", "old\n"), ("a.o", "old\n")];
    let (mut project, upper, guard) = in_layer(&files);
    after(&upper.parent().unwrap().join("since"));
    for path in ["a", "a.o"] {
        let file = project.root().join(path);
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        project.write(path, "new\n");
        touch(&file, time);
        fs::write(upper.join(path), "built\n").unwrap();
    }
    project.close(&guard);
    assert_eq!(attic(&project.run), texts([("a.o", "new\n")]));
    project.undo();
    assert_eq!(project.read("a"), "new\n");
}

#[test]
fn a_command_that_puts_the_time_back_has_changed_the_file() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "old\n")]).works(place);
        ignoring::git(&project.root(), &["config", "core.trustctime", "false"]);
        ignoring::git(&project.root(), &["add", "a"]);
        let accounted = project.command(|root| {
            let time = fs::metadata(root.join("a")).unwrap().modified().unwrap();
            fs::write(root.join("a"), "new\n").unwrap();
            touch(&root.join("a"), time);
        });
        assert_eq!(shown(&accounted), "M a", "{place:?}");
    }
}

#[test]
fn an_edit_after_a_kill_is_in_the_folder_of_the_run_when_the_changes_are_taken_back() {
    for place in [Where::Tree, Where::View] {
        let mut project = Project::new(&[("a", "old\n"), ("b", "old\n")]).works(place);
        project.command(|root| {
            fs::write(root.join("a"), "built\n").unwrap();
            fs::write(root.join("b"), "built\n").unwrap();
        });
        project.write("a", "theirs\n");
        assert_eq!(project.settle(), ["a", "b"], "{place:?}");
        assert_eq!(project.read("a"), "old\n", "{place:?}");
        let kept = attic(&project.run);
        assert_eq!(
            kept.get(Path::new("a")).map(String::as_str),
            Some("theirs\n"),
            "{place:?} {kept:?}"
        );
    }
}

/// What git ignores is in no set, so a folder of it is in the way of a file that was there before.
#[test]
fn after_a_kill_no_product_in_the_place_of_a_file_keeps_the_tree_from_coming_back() {
    for place in [Where::Tree, Where::View] {
        let files = [
            (".gitignore", "*.o\n"),
            ("a", "old\n"),
            ("b", "old\n"),
            ("c", "old\n"),
        ];
        let mut project = Project::new(&files).works(place);
        let before = project.all();
        project.command(|root| {
            fs::remove_file(root.join("a")).unwrap();
            fs::remove_file(root.join("b")).unwrap();
            fs::create_dir(root.join("b")).unwrap();
            fs::write(root.join("b/x.o"), "product\n").unwrap();
            fs::write(root.join("c"), "built\n").unwrap();
        });
        project.settle();
        assert_eq!(project.all(), before, "{place:?}");
        let kept = code_commit_dir::list(project.run.join("backup"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let is_product =
            |folder: PathBuf| fs::read(folder.join("b/x.o")).is_ok_and(|text| text == b"product\n");
        assert!(kept.into_iter().any(is_product), "{place:?}");
    }
}

#[test]
fn a_killed_harness_that_had_taken_something_out_of_the_tree_leaves_it_in_the_folder_of_the_run() {
    let (project, upper, _) = in_layer(&[("a", "old\n")]);
    fs::create_dir(upper.parent().unwrap().join("out")).unwrap();
    fs::write(upper.join("a"), "came out\n").unwrap();
    project.settle();
    assert_eq!(
        attic(&project.run)
            .get(Path::new("view/upper/a"))
            .map(String::as_str),
        Some("came out\n")
    );
    assert!(!upper.exists());
}

#[test]
fn nothing_is_removed_that_could_not_be_taken_in() {
    let mut project = Project::new(&[("a", "old\n"), ("d/.gitignore", "x\n")]);
    project.begin(|root| {
        fs::write(root.join("a"), "theirs\n").unwrap();
        fs::create_dir_all(root.join("new/deep")).unwrap();
        fs::write(root.join("new/deep/file"), "theirs\n").unwrap();
    });
    let (guard, run) = (project.guard(), project.run.clone());
    // No room for an attic.
    let aside = project.scratch.path().join("aside");
    fs::rename(&run, &aside).unwrap();
    fs::create_dir(&run).unwrap();
    fs::create_dir(run.join("backup")).unwrap();
    fs::rename(aside.join("backup/before"), run.join("backup/before")).unwrap();
    symlink("/proc/self/none", run.join("x")).unwrap();
    let blocked = run.join("x");
    project.account.abandon(&guard, &blocked).unwrap_err();
    for path in ["a", "new/deep/file"] {
        assert_eq!(project.read(path), "theirs\n", "{path}");
    }
}

#[test]
fn what_is_taken_out_is_kept_whole_on_another_disk_whatever_its_size() {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("SKIPPED: there is no /dev/shm");
    };
    let mut project = Project::new(&[("a", "old\n")]);
    if fs::metadata(other.path()).unwrap().dev() == fs::metadata(project.root()).unwrap().dev() {
        return eprintln!("SKIPPED: /dev/shm is on the disk of the tree");
    }
    project.run = other.path().join("run");
    fs::create_dir(&project.run).unwrap();
    let len = (64 << 20) + 1;
    project.begin(|root| {
        fs::File::create(root.join("a"))
            .unwrap()
            .set_len(len)
            .unwrap();
    });
    let (guard, run) = (project.guard(), project.run.clone());
    project.account.abandon(&guard, &run).unwrap();
    let kept = attic(&project.run);
    assert_eq!(
        kept.get(Path::new("a")).map(|text| text.len() as u64),
        Some(len)
    );
}

#[test]
fn what_is_taken_out_is_no_repository_any_more_and_replaces_nothing() {
    let mut project = Project::new(&[("a", "old\n")]);
    project.begin(|root| {
        fs::create_dir_all(root.join("d/.git/hooks")).unwrap();
        fs::write(root.join("d/.git/config"), "[core]\n").unwrap();
        fs::create_dir_all(root.join("bare/objects")).unwrap();
        fs::write(root.join("bare/HEAD"), "ref\n").unwrap();
    });
    let (guard, run) = (project.guard(), project.run.clone());
    project.account.abandon(&guard, &run).unwrap();
    let expected = [("d/dot-git/config", "[core]\n"), ("bare/dot-HEAD", "ref\n")];
    assert_eq!(attic(&project.run), texts(expected));
    let mut attic_of_run = Backup::of(&run);
    let root = code_commit_dir::Folder::open(&project.root()).unwrap();
    for text in ["1\n", "2\n", "3\n"] {
        project.write("x/y", text);
        attic_of_run
            .take_in(&root.open_in("x").unwrap(), "y".as_ref(), Path::new("x/y"))
            .unwrap();
    }
    // Where the attic has a symlink by now.
    project.write("x/y", "4\n");
    symlink("/etc", project.root().join("z")).unwrap();
    attic_of_run
        .take_in(&root, "z".as_ref(), Path::new("z"))
        .unwrap();
    attic_of_run
        .take_in(&root.open_in("x").unwrap(), "y".as_ref(), Path::new("z/y"))
        .unwrap();
    let folder = attic_of_run.folder().unwrap();
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
    assert_eq!(
        [read("x/y"), read("2/x/y"), read("3/x/y"), read("2/z/y")],
        ["1\n", "2\n", "3\n", "4\n"]
    );
}
