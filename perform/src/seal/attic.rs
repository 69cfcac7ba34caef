//! What stood in the place of a sealed file: a person may have written it while the build ran.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dir::Folder;
use logging::{Redactor, RunFolder, Stamp};

/// A folder of the run that things are moved into; made when the first one comes.
#[derive(Debug)]
pub(crate) struct Attic<'r> {
    run: &'r Path,
    folder: Option<PathBuf>,
}

impl<'r> Attic<'r> {
    /// In this run folder.
    pub(crate) fn of(run: &'r Path) -> Self {
        Self { run, folder: None }
    }

    /// Where it is, if anything came in.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Moves the file or link `name` of `folder` to `path` in here.
    pub(crate) fn take_in(&mut self, folder: &Folder, name: &OsStr, path: &Path) -> io::Result<()> {
        let place = self.made()?.join(path);
        fs::create_dir_all(place.parent().unwrap_or(&place))?;
        match folder.rename_to(name, &place) {
            // The run folder is on another disk.
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

/// So many bytes of a file are copied: a build may have made it any size.
const MOST_COPIED: u64 = 64 << 20;

/// A copy of a file or a link, whole or not at all.
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
