//! The seal: what decides whether the work is done must not be changed by the work.
//!
//! The build script, the configuration and the protected files are looked at before and after each build. What a build changed is put back,
//! and the build is run once more; its exit code counts, unless it breaks the seal again. Everything is looked up from the root's descriptor
//! and through no link, since a build may leave a link where a folder was.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use guard::Folder;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::executor::Fault;

/// The sealed files as they were before a build.
#[derive(Debug)]
pub(crate) struct Seal {
    root: Folder,
    files: Vec<Sealed>,
    /// The modes of the folders that lead to them.
    folders: BTreeMap<PathBuf, u32>,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    state: State,
    /// When it was last changed: what was made from it is no younger once it is put back.
    modified: Option<SystemTime>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing is there, or no folder leads to it.
    Absent,
    /// A regular file.
    File { content: Vec<u8>, mode: u32 },
    /// A symbolic link, and where it leads.
    Link(CString),
    /// Anything else, by its kind and mode: it can be told from another, not made anew.
    Other(u32),
}

impl State {
    fn may_be_file(&self, its_mode: u32, len: u64) -> bool {
        matches!(self, Self::File { content, mode } if *mode == its_mode && content.len() as u64 == len)
    }
}

/// What was not as it was.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// It is again.
    pub(crate) changed: Vec<String>,
    /// It could not be put back.
    pub(crate) lost: Vec<String>,
}

impl Seal {
    /// Remembers these files; paths are relative to the root.
    pub(crate) fn take(root: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        let mut seal = Self { root: Folder::open(root)?, files: Vec::new(), folders: BTreeMap::new() };
        for path in paths {
            seal.note_folders(path)?;
            let (state, modified) = look(&seal.root, path, None)?;
            seal.files.push(Sealed { path: path.clone(), state, modified });
        }
        Ok(seal)
    }

    /// The files that are not as they were.
    pub(crate) fn differing(&self) -> impl Iterator<Item = &Path> {
        let differs = |file: &&Sealed| !self.is_as_it_was(file).unwrap_or(false);
        self.files.iter().filter(differs).map(|file| file.path.as_path())
    }

    /// Puts back what was changed, folders on the way too, and names it; nothing where all is as it was.
    ///
    /// Fails where something is not as it was even then: nothing may be built in such a tree.
    pub(crate) fn restore(&self) -> Result<Vec<String>, Fault> {
        let Restored { changed, lost } = self.put_all_back();
        if lost.is_empty() { Ok(changed) } else { Err(Fault::Seal { paths: lost.join(", ") }) }
    }

    /// The same for what may also stay as it is. What cannot be looked at is not touched.
    pub(crate) fn put_all_back(&self) -> Restored {
        let mut restored = Restored::default();
        for file in &self.files {
            let is_back = match self.is_as_it_was(file) {
                Ok(true) => continue,
                Ok(false) => self.put_back(file).and_then(|()| self.is_as_it_was(file)).unwrap_or(false),
                Err(_) => false,
            };
            let names = if is_back { &mut restored.changed } else { &mut restored.lost };
            names.push(file.path.display().to_string());
        }
        restored
    }

    fn is_as_it_was(&self, file: &Sealed) -> io::Result<bool> {
        Ok(look(&self.root, &file.path, Some(&file.state))?.0 == file.state)
    }

    fn note_folders(&mut self, path: &Path) -> io::Result<()> {
        let above = path.ancestors().skip(1).filter(|above| *above != Path::new(""));
        for folder in above.collect::<Vec<_>>().into_iter().rev() {
            if self.folders.contains_key(folder) {
                continue;
            }
            let Ok((parent, name)) = parent(&self.root, folder) else { break };
            let Some(stat) = parent.as_ref().unwrap_or(&self.root).stat(name)? else { break };
            self.folders.insert(folder.to_owned(), stat.st_mode & 0o7777);
        }
        Ok(())
    }

    fn put_back(&self, sealed: &Sealed) -> io::Result<()> {
        let folder = self.make_folders(&sealed.path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        let name = sealed.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        clear(folder, name)?;
        match &sealed.state {
            State::File { content, mode } => write(folder, name, content, *mode, sealed.modified),
            State::Link(target) => Ok(rustix::fs::symlinkat(target, folder, name)?),
            State::Absent | State::Other(_) => Ok(()),
        }
    }

    /// The folder that holds `path`. One that is gone on the way is made anew; so is one whose place a file or a link has taken, since
    /// what is written below must not come out elsewhere.
    fn make_folders(&self, path: &Path) -> io::Result<Option<Folder>> {
        let (mut folder, mut so_far): (Option<Folder>, _) = (None, PathBuf::new());
        for name in path.parent().into_iter().flat_map(Path::iter) {
            so_far.push(name);
            let above = folder.as_ref().unwrap_or(&self.root);
            if !above.stat(name)?.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()) {
                clear(above, name)?;
                rustix::fs::mkdirat(above, name, Mode::RWXU)?;
                let mode = self.folders.get(&so_far).copied().unwrap_or(0o755) | 0o700;
                rustix::fs::fchmod(above.open_in(name)?, Mode::from_raw_mode(mode))?;
            }
            folder = Some(above.open_in(name)?);
        }
        Ok(folder)
    }
}

/// The folder that holds `path`, reached through no link, and the last name.
fn parent<'p>(root: &Folder, path: &'p Path) -> io::Result<(Option<Folder>, &'p OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut folder: Option<Folder> = None;
    for component in path.parent().into_iter().flat_map(Path::iter) {
        folder = Some(folder.as_ref().unwrap_or(root).open_in(component)?);
    }
    Ok((folder, name))
}

/// What stands at `path` now, and when it was last changed, where it is a file. A file is read only where it can be the one that was there
/// before: a build may have left one of any size.
fn look(root: &Folder, path: &Path, before: Option<&State>) -> io::Result<(State, Option<SystemTime>)> {
    let (folder, name) = match parent(root, path) {
        Ok(found) => found,
        Err(error) => return no_way(error).map(|state| (state, None)),
    };
    let folder = folder.as_ref().unwrap_or(root);
    let Some(stat) = folder.stat(name)? else { return Ok((State::Absent, None)) };
    let other = Ok((State::Other(stat.st_mode), None));
    let (kind, mode) = (FileType::from_raw_mode(stat.st_mode), stat.st_mode & 0o7777);
    let len = u64::try_from(stat.st_size).unwrap_or(0);
    if kind.is_symlink() {
        return rustix::fs::readlinkat(folder, name, Vec::new())
            .map_or(other, |to| Ok((State::Link(to), None)));
    }
    if !kind.is_file() || before.is_some_and(|before| !before.may_be_file(mode, len)) {
        return other;
    }
    let mut content = Vec::new();
    let read = folder.open_file(name).and_then(|file| file.take(len + 1).read_to_end(&mut content));
    read.map_or(other, |_| Ok((State::File { content, mode }, modified(&stat))))
}

/// None for a time before 1970, which no build has made.
fn modified(stat: &Stat) -> Option<SystemTime> {
    let (seconds, nanos) = (stat.st_mtime.try_into().ok()?, stat.st_mtime_nsec.try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

/// A folder on the way is not there, or no folder any more; or it is another mount or closed to us, so that nothing behind it can be told.
fn no_way(error: io::Error) -> io::Result<State> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(State::Absent),
        Some(Errno::XDEV | Errno::ACCESS) => Ok(State::Other(0)),
        _ => Err(error),
    }
}

/// Removes what is there. A folder is removed only where it is empty: a build may have moved into it what is not its own.
fn clear(folder: &Folder, name: &OsStr) -> io::Result<()> {
    let Some(stat) = folder.stat(name)? else { return Ok(()) };
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(folder, name, flags)?)
}

fn write(
    folder: &Folder,
    name: &OsStr,
    content: &[u8],
    mode: u32,
    modified: Option<SystemTime>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file =
        std::fs::File::from(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode & 0o777))?);
    file.write_all(content)?;
    if let Some(modified) = modified {
        file.set_modified(modified)?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests;
