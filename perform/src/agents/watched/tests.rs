#![expect(clippy::disallowed_methods, reason = "a test makes its files")]

use std::cell::RefCell;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::*;

mod hard_to_read;

struct Scene {
    folder: tempfile::TempDir,
    watched: Watched,
    copies: RefCell<Copies>,
}

impl Scene {
    fn new(may_touch: Option<&[&str]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs::create_dir_all(root.join("src/.git")).unwrap();
        for file in ["plan.md", "src/main.rs", "src/.git/HEAD"] {
            fs::write(root.join(file), file).unwrap();
        }
        let may_touch =
            may_touch.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Self {
            folder,
            watched: Watched {
                root,
                skip: vec![".git".into()],
                may_touch,
                ..Watched::default()
            },
            copies: RefCell::default(),
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.watched.root.join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// Makes the tree a repository.
    fn init(&self) {
        let git = code_commit_repo::Git::new(&self.watched.root, "git", []);
        git.init().unwrap();
    }

    fn during(&self, turn: impl FnOnce()) -> Changes {
        self.after(turn).unwrap()
    }

    fn after(&self, turn: impl FnOnce()) -> Result<Changes, AgentFault> {
        let mut copies = self.copies.borrow_mut();
        let (left, run) = ("left".to_owned(), self.folder.path());
        let warning = copies.open(&self.watched, "the role", left, run).unwrap();
        assert_eq!(warning, None);
        turn();
        copies.close()
    }

    /// What was taken out of the tree.
    fn taken(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join("backup/left").join(path)).unwrap()
    }
}

#[test]
fn what_a_role_may_not_touch_is_put_back_and_the_rest_stays() {
    let scene = Scene::new(Some(&["plan.md", "notes/"]));
    let changes = scene.during(|| {
        fs::write(scene.at("plan.md"), "new plan").unwrap();
        fs::create_dir(scene.at("notes")).unwrap();
        fs::write(scene.at("notes/a"), "a").unwrap();
        fs::write(scene.at("src/main.rs"), "changed").unwrap();
        fs::write(scene.at("src/new.rs"), "new").unwrap();
        fs::write(scene.at("src/.git/HEAD"), "not looked at").unwrap();
    });
    assert_eq!(changes.allowed, ["notes/a", "plan.md"]);
    assert_eq!(changes.put_back, ["src/main.rs", "src/new.rs"]);
    assert_eq!(scene.read("src/main.rs"), "src/main.rs");
    assert!(!scene.at("src/new.rs").exists() && scene.at("notes/a").exists());
}

/// A repository in this folder, with this configuration.
fn make_repository(git: &Path, config: &str) {
    for folder in ["objects", "refs"] {
        fs::create_dir_all(git.join(folder)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), config).unwrap();
}

const PLAIN: &str = "[core]\n\tbare = false\n";
const RUNS: &str = "[core]\n\tfsmonitor = ./evil\n";

#[test]
fn a_new_repository_that_makes_git_run_programs_is_put_back_whatever_a_role_may_touch() {
    for may_touch in [None, Some(&["/"][..]), Some(&["plan.md"])] {
        let scene = Scene::new(may_touch);
        let changes = scene.during(|| {
            make_repository(&scene.at("a/dir/.git"), RUNS);
            make_repository(&scene.at("target/bare"), RUNS);
            make_repository(&scene.at("hooked/.git"), PLAIN);
            fs::create_dir(scene.at("hooked/.git/hooks")).unwrap();
            fs::write(scene.at("hooked/.git/hooks/pre-commit"), "evil").unwrap();
            make_repository(&scene.at("plain/.git"), PLAIN);
        });
        for path in [
            "a/dir/.git/config",
            "target/bare/config",
            "hooked/.git/hooks",
        ] {
            assert!(!scene.at(path).exists(), "{path} {may_touch:?}");
            let was_put_back = changes.put_back.iter().any(|back| back == path);
            assert!(was_put_back, "{path} {may_touch:?} {changes:?}");
        }
        assert!(scene.at("plain/.git/config").exists(), "git runs nothing");
    }
}

#[test]
fn the_configuration_of_a_repository_in_the_tree_comes_back_as_it_was() {
    let scene = Scene::new(None);
    make_repository(&scene.at("src/.git"), PLAIN);
    let changes = scene.during(|| fs::write(scene.at("src/.git/config"), RUNS).unwrap());
    assert_eq!(changes.put_back, ["src/.git/config"]);
    let now = scene.read("src/.git/config");
    assert_eq!(now, PLAIN);
    let changes = scene.during(|| fs::write(scene.at("src/.git/config"), "").unwrap());
    assert_eq!(changes, Changes::default(), "git runs nothing");
}

#[test]
fn folders_that_turn_files_into_a_repository_are_put_back() {
    let scene = Scene::new(Some(&["/"]));
    fs::create_dir_all(scene.at("x")).unwrap();
    fs::write(scene.at("x/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(scene.at("x/config"), RUNS).unwrap();
    let changes = scene.during(|| {
        fs::create_dir(scene.at("x/objects")).unwrap();
        fs::create_dir(scene.at("x/refs")).unwrap();
    });
    assert_eq!(changes.put_back, ["x/objects", "x/refs"]);
    assert!(scene.at("x/config").exists() && !scene.at("x/refs").exists());
}

#[test]
fn what_is_in_the_place_of_a_restored_file_or_of_its_folder_is_kept() {
    let scene = Scene::new(Some(&["src"]));
    let changes = scene.during(|| {
        fs::remove_file(scene.at("plan.md")).unwrap();
        fs::create_dir(scene.at("plan.md")).unwrap();
        fs::write(scene.at("plan.md/inner"), "mine").unwrap();
        fs::remove_dir_all(scene.at("src")).unwrap();
        fs::write(scene.at("src"), "mine, too").unwrap();
    });
    assert_eq!(
        changes.put_back,
        ["plan.md", "src", "src/.git", "src/main.rs"]
    );
    assert_eq!(
        (scene.taken("plan.md/inner"), scene.taken("src")),
        ("mine".to_owned(), "mine, too".to_owned())
    );
    for file in ["plan.md", "src/main.rs"] {
        assert_eq!(scene.read(file), file);
    }
}

#[test]
fn what_was_put_back_is_kept_and_the_last_entry_that_fits_counts() {
    let scene = Scene::new(Some(&["/", "!src/", "src/open.rs"]));
    let changes = scene.during(|| {
        for file in ["plan.md", "src/main.rs", "src/open.rs"] {
            fs::write(scene.at(file), "changed").unwrap();
        }
    });
    assert_eq!(changes.allowed, ["plan.md", "src/open.rs"]);
    assert_eq!(changes.put_back, ["src/main.rs"]);
    assert_eq!(scene.taken("src/main.rs"), "changed");
}

#[test]
fn what_is_taken_twice_is_kept_twice() {
    let scene = Scene::new(Some(&["plan.md"]));
    for text in ["one", "two"] {
        scene.during(|| fs::write(scene.at("src/main.rs"), text).unwrap());
    }
    let kept = ["src/main.rs", "2/src/main.rs"].map(|file| scene.taken(file));
    assert_eq!(kept, ["one", "two"]);
}

#[test]
fn what_git_ignores_is_nobodys_concern() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir_all(root.join("target")).unwrap();
    fs::write(root.join(".gitignore"), "target/\n").unwrap();
    fs::write(root.join("target/old"), "old").unwrap();
    code_commit_repo::Git::new(&root, "git", []).init().unwrap();
    let watched = Watched {
        root,
        skip: vec![".git".into()],
        may_touch: Some(Vec::new()),
        ..Watched::default()
    };
    let scene = Scene {
        folder,
        watched,
        copies: RefCell::default(),
    };
    let changes = scene.during(|| {
        fs::write(scene.at("target/old"), "new").unwrap();
        fs::write(scene.at("target/new"), "new").unwrap();
        fs::write(scene.at("lib.rs"), "new").unwrap();
    });
    assert_eq!(
        (changes.allowed.len(), changes.put_back),
        (0, vec!["lib.rs".to_owned()])
    );
    assert!(scene.at("target/new").exists() && !scene.at("lib.rs").exists());
}

#[test]
fn a_folder_that_became_a_file_or_a_link_is_a_folder_again() {
    for trick in [
        |place: &Path| fs::write(place, "x"),
        |place: &Path| symlink("/etc", place),
    ] {
        let scene = Scene::new(Some(&[]));
        scene.during(|| {
            fs::remove_dir_all(scene.at("src")).unwrap();
            trick(&scene.at("src")).unwrap();
        });
        assert!(fs::symlink_metadata(scene.at("src")).unwrap().is_dir());
        assert_eq!(scene.read("src/main.rs"), "src/main.rs");
    }
}

#[test]
fn a_write_that_keeps_length_and_time_is_seen() {
    let scene = Scene::new(None);
    let changes = scene.during(|| {
        let time = fs::metadata(scene.at("plan.md"))
            .unwrap()
            .modified()
            .unwrap();
        fs::write(scene.at("plan.md"), "PLAN.MD").unwrap();
        fs::File::options()
            .write(true)
            .open(scene.at("plan.md"))
            .unwrap()
            .set_modified(time)
            .unwrap();
    });
    assert_eq!(changes.allowed, ["plan.md"]);
    // It was not committed.
    assert_eq!(
        (changes.warnings.len(), &*scene.taken("plan.md")),
        (1, "plan.md")
    );
}

#[test]
fn what_has_not_changed_is_copied_once_and_the_copies_go_with_the_world() {
    let scene = Scene::new(Some(&[]));
    scene.during(|| {});
    let files = scene.folder.path().join("backup/before/files");
    let copy = files.join("src/main.rs.before");
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&copy).unwrap());
    let first = inode();
    scene.during(|| {});
    assert_eq!(inode(), first);
    fs::write(scene.at("src/main.rs"), "by a person").unwrap();
    scene.during(|| fs::write(scene.at("src/main.rs"), "by the role").unwrap());
    assert_eq!(scene.read("src/main.rs"), "by a person");
    scene.copies.take();
    assert!(!files.exists());
}

#[test]
fn a_write_through_a_second_name_with_the_old_time_is_put_back() {
    let scene = Scene::new(Some(&[]));
    scene.during(|| {});
    let changes = scene.during(|| {
        let time = fs::metadata(scene.at("plan.md"))
            .unwrap()
            .modified()
            .unwrap();
        fs::hard_link(scene.at("plan.md"), scene.folder.path().join("second")).unwrap();
        let second = fs::File::options()
            .write(true)
            .open(scene.folder.path().join("second"))
            .unwrap();
        std::io::Write::write_all(&mut &second, b"PLAN.MD").unwrap();
        second.set_modified(time).unwrap();
    });
    assert_eq!(changes.put_back, ["plan.md"]);
    assert_eq!(scene.read("plan.md"), "plan.md");
}

#[test]
fn nothing_is_put_back_through_a_link_that_git_ignores() {
    let scene = Scene::new(Some(&[]));
    fs::write(scene.at(".gitignore"), "src\n").unwrap();
    scene.init();
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("main.rs"), "not ours").unwrap();
    let scene = Scene {
        watched: Watched {
            protect: vec![vec!["src/main.rs".to_owned()]],
            ..scene.watched.clone()
        },
        ..scene
    };
    let changes = scene.during(|| {
        fs::remove_dir_all(scene.at("src")).unwrap();
        symlink(&outside, scene.at("src")).unwrap();
    });
    assert!(changes.put_back.contains(&"src/main.rs".to_owned()));
    assert_eq!(
        fs::read_to_string(outside.join("main.rs")).unwrap(),
        "not ours"
    );
    assert_eq!(scene.read("src/main.rs"), "src/main.rs");
    assert!(fs::symlink_metadata(scene.at("src")).unwrap().is_dir());
}

#[test]
fn files_behind_ignore_rules_of_the_role_go_with_the_rules() {
    let scene = Scene::new(Some(&[]));
    fs::create_dir(scene.at("odd")).unwrap();
    fs::write(
        scene
            .at("odd")
            .join(std::ffi::OsStr::from_bytes(b"old\xff")),
        "old",
    )
    .unwrap();
    scene.init();
    let changes = scene.during(|| {
        fs::write(scene.at(".gitignore"), "*\n").unwrap();
        fs::write(scene.at("hidden.rs"), "new").unwrap();
        fs::write(scene.at("odd/.gitignore"), "*\n").unwrap();
        fs::create_dir(scene.at(".cache")).unwrap();
        fs::write(scene.at(".cache/.gitignore"), "*\n").unwrap();
        fs::write(scene.at(".cache/product"), "new").unwrap();
    });
    assert_eq!(
        changes.put_back,
        [".gitignore", "hidden.rs", "odd/.gitignore"]
    );
    assert!(!scene.at("hidden.rs").exists() && scene.at(".cache/product").exists());
}

#[test]
fn a_name_that_is_not_utf_8_is_put_back_as_any_other() {
    let scene = Scene::new(Some(&[]));
    scene.init();
    let name = |bytes: &[u8]| scene.watched.root.join(std::ffi::OsStr::from_bytes(bytes));
    fs::write(name(b"old\xff"), "old").unwrap();
    let changes = scene.during(|| {
        fs::write(name(b"old\xff"), "changed").unwrap();
        fs::write(name(b"new\xfe"), "new").unwrap();
    });
    assert_eq!(changes.put_back, ["new\\xfe", "old\\xff"]);
    assert_eq!(fs::read_to_string(name(b"old\xff")).unwrap(), "old");
    assert!(!name(b"new\xfe").exists());
}
