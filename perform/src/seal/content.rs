//! The content of the sealed files: in memory, or beyond a limit in an unnamed file on the tree's own disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// In memory, of all files together.
pub(super) const HELD_BYTES: u64 = 64 << 20;

/// The concatenated content of files.
#[derive(Debug, Default)]
pub(super) struct Contents {
    held: Vec<u8>,
    aside: Option<File>,
}

/// Where the content of one file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Held(Range<usize>),
    Stash(Range<u64>),
}

impl Contents {
    /// Stores a file of `len` bytes from the disk of `root`.
    pub(super) fn keep(&mut self, mut file: File, len: u64, root: &Path) -> io::Result<Place> {
        let start = self.held.len();
        if start as u64 + len <= HELD_BYTES {
            file.read_to_end(&mut self.held)?;
            return Ok(Place::Held(start..self.held.len()));
        }
        let mut aside = match &self.aside {
            Some(aside) => aside,
            None => self.aside.insert(tempfile::tempfile_in(root)?),
        };
        let start = aside.seek(SeekFrom::End(0))?;
        io::copy(&mut file, &mut aside)?;
        Ok(Place::Stash(start..aside.stream_position()?))
    }

    /// The stored content, from its beginning.
    pub(super) fn read(&self, place: &Place) -> io::Result<Box<dyn BufRead + '_>> {
        match place {
            Place::Held(range) => Ok(Box::new(self.held.get(range.clone()).unwrap_or_default())),
            Place::Stash(range) => {
                let mut aside = self.aside.as_ref().ok_or(io::ErrorKind::NotFound)?;
                aside.seek(SeekFrom::Start(range.start))?;
                Ok(Box::new(BufReader::new(
                    aside.take(range.end - range.start),
                )))
            }
        }
    }

    /// Whether `file` holds what was kept there.
    pub(super) fn are_in(&self, place: &Place, file: File) -> io::Result<bool> {
        are_equal(self.read(place)?, BufReader::new(file))
    }
}

/// Whether two files have the same content, without reading either into memory.
pub(crate) fn are_equal(mut one: impl BufRead, mut other: impl BufRead) -> io::Result<bool> {
    loop {
        let (a, b) = (one.fill_buf()?, other.fill_buf()?);
        let count = a.len().min(b.len());
        if count == 0 {
            return Ok(a.is_empty() && b.is_empty());
        }
        if a.get(..count) != b.get(..count) {
            return Ok(false);
        }
        one.consume(count);
        other.consume(count);
    }
}
