//! Folders of runs that are being made or removed: in a folder beside their place that names its owner. They come
//! and go by one rename, and what a killed owner left there is removed by the next one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_runner::TemporaryFolder;

/// A place beside the runs; removed with what is in it when it is dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    around: TemporaryFolder,
    path: PathBuf,
}

impl Staging {
    /// A free place in `base`, which is created if it is missing.
    pub(crate) fn beside(base: &Path) -> io::Result<Self> {
        fs::create_dir_all(base)?;
        let around = code_commit_runner::temporary_folder(base)?;
        let path = around.path().join("run");
        Ok(Self { around, path })
    }

    pub(crate) fn take(run: &Path) -> io::Result<Self> {
        let aside = Self::beside(run.parent().unwrap_or(run))?;
        fs::rename(run, &aside.path)?;
        Ok(aside)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn put(&self, place: &Path) -> io::Result<()> {
        fs::rename(&self.path, place)
    }

    pub(crate) fn remove(self) -> io::Result<()> {
        self.around.close()
    }
}
