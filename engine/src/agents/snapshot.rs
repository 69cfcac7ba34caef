//! What a folder holds before and after a turn, and putting back what may not have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use repo::WorkTree;

use crate::agents::shop::Watched;

/// Enough to tell that a file was touched: any write changes the time of its inode.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Stamp {
    fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// The files of a folder, by their paths relative to it. Links count as files and are not followed.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, Stamp>,
}

impl Tree {
    pub(super) fn of(root: &Path, skip: &[String]) -> io::Result<Self> {
        let mut tree = Self::default();
        if root.is_dir() {
            tree.walk(root, "", skip)?;
        }
        Ok(tree)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn walk(&mut self, folder: &Path, prefix: &str, skip: &[String]) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let data = match entry.path().symlink_metadata() {
                Ok(data) => data,
                // Gone since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if skip.iter().any(|skipped| *skipped == name || *skipped == path) {
                continue;
            }
            if data.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"), skip)?;
            } else {
                let changed = (data.ctime(), data.ctime_nsec());
                let stamp = Stamp { inode: data.ino(), bytes: data.len(), mode: data.mode(), changed };
                self.files.insert(path, stamp);
            }
        }
        Ok(())
    }
}

/// A folder as it was, with copies of what may have to be put back.
#[derive(Debug)]
pub(super) struct Before<'w> {
    watched: &'w Watched,
    tree: Tree,
    known: Option<BTreeSet<String>>,
    kept: PathBuf,
    taken: PathBuf,
}

/// What a turn changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) allowed: Vec<String>,
    pub(super) put_back: Vec<String>,
}

impl<'w> Before<'w> {
    /// Copies go to `kept`, which is removed by [`compare`](Self::compare); what is put back is first moved to `taken`.
    pub(super) fn take(watched: &'w Watched, kept: &Path, taken: &Path) -> io::Result<Self> {
        let tree = Tree::of(&watched.root, &watched.skip)?;
        let known = watched.may_touch.as_ref().and_then(|_| known_to_git(&watched.root));
        let before = Self { watched, tree, known, kept: kept.to_owned(), taken: taken.to_owned() };
        for (path, stamp) in before.tree.files.iter().filter(|(path, _)| !before.may_touch(path)) {
            if before.is_known(path) || stamp.is_link() {
                copy(&watched.root.join(path), &before.kept.join(path))?;
            }
        }
        Ok(before)
    }

    fn is_known(&self, path: &str) -> bool {
        self.known.as_ref().is_none_or(|known| known.contains(path))
    }

    /// The last entry that fits decides.
    fn may_touch(&self, path: &str) -> bool {
        let Some(allowed) = &self.watched.may_touch else { return true };
        let fits =
            |entry: &str| entry == "/" || entry == path || (entry.ends_with('/') && path.starts_with(entry));
        let last = allowed.iter().rev().find(|entry| fits(entry.strip_prefix('!').unwrap_or(entry)));
        last.is_some_and(|entry| !entry.starts_with('!'))
    }

    /// Looks what is different now, and puts back what the role may not touch.
    pub(super) fn compare(self) -> io::Result<Changes> {
        let after = Tree::of(&self.watched.root, &self.watched.skip)?;
        let known_now = self.known.as_ref().and_then(|_| known_to_git(&self.watched.root));
        let counts =
            |path: &str| self.is_known(path) || known_now.as_ref().is_some_and(|now| now.contains(path));
        let gone = self.tree.files.keys().filter(|path| !after.files.contains_key(*path));
        let different = after.files.iter().filter(|(path, stamp)| self.tree.files.get(*path) != Some(stamp));
        let mut paths: Vec<&String> = gone.chain(different.map(|(path, _)| path)).collect();
        paths.retain(|path| counts(path));
        paths.sort_unstable();
        let mut changes = Changes::default();
        for path in paths {
            if self.may_touch(path) {
                changes.allowed.push(path.clone());
            } else {
                self.put_back(path)?;
                changes.put_back.push(path.clone());
            }
        }
        match fs::remove_dir_all(&self.kept) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(changes),
        }
    }

    fn put_back(&self, path: &str) -> io::Result<()> {
        let place = self.watched.root.join(path);
        match fs::symlink_metadata(&place) {
            Ok(data) if data.is_dir() => fs::remove_dir_all(&place)?,
            Ok(_) => {
                // It may be the work of a person who was at it at the same time.
                copy(&place, &self.taken.join(path))?;
                fs::remove_file(&place)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A folder on the way is a file now; that file is put right by itself.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error),
        }
        if self.tree.files.contains_key(path) { copy(&self.kept.join(path), &place) } else { Ok(()) }
    }
}

/// Does `work` and puts back what it may not touch; gives the paths that were put back. What they were put back from is then
/// in `taken` below `scratch`.
pub fn watch_over<T>(
    watched: &Watched,
    scratch: &Path,
    work: impl FnOnce() -> T,
) -> io::Result<(T, Vec<String>)> {
    let before = Before::take(watched, &scratch.join("before"), &scratch.join("taken"))?;
    let result = work();
    Ok((result, before.compare()?.put_back))
}

/// What git tracks, and what it would track: neither committed nor ignored. `None` where there is no repository.
fn known_to_git(root: &Path) -> Option<BTreeSet<String>> {
    let tree = WorkTree::at(root).ok()?;
    let tracked = tree.tracked().ok()?.into_iter().map(|file| file.path);
    Some(tracked.chain(tree.dirty().ok()?).collect())
}

/// A file with its mode, or a link. Other kinds are not kept.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(from)?;
    if let Some(folder) = to.parent() {
        make_folder(folder)?;
    }
    if data.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !data.is_file() {
        return Ok(());
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(data.mode()))
}

/// What stands in the way of a folder that was there is removed: a file or a link that the role put in its place.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(data) if data.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(folder)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
        Err(error) => return Err(error),
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    fs::create_dir(folder)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its files")]
mod tests {
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
            Self {
                folder,
                watched: Watched { root, skip: vec![".git".into()], may_touch, shown: Vec::new() },
            }
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
        let watched =
            Watched { root, skip: vec![".git".into()], may_touch: Some(Vec::new()), shown: Vec::new() };
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
        assert_eq!(changes, Changes { allowed: vec!["plan.md".into()], put_back: Vec::new() });
    }
}
