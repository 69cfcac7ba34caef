//! Keeps what the harness takes out of a tree: the user may have written it while a command ran.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_logging::{Redactor, RunFolder, Stamp};
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;

/// A folder in the run folder to move things into; made when first needed.
#[derive(Debug)]
pub(crate) struct Attic<'r> {
    run: &'r Path,
    folder: Option<PathBuf>,
}

/// How the names of attics begin.
const PREFIX: &str = "left-";

/// Whether something was moved into this run folder, which must not be deleted then.
pub fn has_taken_in(run: &Path) -> bool {
    let mut entries = code_commit_dir::list(run).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

impl<'r> Attic<'r> {
    pub(crate) fn of(run: &'r Path) -> Self {
        Self { run, folder: None }
    }

    /// Where it is, if it was needed.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Makes the name `name` of `folder` free: what is there goes to the attic, below the same path. If that fails,
    /// it stays where it is.
    pub(crate) fn clear(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let Some(stat) = folder.stat(name)? else { return Ok(()) };
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

    /// Moves the file, symlink or folder `name` of `folder` to `path` in the attic, and never over anything. A folder
    /// stays if that is on another disk.
    pub(crate) fn take_in(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let attic = Folder::open(self.made()?)?;
        let mut top = attic.try_clone()?;
        // What was taken in before may be in the way: then below `2`, and so on.
        for number in 2.. {
            match put(folder, name, &top, path) {
                Err(taken) if is_taken(&taken) => top = made_in(&attic, number.to_string().as_ref())?,
                moved => return moved,
            }
        }
        Ok(())
    }

    fn made(&mut self) -> io::Result<&Path> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => {
                let name = format!("{PREFIX}{}", Stamp::now().folder_name());
                let made =
                    RunFolder::create(self.run, &name, Redactor::default()).map_err(io::Error::other)?;
                made.path().to_owned()
            }
        };
        Ok(self.folder.insert(folder))
    }
}

/// Whether another entry is in the way.
fn is_taken(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::EXIST | Errno::NOTDIR | Errno::LOOP))
}

fn made_in(folder: &Folder, name: &OsStr) -> io::Result<Folder> {
    match folder.make_folder(name, 0o777) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => folder.open_in(name),
    }
}

fn put(folder: &Folder, name: &OsStr, top: &Folder, path: &Path) -> io::Result<()> {
    let mut to = top.try_clone()?;
    for name in path.parent().into_iter().flat_map(Path::iter) {
        to = made_in(&to, inert(name))?;
    }
    let new_name = inert(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    match folder.rename_new(name, &to, new_name) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(folder, name, &to, new_name)?;
            folder.remove_file(name)
        }
        moved => {
            moved?;
            disarm(&to, new_name)
        }
    }
}

/// Git runs the programs that the configuration of a repository names, so nothing in an attic is one.
fn inert(name: &OsStr) -> &OsStr {
    if name == ".git" { "dot-git".as_ref() } else { name }
}

/// Renames what makes repositories of a folder and of those in it.
fn disarm(above: &Folder, name: &OsStr) -> io::Result<()> {
    let Some(stat) = above.stat(name)? else { return Ok(()) };
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(());
    }
    let mut todo = vec![(Arc::new(above.try_clone()?), name.to_owned())];
    while let Some((above, name)) = todo.pop() {
        let Ok(folder) = above.open_in(&name).map(Arc::new) else { continue };
        let entries = folder.entries()?;
        let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted.as_bytes());
        let is_repository = has("HEAD") && (has("objects") || has("commondir"));
        for (name, kind) in &entries {
            let name = OsStr::from_bytes(name);
            let new_name = if is_repository && name == "HEAD" { "dot-HEAD".as_ref() } else { inert(name) };
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
    let kind = folder.stat(name)?.map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Some(FileType::Symlink) => to.make_link(new_name, &folder.read_link(name)?),
        Some(FileType::RegularFile) => {
            code_commit_dir::copy_all(folder, name, to, new_name).inspect_err(|error| {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    let _ = to.remove_file(new_name);
                }
            })
        }
        Some(FileType::Directory) => Err(io::ErrorKind::CrossesDevices.into()),
        Some(_) | None => Ok(()),
    }
}
