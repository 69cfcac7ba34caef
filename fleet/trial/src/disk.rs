//! A small disk of a test's own.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Program, until};

/// A disk in the place of a folder, seen by the programs that are started [in](Disk::inside) its mount namespace alone. It ends
/// when this is dropped and the last of them has ended.
#[derive(Debug)]
pub(crate) struct Disk {
    holder: Program,
    folder: PathBuf,
}

impl Disk {
    /// A new one; `None`, said aloud, where nobody may mount one.
    pub(crate) fn at(folder: &Path, megabytes: u32) -> anyhow::Result<Option<Self>> {
        let script =
            format!(r#"mount -t tmpfs -o size={megabytes}m none "$0" && exec sleep infinity"#);
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", &script]).arg(folder);
        let holder = Program::start(unshare, Path::new("/dev/null"))?;
        let mut disk = Self {
            holder,
            folder: folder.to_owned(),
        };
        let outside = fs::metadata(folder)?.dev();
        until("a disk", || {
            let ready = fs::metadata(disk.path()).is_ok_and(|there| there.dev() != outside);
            (ready || disk.holder.has_ended()).then_some(())
        })?;
        if disk.holder.has_ended() {
            eprintln!("SKIPPED: PostgreSQL's full disk, because only root may mount one");
            return Ok(None);
        }
        Ok(Some(disk))
    }

    /// Its content, as this process sees it.
    pub(crate) fn path(&self) -> PathBuf {
        let inside = self.folder.strip_prefix("/").unwrap_or(&self.folder);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    /// Starts the program that is appended to it where the disk is.
    pub(crate) fn inside(&self) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter
            .arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id()))
            .arg("--");
        nsenter
    }

    /// Leaves no room on it.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let full = io::copy(&mut io::repeat(0), &mut File::create(self.ballast())?);
        anyhow::ensure!(
            full.as_ref()
                .is_err_and(|why| why.kind() == ErrorKind::StorageFull),
            "{full:?}"
        );
        Ok(())
    }

    /// Takes back what [`Self::fill`] did.
    pub(crate) fn free(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}
