//! The capability: a path that was judged and may be written, once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use dir::Folder;

use crate::fold::fold;

/// What a reply wants to do to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Create the file or replace its content.
    Write,
    /// Remove the file.
    Delete,
}

/// A path that the guard has judged: the descriptor of the nearest existing folder and the names below it.
///
/// Only [`Guard::judge`](crate::Guard::judge) makes one; it cannot be copied, parsed or built from a string.
#[derive(Debug)]
pub struct Admitted {
    pub(crate) path: String,
    pub(crate) op: Op,
    pub(crate) root: (u64, u64),
    pub(crate) folder: Arc<Folder>,
    pub(crate) folder_names: usize,
    pub(crate) before: Option<Before>,
}

/// The regular file that stood there when the path was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Device and inode.
    pub id: (u64, u64),
    /// Mode bits with the file type.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// How many names the inode has.
    pub links: u64,
    /// Bytes.
    pub len: u64,
    /// Time of the last change of content, seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
}

impl Admitted {
    /// Relative to the root, with `/`, exactly as the reply wrote it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What may be done to it.
    pub fn op(&self) -> Op {
        self.op
    }

    /// What stood there; `None` if nothing did. Deleting nothing is a no-op.
    pub fn before(&self) -> Option<&Before> {
        self.before.as_ref()
    }

    /// Whether the file runs code or changes what others see, and so deserves a line in the summary.
    pub fn is_flagged(&self) -> bool {
        names::runs_later(&fold(&self.path)).is_some()
    }

    /// The nearest folder on the way that existed.
    pub fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// The path of [`Admitted::folder`], relative to the root; empty for the root itself.
    pub fn folder_path(&self) -> &str {
        let end = self.folder_names.checked_sub(1).and_then(|last| self.slashes().nth(last));
        end.and_then(|end| self.path.get(..end)).unwrap_or_default()
    }

    /// The folders below [`Admitted::folder`] that have to be made, as paths relative to the root, outermost first.
    pub fn missing_folders(&self) -> impl Iterator<Item = &str> {
        self.slashes().skip(self.folder_names).filter_map(|slash| self.path.get(..slash))
    }

    /// The last component.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Device and inode of the root that it was judged under.
    pub fn root_id(&self) -> (u64, u64) {
        self.root
    }

    fn slashes(&self) -> impl Iterator<Item = usize> {
        self.path.match_indices('/').map(|(slash, _)| slash)
    }
}

impl Before {
    /// Looks at a file that is open: its state, then its content.
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

/// SHA-256 of what is left to read, probably `len` bytes.
fn hash(source: &mut impl Read, len: u64) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    // One byte more than the file has: the first read that is not full is the last but one.
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
