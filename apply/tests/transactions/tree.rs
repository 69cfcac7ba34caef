//! A scratch tree with a lock, for all tests here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use code_commit_apply::{
    Applied, ApplyError, ChangeSet, Force, Lock, RecoverError, Recovery, RolledBack, UndoError,
    Undone, seam,
};
use code_commit_guard::{Admitted, Op};

pub(crate) use crate::shared::{Files, admit, files};

pub(crate) struct Tree {
    pub(crate) scratch: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) lock: Lock,
    sets: usize,
}

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Tree {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        fs::create_dir(&root).unwrap();
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let lock = Lock::acquire(&scratch.path().join("state"), "test").unwrap();
        Tree {
            scratch,
            root,
            lock,
            sets: 0,
        }
    }

    /// Judges these paths as one reply; all must be admitted.
    pub(crate) fn admit(&self, requests: &[(&str, Op)]) -> Vec<Admitted> {
        admit(&self.root, requests)
    }

    /// A set of writes (`Some`) and deletions (`None`).
    pub(crate) fn set(&self, changes: &[(&str, Option<&[u8]>)]) -> ChangeSet<'static> {
        let op = |content: Option<&[u8]>| {
            if content.is_some() {
                Op::Write
            } else {
                Op::Delete
            }
        };
        let requests: Vec<_> = changes
            .iter()
            .map(|(path, content)| (*path, op(*content)))
            .collect();
        let mut set = ChangeSet::new();
        for (admitted, (_, content)) in self.admit(&requests).into_iter().zip(changes) {
            match content {
                Some(content) => set.write(admitted, content.to_vec()),
                None => set.delete(admitted),
            }
        }
        set
    }

    pub(crate) fn apply(
        &mut self,
        changes: &[(&str, Option<&[u8]>)],
    ) -> Result<Applied, ApplyError> {
        let set = self.set(changes);
        self.apply_set(set)
    }

    pub(crate) fn apply_set(&mut self, set: ChangeSet<'_>) -> Result<Applied, ApplyError> {
        self.sets += 1;
        code_commit_apply::apply(&self.lock, &self.root, set, &self.undo(self.sets))
    }

    /// The folder of pre-images of the set with this number, from 1.
    pub(crate) fn undo(&self, number: usize) -> PathBuf {
        self.scratch.path().join(format!("run/undo/{number}"))
    }

    /// Undoes every set.
    pub(crate) fn undone(&self, force: Force) -> Result<Undone, UndoError> {
        code_commit_apply::undo(&self.lock, &self.root, &self.undos(), force)
    }

    /// Recovers as the next start would.
    pub(crate) fn recover(&self) -> Result<Recovery, RecoverError> {
        code_commit_apply::recover(&self.lock, &self.root)
    }

    /// Likewise; the transaction must be rolled back.
    #[track_caller]
    pub(crate) fn roll_back(&self) -> RolledBack {
        let recovery = self.recover().unwrap();
        let Recovery::RolledBack(rolled_back) = recovery else {
            panic!("{recovery:?}")
        };
        rolled_back
    }

    /// Applies the set as the first one, with these steps.
    pub(crate) fn apply_with(
        &self,
        set: ChangeSet<'_>,
        steps: &mut dyn FnMut(&'static str),
    ) -> Result<Applied, ApplyError> {
        seam::apply(&self.lock, &self.root, set, &self.undo(1), steps)
    }

    /// The folders of pre-images of all sets, oldest first.
    pub(crate) fn undos(&self) -> Vec<PathBuf> {
        (1..=self.sets).map(|number| self.undo(number)).collect()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        fs::write(self.root.join(path), content).unwrap();
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.root.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn files(&self) -> Files {
        files(&self.root)
    }

    /// The names left in the state folder.
    pub(crate) fn state(&self) -> Vec<String> {
        let entries = fs::read_dir(self.scratch.path().join("state")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
