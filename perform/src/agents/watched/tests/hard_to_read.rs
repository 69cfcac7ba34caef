//! Turns that leave a tree that is hard to read.

use super::*;

/// So deep that no system call takes the whole path.
fn dig(top: &Path) -> std::os::fd::OwnedFd {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let open = |at: std::os::fd::BorrowedFd<'_>, name: &Path| {
        openat(at, name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let name = "d".repeat(100);
    let mut here = open(CWD, top);
    for _ in 0..60 {
        mkdirat(&here, name.as_str(), Mode::RWXU).unwrap();
        here = open(std::os::fd::AsFd::as_fd(&here), Path::new(&name));
    }
    here
}

fn write_in(folder: &std::os::fd::OwnedFd, name: &str, text: &str) {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(&file, text.as_bytes()).unwrap();
}

#[test]
fn no_depth_keeps_what_may_not_be_touched_from_being_put_back() {
    for git in [false, true] {
        let scene = Scene::new(Some(&[]));
        if git {
            scene.init();
        }
        let changes = scene.during(|| {
            fs::write(scene.at("plan.md"), "changed").unwrap();
            write_in(&dig(&scene.at("src")), "new", "new");
        });
        assert_eq!(
            (changes.put_back.len(), &*changes.put_back[0]),
            (2, "plan.md")
        );
        assert_eq!(scene.read("plan.md"), "plan.md");
        assert_eq!(fs::read_dir(scene.at("src")).unwrap().count(), 2);
        write_in(&dig(&scene.at("src")), "old", "old");
        let deep = scene.at("src").join("d".repeat(100));
        assert_eq!(
            scene
                .during(|| fs::rename(&deep, scene.at("away")).unwrap())
                .put_back
                .len(),
            2
        );
        assert!(deep.is_dir() && !scene.at("away").exists());
        // Removes what an ordinary removal could not.
        code_commit_dir::reach::remove(
            code_commit_dir::reach::root(&scene.at("src"), code_commit_dir::reach::CHANGE).unwrap(),
            deep.file_name().unwrap(),
        )
        .unwrap();
        scene.copies.take();
        let top = code_commit_dir::reach::root(scene.folder.path(), code_commit_dir::reach::CHANGE)
            .unwrap();
        code_commit_dir::reach::remove(&top, "backup".as_ref()).unwrap();
    }
}

/// Root may read everything, so a thread drops its privileges.
#[test]
fn no_mode_keeps_what_may_not_be_touched_from_being_put_back() {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let nobody = rustix::fs::Uid::from_raw(65534);
            let is_root = rustix::process::geteuid().is_root();
            if is_root && rustix::thread::set_thread_res_uid(nobody, nobody, nobody).is_err() {
                return eprintln!(
                    "SKIPPED: modes of files because this user cannot become another"
                );
            }
            if tempfile::tempdir().is_err() {
                return eprintln!(
                    "SKIPPED: modes of files because not everybody may write to {:?}",
                    std::env::temp_dir()
                );
            }
            put_back_whatever_the_modes();
            put_back_whatever_the_mode_of_the_root();
        });
        worker.join().unwrap();
    });
}

fn put_back_whatever_the_modes() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let scene = Scene::new(Some(&[]));
    scene.init();
    fs::create_dir(scene.at("tests")).unwrap();
    fs::write(scene.at("tests/t.sh"), "old").unwrap();
    let changes = scene.during(|| {
        fs::write(scene.at("plan.md"), "EVIL").unwrap();
        mode(&scene.at("plan.md"), 0o000);
        fs::write(scene.at("tests/t.sh"), "EVIL").unwrap();
        fs::write(scene.at("tests/new"), "EVIL").unwrap();
        mode(&scene.at("tests"), 0o000);
        mode(&scene.at("src"), 0o400);
    });
    let put_back = ["plan.md", "src", "tests", "tests/new", "tests/t.sh"];
    assert_eq!(changes.put_back, put_back);
    assert_eq!(scene.read("plan.md"), "plan.md");
    assert_eq!(
        fs::metadata(scene.at("plan.md"))
            .unwrap()
            .permissions()
            .mode()
            & 0o400,
        0o400
    );
    assert_eq!(scene.read("tests/t.sh"), "old");
}

fn put_back_whatever_the_mode_of_the_root() {
    use std::os::unix::fs::PermissionsExt as _;
    for mode in [0o000, 0o500] {
        let scene = Scene::new(Some(&[]));
        let root = scene.watched.root.clone();
        let changes = scene.during(|| {
            fs::write(scene.at("plan.md"), "EVIL").unwrap();
            fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
        });
        assert_eq!(changes.put_back, ["plan.md"], "{mode:o}");
        assert_eq!(scene.read("plan.md"), "plan.md", "{mode:o}");
    }
}

#[test]
fn where_git_cannot_say_any_more_what_is_new_everything_new_is() {
    let scene = Scene::new(Some(&["notes/"]));
    scene.init();
    let changes = scene.during(|| {
        fs::remove_dir_all(scene.at(".git")).unwrap();
        fs::write(scene.at("new.rs"), "new").unwrap();
    });
    assert_eq!(changes.put_back, ["new.rs"]);
}

#[test]
fn what_git_ignored_is_not_lost_to_a_role_that_has_git_track_it() {
    let scene = Scene::new(Some(&[]));
    fs::write(scene.at(".gitignore"), ".env\n").unwrap();
    fs::write(scene.at(".env"), "mine").unwrap();
    scene.init();
    let changes = scene.during(|| {
        fs::write(scene.at(".gitignore"), "").unwrap();
        fs::write(scene.at(".env"), "changed").unwrap();
    });
    assert_eq!(changes.put_back, [".gitignore"]);
    assert!(scene.at(".env").exists());
}

#[test]
fn one_file_that_cannot_be_put_back_keeps_no_other_from_it_and_the_copies_stay() {
    let scene = Scene::new(Some(&[]));
    let run = scene.folder.path();
    let files = run.join("backup/before/files");
    let left = scene.after(|| {
        for file in ["plan.md", "src/main.rs"] {
            fs::write(scene.at(file), "changed").unwrap();
        }
        fs::rename(files.join("plan.md.before"), files.join("aside")).unwrap();
    });
    assert!(matches!(left, Err(AgentFault::NotPutBack { paths, .. }) if paths == "plan.md"));
    assert_eq!(scene.read("src/main.rs"), "src/main.rs");
    scene.copies.take();
    fs::rename(files.join("aside"), files.join("plan.md.before")).unwrap();
    let after = || put_back_after(&scene.watched, "left".to_owned(), run).unwrap();
    assert_eq!(after(), ["plan.md"]);
    assert_eq!(scene.read("plan.md"), "plan.md");
    assert!(after().is_empty());
    code_commit_changes::forget_copies(run).unwrap();
    fs::write(scene.at("plan.md"), "by a person").unwrap();
    assert!(after().is_empty() && !files.exists());
}
