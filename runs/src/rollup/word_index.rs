//! The index of words in the state folder, which spares reading a large tree again.
//!
//! The first choice leaves a file without segments, the second one fills it, and a later one appends what is new once that
//! is more than one file of [`PART`]. A damaged one is made again, and so is one that mostly has contents that are gone. It
//! is written beside its place and renamed, so two at once at worst lose what one of them has added. Nothing depends on it
//! but the order of the files: what is shown is read from the tree.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;

use code_commit_prompt::rollup::LeftOut;
use code_commit_prompt::select::{Index, Segment, Words};
use tempfile::NamedTempFile;

/// Its name in the state folder.
const NAME: &str = "words";
/// The first bytes of the file. A later format has other ones.
const MAGIC: &[u8] = b"code-commit words 1\n";
/// A larger one is not made, and not read.
const MOST_BYTES: u64 = 256 << 20;
/// New contents are appended once there is one for this many files.
const PART: usize = 64;

/// What the index knows; nothing if there is none.
#[derive(Default)]
pub(super) struct WordIndex {
    pub(super) index: Index,
    /// Whether there is a file, if only a damaged one: this is not the first use of the tree.
    is_there: bool,
    /// The file, if something can be appended.
    file: Option<File>,
}

/// What is new in it, until it is kept.
pub(super) struct Addition {
    file: NamedTempFile,
    segment: Segment,
}

impl WordIndex {
    /// For a tree of this many files.
    pub(super) fn read(state: &Path, words: &Words, files: usize) -> Self {
        let Ok(Some(mut file)) = code_commit_dir::open_regular(&state.join(NAME)) else {
            return Self::default();
        };
        let index = read_segments(&mut file, words).filter(|index| index.blobs() <= 2 * files);
        Self {
            is_there: true,
            file: index.is_some().then_some(file),
            index: index.unwrap_or_default(),
        }
    }

    /// Begins to add `fresh` contents of a tree of `files` files; `None` if there are too few of them, or if there is no state
    /// folder: commands that only read do not create one.
    pub(super) fn addition(
        &mut self,
        state: &Path,
        fresh: usize,
        files: usize,
    ) -> Option<Addition> {
        if self.is_there && fresh * PART < files {
            return None;
        }
        let mut unique = tempfile::Builder::new();
        let beside = unique.prefix(".words-").suffix(".new");
        let mut file = beside.tempfile_in(state).ok()?;
        match &mut self.file {
            None => file.write_all(MAGIC).ok()?,
            Some(old) => {
                old.rewind().ok()?;
                io::copy(old, &mut file).ok()?;
            }
        }
        let segment = Segment::default();
        let addition = Addition { file, segment };
        if self.is_there {
            return Some(addition);
        }
        addition.keep(state);
        None
    }

    /// Deletes it.
    pub(super) fn remove(state: &Path) {
        // Where it cannot be removed, all files are read each time.
        let _ = code_commit_dir::remove(&state.join(NAME));
    }
}

impl Addition {
    /// Adds a content; gives up where there is no room.
    pub(super) fn and(mut self, blob: &[u8], text: Result<&str, LeftOut>) -> Option<Self> {
        self.segment.add(blob, text);
        if !self.segment.is_full() {
            return Some(self);
        }
        self.write_segment().ok().map(|()| self)
    }

    fn write_segment(&mut self) -> io::Result<()> {
        let segment = std::mem::take(&mut self.segment).finish();
        self.file.write_all(&segment.len().to_le_bytes())?;
        self.file.write_all(&checksum(&segment).to_le_bytes())?;
        self.file.write_all(&segment)
    }

    /// Puts it in its place. On failure, the old file stays there.
    pub(super) fn keep(mut self, state: &Path) {
        let written = self
            .write_segment()
            .and_then(|()| self.file.as_file().metadata());
        if written.is_ok_and(|file| file.len() <= MOST_BYTES) {
            let _ = self.file.persist(state.join(NAME));
        }
    }
}

/// Detects damage by a disk or a killed writer. It is no defence: whoever may write to the state folder can do worse.
fn checksum(segment: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(segment);
    hasher.finish()
}

/// `None` if one is damaged.
fn read_segments(file: &mut File, words: &Words) -> Option<Index> {
    let length = file.metadata().ok()?.len();
    let mut file = BufReader::new(file.take(MOST_BYTES));
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic).ok()?;
    let mut index = (magic == MAGIC && length <= MOST_BYTES).then(Index::default)?;
    let (mut number, mut segment) = ([0; 8], Vec::new());
    while !file.fill_buf().ok()?.is_empty() {
        file.read_exact(&mut number).ok()?;
        let length = u64::from_le_bytes(number);
        file.read_exact(&mut number).ok()?;
        segment.clear();
        file.by_ref().take(length).read_to_end(&mut segment).ok()?;
        if checksum(&segment) != u64::from_le_bytes(number) {
            return None;
        }
        index.add(&segment, words)?;
    }
    Some(index)
}
