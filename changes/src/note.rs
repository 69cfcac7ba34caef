//! What is on disk while a command runs, and until its answer is recorded, so that its changes can be found if
//! the harness is killed: the snapshot of the tree before it, and the name of the set that adopts its changes.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use code_commit_dir::Links;

use crate::change::Seen;
use crate::snapshot::Snapshot;

const NOTE: &str = "tree";
const ADOPTED: &str = "adopted";
/// A power cut may have left a part of a note, which would make every other file look new.
const END: &str = "end";
/// The name of a set is short.
const MOST_BYTES: u64 = 1 << 10;

/// What a killed harness left.
pub(crate) struct Noted {
    /// The paths to skip, and the tree before the command, if it worked in the tree.
    pub(crate) snapshot: Option<(Vec<PathBuf>, Snapshot)>,
    /// The name of the set, if its changes had begun to be adopted.
    pub(crate) adopted: Option<String>,
}

/// What a note holds: the paths to skip, the tree, and [`END`].
type Note<'n> = (Vec<&'n [u8]>, Vec<(&'n [u8], Seen)>, &'n str);

/// `own` are the paths to skip.
pub(crate) fn write(folder: &Path, own: &[PathBuf], snapshot: &Snapshot) -> io::Result<()> {
    let own = own.iter().map(|path| path.as_os_str().as_bytes()).collect();
    let all = snapshot.iter();
    let rows = all.map(|(path, seen)| (path.as_os_str().as_bytes(), *seen));
    let note: Note<'_> = (own, rows.collect(), END);
    let bytes = postcard::to_stdvec(&note).map_err(io::Error::other)?;
    code_commit_dir::replace_with(&folder.join(NOTE), |file| file.write_all(&bytes))
}

fn parse(bytes: &[u8]) -> Option<(Vec<PathBuf>, Snapshot)> {
    let (own, rows, end): Note<'_> = postcard::from_bytes(bytes).ok()?;
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let rows = rows.into_iter().map(|(name, seen)| (path(name), seen));
    let snapshot = Snapshot::new(rows.collect());
    (end == END).then(|| (own.into_iter().map(path).collect(), snapshot))
}

/// The changes are about to be adopted in this set of pre-images. Without a snapshot the note is all that tells of
/// them; with one, it only has to be on disk when the answer is, which is synced with everything else.
pub(crate) fn adopting(folder: &Path, set: &Path) -> io::Result<()> {
    let (note, name) = (folder.join(ADOPTED), set.file_name().unwrap_or_default());
    if is_there(folder) {
        return code_commit_dir::replace_with(&note, |file| file.write_all(name.as_bytes()));
    }
    code_commit_dir::replace(&note, name.as_bytes())
}

/// Whether there is a snapshot, readable or not.
pub(crate) fn is_there(folder: &Path) -> bool {
    folder.join(NOTE).symlink_metadata().is_ok()
}

/// `None` if no command was running, and the answer of the last one is recorded.
pub(crate) fn read(folder: &Path) -> io::Result<Option<Noted>> {
    let there = |read: io::Result<_>| match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read,
    };
    let whole = there(fs::read(folder.join(NOTE)).map(Some))?;
    let snapshot = whole.and_then(|bytes| parse(&bytes));
    let adopted = code_commit_dir::read(&folder.join(ADOPTED), MOST_BYTES, Links::Refused);
    let adopted = there(adopted)?.and_then(|name| String::from_utf8(name).ok());
    // It becomes a path.
    let adopted =
        adopted.filter(|name| !name.is_empty() && !name.contains(['/', '\0']) && name != "..");
    Ok((snapshot.is_some() || adopted.is_some()).then_some(Noted { snapshot, adopted }))
}

/// The snapshot first: without the name of the set it would have a recorded answer's changes restored.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    code_commit_dir::remove(&folder.join(NOTE))?;
    code_commit_dir::remove(&folder.join(ADOPTED))
}
