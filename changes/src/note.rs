//! What is on disk while a command runs, and until its answer is recorded, so that its changes can be found if
//! the harness is killed: the snapshot of the tree before it, and the name of the set that adopts its changes.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use code_commit_dir::Links;

use crate::change::Seen;
use crate::snapshot::Snapshot;

const NOTE: &str = "tree";
const ADOPTED: &str = "adopted";
/// Beside a mode: what is there is ignored, or a product.
const IGNORED: u64 = 1 << 32;
const PRODUCT: u64 = 1 << 33;
/// The name of a set is short.
const MOST_BYTES: u64 = 1 << 10;

/// What a killed harness left.
pub(crate) struct Noted {
    /// The paths to skip, and the tree before the command, if it worked in the tree.
    pub(crate) snapshot: Option<(Vec<PathBuf>, Snapshot)>,
    /// The name of the set, if its changes had begun to be adopted.
    pub(crate) adopted: Option<String>,
}

/// `own` are the paths to skip. All numbers are of eight bytes, the lowest first; the number of rows comes last.
pub(crate) fn write(folder: &Path, own: &[PathBuf], snapshot: &Snapshot) -> io::Result<()> {
    code_commit_dir::replace_with(&folder.join(NOTE), |file| {
        let mut file = BufWriter::new(file);
        number(&mut file, own.len() as u64)?;
        own.iter().try_for_each(|path| name(&mut file, path))?;
        let mut rows = 0_u64;
        for (path, seen) in snapshot.iter() {
            name(&mut file, path)?;
            numbers_of(seen)
                .iter()
                .try_for_each(|one| number(&mut file, *one))?;
            rows += 1;
        }
        // No path is so long.
        number(&mut file, u64::MAX)?;
        number(&mut file, rows)?;
        file.flush()
    })
}

fn number(file: &mut impl Write, number: u64) -> io::Result<()> {
    file.write_all(&number.to_le_bytes())
}

fn name(file: &mut impl Write, path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    number(file, bytes.len() as u64)?;
    file.write_all(bytes)
}

fn numbers_of(seen: &Seen) -> [u64; 10] {
    let ignored = if seen.is_ignored { IGNORED } else { 0 };
    let product = if seen.is_product { PRODUCT } else { 0 };
    let (mode, (uid, gid)) = (u64::from(seen.mode) | ignored | product, seen.owner);
    let (mtime, ctime) = (seen.mtime, seen.ctime);
    [
        mode,
        seen.len,
        mtime.0.cast_unsigned(),
        mtime.1.cast_unsigned(),
        ctime.0.cast_unsigned(),
        ctime.1.cast_unsigned(),
        seen.id.0,
        seen.id.1,
        u64::from(uid),
        u64::from(gid),
    ]
}

/// What is left to read of a note.
struct Rest<'n>(&'n [u8]);

impl Rest<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn path(&mut self, len: u64) -> Option<PathBuf> {
        let (path, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(OsString::from_vec(path.to_vec()).into())
    }

    fn seen(&mut self) -> Option<Seen> {
        let mut next = || self.number();
        let mode = next()?;
        let (is_ignored, is_product) = (mode & IGNORED != 0, mode & PRODUCT != 0);
        let mode = u32::try_from(mode & !(IGNORED | PRODUCT)).ok()?;
        let len = next()?;
        let mut time = || Some((next()?.cast_signed(), next()?.cast_signed()));
        let (mtime, ctime) = (time()?, time()?);
        let id = (next()?, next()?);
        let owner = (u32::try_from(next()?).ok()?, u32::try_from(next()?).ok()?);
        Some(Seen {
            mode,
            len,
            mtime,
            ctime,
            id,
            owner,
            is_ignored,
            is_product,
        })
    }

    fn snapshot(&mut self) -> Option<(Vec<PathBuf>, Snapshot)> {
        let count = self.number()?;
        let mut own = Vec::new();
        for _ in 0..count {
            let len = self.number()?;
            own.push(self.path(len)?);
        }
        let mut found = Vec::new();
        loop {
            match self.number()? {
                u64::MAX => break,
                len => found.push((self.path(len)?, self.seen()?)),
            }
        }
        // A power cut may have left a part of it, which would make every other file look new.
        let is_whole = self.number()? == found.len() as u64;
        is_whole.then(|| (own, Snapshot::new(found)))
    }
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
    let snapshot = whole.and_then(|bytes| Rest(&bytes).snapshot());
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
