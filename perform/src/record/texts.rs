//! The texts of a run, stored in its folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use code_commit_engine::{Digest, Stored, Text};
use code_commit_logging::{FolderError, RunFolder};
use code_commit_runner::Captured;
use serde_json::Value;

/// Bytes kept in memory from each end of a command's output, which may be larger than memory. A prompt has
/// room for less.
const HELD_BYTES: usize = 2 << 20;

/// The texts of a run: in files of its folder, named by their hashes in its journal.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(super) folder: RunFolder,
    pub(super) files: BTreeMap<String, String>,
}

impl Texts {
    pub(super) fn of(folder: RunFolder) -> Self {
        Self {
            folder,
            files: BTreeMap::new(),
        }
    }

    /// Reads a text back.
    pub(crate) fn fetch(&self, text: &mut Text) -> Result<(), FolderError> {
        let content = self.folder.recall(&text.stored)?;
        text.fill(content.into());
        Ok(())
    }

    /// Reads back what a command printed.
    pub(crate) fn fetch_output(&self, text: &mut Text) -> Result<(), FolderError> {
        let now = output_text(&self.folder, &text.stored.file)?;
        if now.stored != text.stored {
            return Err(FolderError::Changed {
                path: self.folder.path().join(&text.stored.file),
            });
        }
        *text = now;
        Ok(())
    }

    /// The content of a file that the journal names with this digest.
    pub(crate) fn recall(&self, digest: &Digest) -> Option<String> {
        self.folder.read(self.files.get(&digest.sha256)?).ok()
    }
}

/// Visits the files that a line names.
pub(super) fn visit_stored(line: &Value, visit: &mut impl FnMut(Stored)) {
    if let Ok(stored) = serde_json::from_value(line.clone()) {
        visit(stored);
    }
    let members = line
        .as_object()
        .into_iter()
        .flat_map(|members| members.values());
    let items = line.as_array().into_iter().flatten();
    let inner = members
        .chain(items)
        .filter(|value| value.is_object() || value.is_array());
    inner.for_each(|value| visit_stored(value, visit));
}

/// What a command printed into `file`: all of it, or both ends if it is too long for memory.
pub fn output_text(folder: &RunFolder, file: &str) -> Result<Text, FolderError> {
    let (stored, whole) = folder.adopt(file)?;
    let ends = both_ends(&whole, HELD_BYTES, HELD_BYTES);
    let ends = ends.map_err(|source| folder.error("read", file, source))?;
    Ok(Text::new(stored, ends.text().into()))
}

/// Read from the file, where keys are redacted: an end cut from the raw output could hold half a key.
pub(crate) fn both_ends(
    whole: &File,
    head_bytes: usize,
    tail_bytes: usize,
) -> io::Result<Captured> {
    let total_bytes = whole.metadata()?.len();
    let total = usize::try_from(total_bytes).map_err(io::Error::other)?;
    let mut head = vec![0; total.min(head_bytes)];
    whole.read_exact_at(&mut head, 0)?;
    let mut tail = vec![0; (total - head.len()).min(tail_bytes)];
    let start = (total - tail.len()) as u64;
    whole.read_exact_at(&mut tail, start)?;
    Ok(Captured {
        head,
        tail,
        total_bytes,
    })
}
