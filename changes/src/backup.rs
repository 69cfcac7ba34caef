//! The backup of a run: what commands replaced or removed, and what the harness takes out of the tree, since a person may
//! have written it while a command ran.
//!
//! In the run folder, below `backup/`: a set of pre-images with its manifest for each reply and each command (`1/`,
//! `1-build/`, written by `apply`), what is needed while a command runs (`before/`), and what was taken out of the tree
//! (`left/`, `left-2/`, …).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_engine::Problem;
use code_commit_logging::name_as_text;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;

use crate::overlay::is_whiteout;
use crate::told::named;

/// The folder in the run folder.
pub const BACKUP: &str = "backup";
/// What was taken out of the tree.
const LEFT: &str = "left";

/// Takes things out of the tree, into a folder of their own, which is made when it is first needed.
#[derive(Debug)]
pub struct Backup<'r> {
    run: &'r Path,
    /// The name of its folder; with a number if there is one already.
    name: String,
    /// A folder on the disk of the tree, for what cannot be moved to the run folder.
    spare: Option<&'r Path>,
    /// Oldest first.
    folders: Vec<PathBuf>,
    taken: BTreeSet<String>,
}

/// Whether something was taken out of the tree into this run folder, which must not be deleted then.
pub fn has_taken_in(run: &Path) -> bool {
    let mut entries = code_commit_dir::list(run.join(BACKUP))
        .into_iter()
        .flatten()
        .flatten();
    entries.any(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(LEFT.as_bytes())
    })
}

impl<'r> Backup<'r> {
    /// That of the run in this folder.
    pub fn of(run: &'r Path) -> Self {
        Self {
            run,
            name: LEFT.to_owned(),
            spare: None,
            folders: Vec::new(),
            taken: BTreeSet::new(),
        }
    }

    /// What was taken out gets a folder of this name; one that is there already is used.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        let folder = self.run.join(BACKUP).join(&name);
        let folders = Some(folder).filter(|folder| folder.is_dir());
        Self {
            name,
            folders: folders.into_iter().collect(),
            ..self
        }
    }

    /// What cannot be moved to the run folder is moved to this one, on the disk of the tree. Without it a file or symlink
    /// is copied, and a folder stays where it is.
    #[must_use]
    pub fn or_in(self, spare: &'r Path) -> Self {
        Self {
            spare: Some(spare),
            ..self
        }
    }

    /// Where it is, if it was needed.
    pub fn folder(&self) -> Option<&Path> {
        self.folders.last().map(PathBuf::as_path)
    }

    /// For the user, who may have written what was taken in.
    pub fn warning(&self) -> Option<Problem> {
        let paths: Vec<String> = self.taken.iter().cloned().collect();
        let folders: Vec<String> = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let message = format!(
            "while the run was under way, its commands or somebody else wrote {}; the old content is in {}",
            named(&paths),
            named(&folders)
        );
        (!paths.is_empty()).then(|| Problem::new("left", message))
    }

    /// Takes in what is at a path of the tree, or what is on the way to it and no folder.
    pub fn take_from(&mut self, root: &Path, path: &Path) -> io::Result<()> {
        let Some((place, _)) = code_commit_dir::obstacle::find(root, path)? else {
            return Ok(());
        };
        let cleared = Folder::open(root)?
            .folder_of(&place)
            .and_then(|above| self.clear(&above, last(&place)?, &place));
        // Somebody was faster.
        cleared.or_else(|error| {
            if code_commit_dir::reach::is_gone(&error) {
                Ok(())
            } else {
                Err(error)
            }
        })
    }

    /// Makes the name `name` of `folder` free: what is there goes to the backup, below the same path. If that fails,
    /// it stays where it is.
    pub(crate) fn clear(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let Some(stat) = folder.stat(name)? else {
            return Ok(());
        };
        if is_whiteout(&stat) {
            return folder.remove_file(name);
        }
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            match folder.remove_folder(name) {
                Err(full) if full.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                removed => return removed,
            }
            // Otherwise its owner could not move it.
            let open = Mode::from_raw_mode(stat.st_mode) | code_commit_dir::reach::CHANGE;
            code_commit_dir::reach::set_mode(folder.as_fd(), name, open)?;
        }
        self.take_in(folder, name, path)
    }

    /// Moves the file, symlink or folder `name` of `folder` to `path` in the backup, and never over anything.
    pub(crate) fn take_in(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let base = Folder::open(&self.made()?)?;
        let mut top = base.try_clone()?;
        // What was taken in before may be in the way: then below `2`, and so on.
        for number in 2.. {
            match put(folder, name, &top, path) {
                Err(taken) if is_taken(&taken) => {
                    top = made_in(&base, number.to_string().as_ref())?;
                }
                Err(far) if far.kind() == io::ErrorKind::CrossesDevices => {
                    self.take_in_far(folder, name, &top, path)?;
                    break;
                }
                moved => {
                    moved?;
                    break;
                }
            }
        }
        self.taken.insert(name_as_text(path).into_owned());
        Ok(())
    }

    /// A copy would lose what somebody saves meanwhile, so it is made of what was moved away before.
    fn take_in_far(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        top: &Folder,
        path: &Path,
    ) -> io::Result<()> {
        let (to, new_name) = place(top, path)?;
        let Some(spare) = self.spare else {
            copy(folder, name, &to, new_name)?;
            return folder.remove_file(name);
        };
        let near = make(spare, LEFT)?;
        let staged = Folder::open(&near)?;
        put(folder, name, &staged, new_name.as_ref())?;
        // What cannot be copied, such as a folder, stays there.
        if copy(&staged, new_name, &to, new_name).is_ok() {
            staged.remove_file(new_name)?;
            return fs::remove_dir(near);
        }
        // The newest is where the next one goes.
        self.folders.insert(0, near);
        Ok(())
    }

    fn made(&mut self) -> io::Result<PathBuf> {
        if self.folders.is_empty() {
            let base = self.run.join(BACKUP);
            fs::create_dir_all(&base)?;
            self.folders.push(make(&base, &self.name)?);
        }
        Ok(self.folder().unwrap_or(self.run).to_owned())
    }
}

/// A new folder with this name, or with a number behind it.
fn make(base: &Path, name: &str) -> io::Result<PathBuf> {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        let folder = base.join(name);
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether another entry is in the way.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::EXIST | Errno::NOTDIR | Errno::LOOP)
    )
}

fn made_in(folder: &Folder, name: &OsStr) -> io::Result<Folder> {
    match folder.make_folder(name, 0o777) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => folder.open_in(name),
    }
}

fn put(folder: &Folder, name: &OsStr, top: &Folder, path: &Path) -> io::Result<()> {
    let (to, new_name) = place(top, path)?;
    folder.rename_new(name, &to, new_name)?;
    disarm(&to, new_name)
}

/// The file name of a path below the root.
pub(crate) fn last(path: &Path) -> io::Result<&OsStr> {
    Ok(path.file_name().ok_or(io::ErrorKind::InvalidInput)?)
}

/// The folder of a path in a backup, which is made, and the name there.
pub(crate) fn place<'p>(top: &Folder, path: &'p Path) -> io::Result<(Folder, &'p OsStr)> {
    let mut to = top.try_clone()?;
    for name in path.parent().into_iter().flat_map(Path::iter) {
        to = made_in(&to, inert(name))?;
    }
    Ok((to, inert(last(path)?)))
}

/// Git runs the programs that the configuration of a repository names, so nothing in a backup is one.
fn inert(name: &OsStr) -> &OsStr {
    if name == ".git" {
        "dot-git".as_ref()
    } else {
        name
    }
}

/// Renames what makes repositories of a folder and of those in it.
fn disarm(above: &Folder, name: &OsStr) -> io::Result<()> {
    let Some(stat) = above.stat(name)? else {
        return Ok(());
    };
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(());
    }
    let mut todo = vec![(Arc::new(above.try_clone()?), name.to_owned())];
    while let Some((above, name)) = todo.pop() {
        let Ok(folder) = above.open_in(&name).map(Arc::new) else {
            continue;
        };
        let entries = folder.entries()?;
        let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted.as_bytes());
        let is_repository = has("HEAD") && (has("objects") || has("commondir"));
        for (name, kind) in &entries {
            let name = OsStr::from_bytes(name);
            let new_name = if is_repository && name == "HEAD" {
                "dot-HEAD".as_ref()
            } else {
                inert(name)
            };
            if new_name != name {
                folder.rename_new(name, &folder, new_name)?;
            }
            if matches!(kind, FileType::Directory | FileType::Unknown) {
                todo.push((Arc::clone(&folder), new_name.to_owned()));
            }
        }
    }
    Ok(())
}

/// Copies a file or symlink to another disk, completely or not at all; nothing is lost with a FIFO or a socket.
fn copy(folder: &Folder, name: &OsStr, to: &Folder, new_name: &OsStr) -> io::Result<()> {
    let kind = folder
        .stat(name)?
        .map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Some(FileType::Symlink) => to.make_link(new_name, &folder.read_link(name)?),
        Some(FileType::RegularFile) => code_commit_dir::copy_all(folder, name, to, new_name)
            .inspect_err(|error| {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    let _ = to.remove_file(new_name);
                }
            }),
        Some(FileType::Directory) => Err(io::ErrorKind::CrossesDevices.into()),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    fn write(path: &Path, text: &str) {
        fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    #[test]
    fn whatever_is_in_the_way_is_moved_and_nothing_that_was_moved_is_replaced() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["tree", "run", "state"]
            .iter()
            .for_each(|name| fs::create_dir(at(name)).unwrap());
        let tree = at("tree");
        let odd = Path::new(OsStr::from_bytes(b"odd\xff"));
        write(&tree.join(odd), "theirs");
        write(&at("tree/file"), "first");
        mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink("/nowhere", tree.join("link")).unwrap();
        let (run, state) = (at("run"), at("state"));
        let mut attic = Backup::of(&run).or_in(&state);
        for path in [
            odd,
            Path::new("file"),
            Path::new("fifo/below"),
            Path::new("link"),
            Path::new("gone"),
        ] {
            attic.take_from(&tree, path).unwrap();
        }
        fs::create_dir_all(tree.join("nested/.git")).unwrap();
        attic.take_from(&tree, Path::new("nested")).unwrap();
        let folder = attic.folder().unwrap().to_owned();
        assert!(folder.join("nested/dot-git").exists());
        write(&at("tree/file"), "second");
        attic.take_from(&tree, Path::new("file")).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 0);
        let read = |path: &Path| fs::read_to_string(folder.join(path)).unwrap();
        assert_eq!(
            (read(odd), read(Path::new("file"))),
            ("theirs".to_owned(), "first".to_owned())
        );
        assert_eq!(read(Path::new("2/file")), "second");
        assert_eq!(
            attic.taken.into_iter().collect::<Vec<_>>(),
            ["fifo", "file", "link", "nested", "odd\\xff"]
        );
    }

    /// Copying would lose what somebody saves meanwhile.
    #[test]
    fn what_cannot_be_moved_to_the_run_is_moved_on_the_disk_of_the_tree_and_copied_if_it_is_a_file()
    {
        let (near, far) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir_in("/dev/shm").unwrap(),
        );
        let (tree, state) = (near.path().join("tree"), near.path().join("state"));
        fs::create_dir_all(tree.join("folder")).unwrap();
        fs::create_dir(&state).unwrap();
        write(&tree.join("folder/file"), "an hour of work");
        let inode = fs::metadata(tree.join("folder/file")).unwrap().ino();
        let mut attic = Backup::of(far.path()).or_in(&state);
        attic.take_from(&tree, Path::new("folder")).unwrap();
        let kept = attic.folders[0].join("folder/file");
        assert!(kept.starts_with(&state));
        assert_eq!(fs::metadata(kept).unwrap().ino(), inode);
        write(&tree.join("large"), "fills the disk of the tree");
        attic.take_from(&tree, Path::new("large")).unwrap();
        assert!(
            attic
                .folder()
                .unwrap()
                .join("large")
                .starts_with(far.path())
        );
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    }
}
