//! Room on the disk for an answer that is about to be paid for.

use std::fs::File;
use std::io;
use std::path::Path;

use logging::FolderError;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// What the record of one answer takes: its text and the service's JSON around it. The longest answers have 64 Ki tokens of some four
/// bytes; this is twice what such a one takes in both files.
const ANSWER_BYTES: u64 = 2 << 20;
/// More than a line of the journal takes.
const LINE_BYTES: u64 = 16 << 10;

/// Keeps the disk from being filled while a model answers: what cannot be written down then has been paid for in vain. A file without a
/// name, so that nothing of it is left however the run ends.
#[derive(Debug)]
pub(crate) struct Reserve {
    file: File,
    bytes: u64,
}

impl Reserve {
    /// Takes the room, on the disk of this folder.
    pub(crate) fn hold(folder: &Path) -> Result<Self, FolderError> {
        let held = tempfile::tempfile_in(folder).and_then(|file| fill(&file).map(|()| file));
        let held = held.map(|file| Self { file, bytes: ANSWER_BYTES });
        let path = folder.to_owned();
        held.map_err(|source| FolderError::Io { doing: "keep room for an answer in", path, source })
    }

    /// Makes room for a line of the journal, which tells of an attempt before its answer is there.
    pub(crate) fn give_a_line(&mut self) {
        self.bytes = self.bytes.saturating_sub(LINE_BYTES);
        // Where it stays, the line may still find room.
        let _ = self.file.set_len(self.bytes);
    }
}

/// Where the file system cannot promise blocks, it has to take them.
fn fill(mut file: &File) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, ANSWER_BYTES) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            io::copy(&mut io::Read::take(io::repeat(0), ANSWER_BYTES), &mut file).map(drop)
        }
        filled => Ok(filled?),
    }
}
