//! A tree, the set that changes it, and how to distinguish the old state from the new.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::slice;

use code_commit_apply::{Applied, ApplyError, ChangeSet, Force, Lock, UndoError, Undone, seam};
use code_commit_guard::Op;

use crate::shared::{Files as Tree, admit, files};

/// Is told each step before it is taken.
type Steps<'s> = &'s mut dyn FnMut(&'static str);

/// A scratch folder, in memory if possible, since SIGKILL does not affect what is on disk.
/// `CRASH_IN` names another place, on the file system to be tried.
fn scratch() -> tempfile::TempDir {
    if let Some(place) = std::env::var_os("CRASH_IN") {
        return tempfile::tempdir_in(place).unwrap();
    }
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// A scratch folder with a work tree, a state folder and a run folder.
pub(crate) struct Scene {
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) undo: PathBuf,
    pub(crate) old: Tree,
    pub(crate) new: Tree,
}

const OLD: [(&str, &str, u32); 6] = [
    ("src/a.rs", "old a", 0o644),
    ("src/b.rs", "old b", 0o600),
    ("run.sh", "#!/bin/sh\n", 0o755),
    ("gone.txt", "to be deleted", 0o640),
    ("src/deep/gone.rs", "also", 0o644),
    ("kept.txt", "nobody touches this", 0o644),
];

const WRITES: [(&str, &str); 6] = [
    ("src/a.rs", "new a\r\n"),
    ("src/b.rs", ""),
    ("run.sh", "#!/bin/sh\nexit 0\n"),
    ("fresh.rs", "created"),
    ("x/y/z.rs", "created in folders that are not there"),
    ("x/w.rs", "and beside them"),
];

const DELETES: [&str; 3] = ["gone.txt", "src/deep/gone.rs", "never-was.txt"];

impl Scene {
    /// The paths of a scene made by `create`.
    pub(crate) fn at(scratch: &Path) -> Scene {
        let mut new = Tree::new();
        let old: Tree = OLD
            .iter()
            .map(|(path, content, mode)| {
                (
                    (*path).to_owned(),
                    (*mode, Some(content.as_bytes().to_vec())),
                )
            })
            .chain(["src", "src/deep"].map(|folder| (folder.to_owned(), (0o755, None))))
            .collect();
        new.extend(old.clone());
        for (path, content) in WRITES {
            let mode = old.get(path).map_or(0o644, |(mode, _)| *mode);
            new.insert(path.to_owned(), (mode, Some(content.as_bytes().to_vec())));
        }
        new.extend(["x", "x/y"].map(|folder| (folder.to_owned(), (0o755, None))));
        // The last file of its folder, which is removed with it.
        new.retain(|path, _| !DELETES.contains(&path.as_str()) && path != "src/deep");
        Scene {
            root: scratch.join("root"),
            state: scratch.join("state"),
            undo: scratch.join("run/undo"),
            old,
            new,
        }
    }

    /// Creates the old tree, in a scratch folder of its own.
    pub(crate) fn create() -> (tempfile::TempDir, Scene) {
        let scratch = scratch();
        let scene = Scene::at(scratch.path());
        for (path, (mode, content)) in &scene.old {
            let path = scene.root.join(path);
            match content {
                None => fs::create_dir_all(&path).unwrap(),
                Some(content) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, content).unwrap();
                }
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        (scratch, scene)
    }

    pub(crate) fn lock(&self) -> Lock {
        Lock::acquire(&self.state, "test").unwrap()
    }

    /// Judges the set on the current tree.
    pub(crate) fn set(&self) -> ChangeSet<'static> {
        let writes = WRITES.iter().map(|(path, _)| (*path, Op::Write));
        let deletes = DELETES.iter().map(|path| (*path, Op::Delete));
        let requests: Vec<(&str, Op)> = writes.chain(deletes).collect();
        let mut set = ChangeSet::new();
        for admitted in admit(&self.root, &requests) {
            match WRITES.iter().find(|(path, _)| *path == admitted.path()) {
                Some((_, content)) => set.write(admitted, content.as_bytes()),
                None => set.delete(admitted),
            }
        }
        set
    }

    /// Applies the set.
    pub(crate) fn apply(&self, steps: Steps<'_>) -> Result<Applied, ApplyError> {
        seam::apply(&self.lock(), &self.root, self.set(), &self.undo, steps)
    }

    /// Undoes it.
    pub(crate) fn undone(&self, steps: Steps<'_>) -> Result<Undone, UndoError> {
        let folders = slice::from_ref(&self.undo);
        seam::undo(&self.lock(), &self.root, folders, Force::No, steps)
    }

    /// The current tree on disk.
    pub(crate) fn now(&self) -> Tree {
        files(&self.root)
    }
}

/// Statistics over many interruptions.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) kills: usize,
    pub(crate) mixed_before_recovery: usize,
    pub(crate) old: usize,
    pub(crate) new: usize,
    /// If a call keeps failing, the emptied folder may stay: a failed clean-up is only a warning.
    pub(crate) empty_folder_may_stay: bool,
}

impl Tally {
    /// Recovers as the next start would, and checks that the tree is one of the two, with no leftovers.
    pub(crate) fn recover_and_check(&mut self, scene: &Scene, what: &str) {
        let before = scene.now();
        self.mixed_before_recovery += usize::from(before != scene.old && before != scene.new);
        let lock = scene.lock();
        let recovery = code_commit_apply::recover(&lock, &scene.root)
            .unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let mut now = scene.now();
        if self.empty_folder_may_stay && !now.contains_key("src/deep/gone.rs") {
            now.remove("src/deep");
        }
        let applied = code_commit_apply::read_applied(&scene.undo).unwrap();
        if now == scene.new {
            self.new += 1;
            assert_eq!(applied.unwrap().changes.len(), 9, "{what}: {recovery:?}");
        } else {
            assert_eq!(
                now, scene.old,
                "{what}: neither the old tree nor the new one, {recovery:?}"
            );
            self.old += 1;
            assert_eq!(applied, None, "{what}: {recovery:?}");
        }
        assert_eq!(
            code_commit_apply::recover(&lock, &scene.root).unwrap(),
            code_commit_apply::Recovery::Nothing,
            "{what}"
        );
        let left: Vec<_> = fs::read_dir(&scene.state)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["lock"], "{what}");
        drop(lock);
        // Every applied set can be undone.
        if now == scene.new {
            scene.undone(&mut |_| ()).unwrap();
            assert_eq!(scene.now(), scene.old, "{what}: undo");
        }
    }

    pub(crate) fn report(&self, campaign: &str) {
        eprintln!(
            "{campaign}: {} kills, mixed right after the kill {}, after recovery {} old, {} new, 0 mixed",
            self.kills, self.mixed_before_recovery, self.old, self.new
        );
    }
}
