use super::*;

struct Scene {
    folder: tempfile::TempDir,
    watched: Watched,
}

impl Scene {
    fn new(may_touch: Option<&[&str]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs::create_dir_all(root.join("src/.git")).unwrap();
        for file in ["plan.md", "src/main.rs", "src/.git/HEAD"] {
            fs::write(root.join(file), file).unwrap();
        }
        let may_touch = may_touch.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Self { folder, watched: Watched { root, skip: vec![".git".into()], may_touch, shown: Vec::new() } }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.watched.root.join(path)
    }

    fn during(&self, turn: impl FnOnce()) -> Changes {
        let before = {
            let at = |name: &str| self.folder.path().join(name);
            Before::take(&self.watched, &at("kept"), &at("taken")).unwrap()
        };
        turn();
        let changes = before.compare().unwrap();
        assert!(!self.folder.path().join("kept").exists());
        changes
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
    assert_eq!(fs::read_to_string(scene.at("src/main.rs")).unwrap(), "src/main.rs");
    assert!(!scene.at("src/new.rs").exists() && scene.at("notes/a").exists());
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
    assert_eq!(fs::read_to_string(scene.folder.path().join("taken/src/main.rs")).unwrap(), "changed");
}

#[test]
fn what_git_ignores_is_nobodys_concern() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir_all(root.join("target")).unwrap();
    fs::write(root.join(".gitignore"), "target/\n").unwrap();
    fs::write(root.join("target/old"), "old").unwrap();
    repo::init(&root).unwrap();
    let watched = Watched { root, skip: vec![".git".into()], may_touch: Some(Vec::new()), shown: Vec::new() };
    let scene = Scene { folder, watched };
    let changes = scene.during(|| {
        fs::write(scene.at("target/old"), "new").unwrap();
        fs::write(scene.at("target/new"), "new").unwrap();
        fs::write(scene.at("lib.rs"), "new").unwrap();
    });
    assert_eq!((changes.allowed.len(), changes.put_back), (0, vec!["lib.rs".to_owned()]));
    assert!(scene.at("target/new").exists() && !scene.at("lib.rs").exists());
}

#[test]
fn a_folder_that_became_a_file_or_a_link_is_a_folder_again() {
    for trick in [|place: &Path| fs::write(place, "x"), |place: &Path| symlink("/etc", place)] {
        let scene = Scene::new(Some(&[]));
        scene.during(|| {
            fs::remove_dir_all(scene.at("src")).unwrap();
            trick(&scene.at("src")).unwrap();
        });
        assert!(fs::symlink_metadata(scene.at("src")).unwrap().is_dir());
        assert_eq!(fs::read_to_string(scene.at("src/main.rs")).unwrap(), "src/main.rs");
    }
}

#[test]
fn a_write_that_keeps_length_and_time_is_seen() {
    let scene = Scene::new(None);
    let changes = scene.during(|| {
        let time = fs::metadata(scene.at("plan.md")).unwrap().modified().unwrap();
        fs::write(scene.at("plan.md"), "PLAN.MD").unwrap();
        fs::File::options().write(true).open(scene.at("plan.md")).unwrap().set_modified(time).unwrap();
    });
    assert_eq!(changes, Changes { allowed: vec!["plan.md".into()], ..Changes::default() });
}
