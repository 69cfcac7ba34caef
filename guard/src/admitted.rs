//! The capability to write one path, once, after the guard has judged it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use code_commit_dir::Folder;

use crate::fold::fold;

/// What a reply wants to do to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Create the file or replace its content.
    Write,
    /// Remove the file.
    Delete,
}

/// A path that the guard has admitted: a descriptor of the nearest existing folder, and the names
/// below it.
///
/// Only [`Guard::judge`](crate::Guard::judge) creates one. It cannot be copied, deserialized or
/// built from a string.
#[derive(Debug)]
pub struct Admitted {
    pub(crate) path: String,
    pub(crate) op: Op,
    pub(crate) root: (u64, u64),
    pub(crate) folder: Arc<Folder>,
    pub(crate) folder_names: usize,
    pub(crate) before: Option<Before>,
}

/// The regular file that existed at the path when it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Device and inode.
    pub id: (u64, u64),
    /// Mode bits, including the file type.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// The number of hard links.
    pub links: u64,
    /// Bytes.
    pub len: u64,
    /// Time of the last modification, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
}

impl Admitted {
    /// The path relative to the root, with `/`, exactly as the reply wrote it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The operation that was admitted.
    pub fn op(&self) -> Op {
        self.op
    }

    /// The file that existed at the path; `None` if there was none. Deleting a missing file is a
    /// no-op.
    pub fn before(&self) -> Option<&Before> {
        self.before.as_ref()
    }

    /// Whether the file runs code later or affects other people, so that the summary should mention
    /// it.
    pub fn is_flagged(&self) -> bool {
        code_commit_names::runs_later(&fold(&self.path)).is_some()
    }

    /// The nearest folder on the way that existed when the path was judged.
    pub fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// The path of [`Admitted::folder`], relative to the root; empty for the root itself.
    pub fn folder_path(&self) -> &str {
        let end = self
            .folder_names
            .checked_sub(1)
            .and_then(|last| self.slashes().nth(last));
        end.and_then(|end| self.path.get(..end)).unwrap_or_default()
    }

    /// The folders below [`Admitted::folder`] that have to be created, as paths relative to the
    /// root, outermost first.
    pub fn missing_folders(&self) -> impl Iterator<Item = &str> {
        self.slashes()
            .skip(self.folder_names)
            .filter_map(|slash| self.path.get(..slash))
    }

    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Device and inode of the root under which the path was judged.
    pub fn root_id(&self) -> (u64, u64) {
        self.root
    }

    fn slashes(&self) -> impl Iterator<Item = usize> {
        self.path.match_indices('/').map(|(slash, _)| slash)
    }
}

impl Before {
    /// Reads the metadata and then the content of an open file.
    pub fn of(file: &mut File) -> io::Result<Before> {
        let metadata = file.metadata()?;
        Ok(Before {
            id: (metadata.dev(), metadata.ino()),
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            links: metadata.nlink(),
            len: metadata.len(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            sha256: hash(file, metadata.len())?,
        })
    }
}

/// SHA-256 of the rest of `source`, which is probably `len` bytes long.
fn hash(source: &mut impl Read, len: u64) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    // One byte more than the file has, so that the last read but one detects the end.
    let room = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(1);
    let mut buffer = vec![0; room.min(64 * 1024)];
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            return Ok(hasher.finalize().into());
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}
