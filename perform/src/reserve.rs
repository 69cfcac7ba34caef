//! Reserves disk space for an answer before it is paid for.

use std::fs::File;
use std::io;
use std::path::Path;

use code_commit_logging::FolderError;
use rustix::fs::{FallocateFlags, fallocate, fstatfs, fstatvfs};
use rustix::io::Errno;

/// Disk space for the record of one answer: its text and the service's JSON around it. The longest answers
/// have 64 Ki tokens of about four bytes; this is twice what both files then take.
const ANSWER_BYTES: u64 = 2 << 20;
/// More than a line of the journal takes.
const LINE_BYTES: u64 = 16 << 10;

/// Keeps the disk from filling up while a model answers: an answer that cannot be stored has been paid for in
/// vain. The file has no name, so nothing of it remains however the run ends.
#[derive(Debug)]
pub(crate) struct Reserve {
    file: File,
    bytes: u64,
}

impl Reserve {
    /// Reserves the space on the disk of this folder.
    pub(crate) fn hold(folder: &Path) -> Result<Self, FolderError> {
        let held = tempfile::tempfile_in(folder).and_then(|file| fill(&file).map(|()| file));
        let held = held.map(|file| Self {
            file,
            bytes: ANSWER_BYTES,
        });
        let path = folder.to_owned();
        held.map_err(|source| FolderError::Io {
            doing: "reserve space for a reply in",
            path,
            source,
        })
    }

    /// Frees room for a line of the journal, which reports an attempt before its answer arrives.
    pub(crate) fn give_a_line(&mut self) {
        self.bytes = self.bytes.saturating_sub(LINE_BYTES);
        // If this fails, the line may still find room.
        let _ = self.file.set_len(self.bytes);
    }
}

/// If the file system cannot reserve blocks, write them. In memory, where reserved blocks are pages full of zeros, it is enough
/// that they are free.
fn fill(mut file: &File) -> io::Result<()> {
    // `TMPFS_MAGIC` of statfs(2).
    if fstatfs(file)?.f_type == 0x0102_1994 {
        let room = fstatvfs(file)?;
        if room.f_bavail.saturating_mul(room.f_frsize) >= ANSWER_BYTES {
            return Ok(());
        }
    }
    match fallocate(file, FallocateFlags::empty(), 0, ANSWER_BYTES) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            io::copy(&mut io::Read::take(io::repeat(0), ANSWER_BYTES), &mut file).map(drop)
        }
        filled => Ok(filled?),
    }
}
