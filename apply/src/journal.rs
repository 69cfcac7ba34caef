//! The record of a transaction, written before it touches the tree. After the commit it is the
//! manifest of the set.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write as _};

use code_commit_dir::Folder;
use code_commit_guard::Before;
use code_commit_model::Changed;
use serde::{Deserialize, Serialize};

use crate::report::{Applied, Warning};

/// The name of the transaction's folder in the state folder.
pub const TXN_FOLDER: &str = "txn";
/// The name of the record while it may not be on disk. Whole, it says as much as under the next name: a power cut may
/// have lost the rename, and kept changes of the tree.
pub(crate) const UNSYNCED: &str = "journal.tmp";
/// The name of the record while the tree may be half changed.
pub(crate) const JOURNAL: &str = "journal";
/// The name of the record once the new tree is in place. The rename from one to the other is the
/// commit, if no change of the tree is missing.
pub const MANIFEST: &str = "manifest.json";
/// The format of records that are written, and the only one that can be read.
const VERSION: u32 = 1;

/// Why a record is rejected.
#[derive(Debug)]
pub(crate) enum Unread {
    Io(io::Error),
    OtherVersion(u32),
}

/// The part that all formats have in common.
#[derive(Deserialize)]
struct Form {
    version: u32,
}

/// Called with the name of each step before the step.
pub(crate) type Steps<'a> = &'a mut dyn FnMut(&'static str);

/// Everything needed to restore the old tree, or to finish.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    version: u32,
    /// The root's device and inode. Its path is in the [location](crate::location).
    pub(crate) root_id: (u64, u64),
    /// The folders that had to be created, outermost first.
    pub(crate) created_folders: Vec<String>,
    /// The folders to remove after the commit if they are empty, innermost first.
    pub(crate) emptied_folders: Vec<String>,
    /// The folders that a command has removed, with their permission bits.
    #[serde(default)]
    pub(crate) removed_folders: Vec<(String, u32)>,
    /// The folders to make after the commit, outermost first, with their permission bits.
    #[serde(default)]
    pub(crate) restored_folders: Vec<(String, u32)>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) warnings: Vec<Warning>,
}

/// One file. Its staged content is `N.new`, its old inode `N.old`, where N is its index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) change: Changed,
    pub(crate) old: Option<Old>,
    /// Device and inode of the staged file.
    pub(crate) new_id: Option<(u64, u64)>,
}

/// The file that existed before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Old {
    pub(crate) id: (u64, u64),
    /// Device and inode of `N.old`: the same as `id`, unless the file system has no hard links.
    pub(crate) kept_id: (u64, u64),
    pub(crate) owner: (u32, u32),
    pub(crate) links: u64,
}

impl Journal {
    pub(crate) fn new(root_id: (u64, u64)) -> Self {
        Journal {
            version: VERSION,
            root_id,
            created_folders: Vec::new(),
            emptied_folders: Vec::new(),
            removed_folders: Vec::new(),
            restored_folders: Vec::new(),
            entries: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Writes the record to a new file in `folder`; the caller syncs it.
    pub(crate) fn write(&self, folder: &Folder, name: &str) -> io::Result<File> {
        let mut file = folder.create_file(name, 0o600)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        Ok(file)
    }

    /// Reads it; `None` if there is none.
    pub(crate) fn read(folder: &Folder, name: &str) -> Result<Option<Journal>, Unread> {
        if folder.stat(name)?.is_none() {
            return Ok(None);
        }
        let mut text = Vec::new();
        folder.open_file(name)?.read_to_end(&mut text)?;
        let Form { version } = serde_json::from_slice(&text)?;
        if version != VERSION {
            return Err(Unread::OtherVersion(version));
        }
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Reads one that nobody may have waited for. Where a part is missing, nothing has been changed, and it is `None`.
    pub(crate) fn read_unsynced(folder: &Folder) -> Result<Option<Journal>, Unread> {
        match Self::read(folder, UNSYNCED) {
            Err(Unread::Io(torn))
                if [ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&torn.kind()) =>
            {
                Ok(None)
            }
            read => read,
        }
    }

    pub(crate) fn applied(&self) -> Applied {
        let changes = self
            .entries
            .iter()
            .map(|entry| entry.change.clone())
            .collect();
        Applied {
            changes,
            warnings: self.warnings.clone(),
        }
    }
}

impl<E: Into<io::Error>> From<E> for Unread {
    fn from(error: E) -> Self {
        Unread::Io(error.into())
    }
}

impl Old {
    pub(crate) fn new(before: &Before, kept_id: (u64, u64)) -> Self {
        Old {
            id: before.id,
            kept_id,
            owner: before.owner,
            links: before.links,
        }
    }
}

pub(crate) fn staged_name(number: usize) -> String {
    format!("{number}.new")
}

/// The name of the old file of the entry with this number, in its set's folder.
pub fn kept_name(number: usize) -> String {
    format!("{number}.old")
}

/// The ending, instead of `old`, of an old inode that has other names in the tree.
pub(crate) const SHARED: &str = "shared";

pub(crate) fn hex(hash: [u8; 32]) -> String {
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default())
        .collect()
}
