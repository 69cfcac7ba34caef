//! Keeps what replaced a sealed file: the user may have written it during the build.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dir::Folder;
use logging::{Redactor, RunFolder, Stamp};

/// A folder in the run folder to move things into; made when first needed.
#[derive(Debug)]
pub(crate) struct Attic<'r> {
    run: &'r Path,
    folder: Option<PathBuf>,
}

impl<'r> Attic<'r> {
    pub(crate) fn of(run: &'r Path) -> Self {
        Self { run, folder: None }
    }

    /// Where it is, if it was needed.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Moves the file, symlink or folder `name` of `folder` to `path` in the attic. A folder stays if that is on
    /// another disk.
    pub(crate) fn take_in(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let place = self.made()?.join(path);
        fs::create_dir_all(place.parent().unwrap_or(&place))?;
        match folder.rename_to(name, &place) {
            // The run folder is on another disk, so copy.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy(folder, name, &place)?;
                folder.remove_file(name)
            }
            moved => moved,
        }
    }

    fn made(&mut self) -> io::Result<&Path> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => {
                let name = format!("left-{}", Stamp::now().folder_name());
                let made =
                    RunFolder::create(self.run, &name, Redactor::default()).map_err(io::Error::other)?;
                made.path().to_owned()
            }
        };
        Ok(self.folder.insert(folder))
    }
}

/// Larger files are not copied: a build may have made one of any size.
const MOST_COPIED: u64 = 64 << 20;

/// Copies a file or symlink completely, or not at all.
fn copy(folder: &Folder, name: &OsStr, place: &Path) -> io::Result<()> {
    if let Ok(target) = folder.read_link(name) {
        return symlink(OsStr::from_bytes(target.to_bytes()), place);
    }
    let mut file = folder.open_file(name)?;
    if file.metadata()?.len() > MOST_COPIED {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    dir::copy_open(&mut file, place)
}
