//! The folders of a view of the tree.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use code_commit_dir::Folder;
use code_commit_runner::View;

use crate::attic::Attic;

/// Folder in the state folder: on the file system of the tree, since changes are moved.
const VIEW: &str = "view";
const UPPER: &str = "upper";

const WORK: &str = "work";
/// What came out of the tree while changes were brought in.
pub(super) const OUT: &str = "out";
/// As old as the layer.
pub(super) const SINCE: &str = "since";

/// The layers of one command after the other.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    pub(super) folder: PathBuf,
}

impl Layers {
    pub(super) fn below(state: &Path) -> Self {
        Self {
            folder: state.join(VIEW),
        }
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    /// An empty layer.
    pub(crate) fn renew(&self, run: &Path) -> io::Result<()> {
        self.clear(&mut self.attic(run))?;
        fs::create_dir_all(self.upper())?;
        fs::File::create_new(self.folder.join(SINCE)).map(drop)
    }

    /// The view for the next command, which sees what the commands before it changed in the same layer. Only the
    /// work folder is new: the kernel refuses that of a volatile mount, since a crash of the machine could have
    /// left the layer incomplete.
    pub(crate) fn view(&self) -> io::Result<View> {
        let view = View {
            upper: self.upper(),
            work: self.folder.join(WORK),
        };
        code_commit_dir::reach::remove(
            &Folder::open(&self.folder)?.as_fd().try_clone_to_owned()?,
            WORK.as_ref(),
        )?;
        fs::create_dir(&view.work)?;
        Ok(view)
    }

    /// Removes the layer. If a harness was stopped while it brought in changes, files of the tree may be in it: then
    /// it goes to the attic.
    pub(super) fn clear(&self, attic: &mut Attic<'_>) -> io::Result<()> {
        if self.folder.join(OUT).symlink_metadata().is_err() {
            return self.remove();
        }
        self.keep(attic)
    }

    /// Moves the layer to the attic.
    pub(super) fn keep(&self, attic: &mut Attic<'_>) -> io::Result<()> {
        attic.take_in(
            &Folder::open(self.state())?,
            self.name(),
            self.name().as_ref(),
        )
    }

    /// An attic for it.
    pub(super) fn attic<'s>(&'s self, run: &'s Path) -> Attic<'s> {
        Attic::of(run).or_in(self.state())
    }

    fn state(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        let Some(state) = self.folder.parent().filter(|state| state.is_dir()) else {
            return Ok(());
        };
        // The kernel and the command leave folders that even their owner may not enter.
        code_commit_dir::reach::remove(
            &Folder::open(state)?.as_fd().try_clone_to_owned()?,
            self.name(),
        )
    }

    fn name(&self) -> &OsStr {
        self.folder.file_name().unwrap_or_default()
    }
}
