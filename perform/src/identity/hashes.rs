//! Hashes of contents by what `stat` says of a file: in this process and, for large trees, in a file of the harness's state.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use code_commit_changes::Seen;
use code_commit_dir::{Links, read, replace_with};
use code_commit_logging::sha256_hex;

/// A file that has changed this recently may change again within the granularity of its times. Git calls such a file racy.
const FRESH_SECONDS: i64 = 2;
/// So many files that were read are worth one of hashes: below, reading the contents takes no time that anybody notices.
const WORTH_A_FILE: usize = 1_000;
/// What a file of so many hashes takes is more than any tree has.
const MOST_BYTES: u64 = 1 << 30;
/// The first line of the file; the second one is the SHA-256 of what follows.
const FORMAT: &str = "code-commit hashes 1\n";

const HEX: usize = 64;
/// Device, inode, length, and the two times in seconds and nanoseconds.
type Key = [u64; 7];
const KEY_BYTES: usize = size_of::<Key>();

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct Known {
    /// In hex.
    by_key: HashMap<Key, String>,
    /// The files that were looked for: a server works in several projects.
    files: HashSet<PathBuf>,
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(seen: &Seen) -> Key {
    let (mtime, ctime) = (seen.mtime, seen.ctime);
    let times = [mtime.0, mtime.1, ctime.0, ctime.1].map(i64::cast_unsigned);
    let [from, to, since, then] = times;
    [seen.id.0, seen.id.1, seen.len, from, to, since, then]
}

/// Takes in what the file holds, once a process. A damaged file holds nothing.
pub(super) fn load(file: &Path) {
    let mut known = known();
    if known.files.insert(file.to_owned()) {
        known.by_key.extend(stored(file).unwrap_or_default());
    }
}

fn stored(file: &Path) -> Option<HashMap<Key, String>> {
    let all = read(file, MOST_BYTES, Links::Refused).ok()??;
    let (sum, records) = all.strip_prefix(FORMAT.as_bytes())?.split_at_checked(HEX)?;
    if sum != sha256_hex(records).as_bytes() {
        return None;
    }
    let records = records.chunks_exact(KEY_BYTES + HEX);
    records
        .map(|record| {
            let (key, hash) = record.split_at_checked(KEY_BYTES)?;
            let mut parts = key
                .as_chunks()
                .0
                .iter()
                .map(|part| u64::from_le_bytes(*part));
            let mut key = Key::default();
            key.iter_mut()
                .try_for_each(|part| parts.next().map(|read| *part = read))?;
            Some((key, String::from_utf8(hash.to_vec()).ok()?))
        })
        .collect()
}

/// The hash of a file that looks like this.
pub(super) fn get(seen: &Seen) -> Option<String> {
    known().by_key.get(&key(seen)).cloned()
}

/// Remembers the hash of a file that has looked like this before and after it was read.
pub(super) fn add(seen: &Seen, hash: &str) {
    if now_seconds() - seen.ctime.0 > FRESH_SECONDS {
        known().by_key.insert(key(seen), hash.to_owned());
    }
}

/// Stores the hashes of these files, if so many were read that it is worth it. What cannot be stored is computed again.
pub(super) fn store<'s>(file: &Path, all: impl Iterator<Item = &'s Seen>, were_read: usize) {
    if were_read < WORTH_A_FILE {
        return;
    }
    let known = known();
    let mut records = Vec::new();
    for key in all.map(key) {
        if let Some(hash) = known.by_key.get(&key) {
            key.iter()
                .for_each(|part| records.extend(part.to_le_bytes()));
            records.extend_from_slice(hash.as_bytes());
        }
    }
    let parts = [FORMAT.as_bytes(), sha256_hex(&records).as_bytes(), &records].concat();
    let _ = replace_with(file, |file| file.write_all(&parts));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the times of files are those of the calendar"
)]
fn now_seconds() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn seen(len: u64, ctime: i64) -> Seen {
        let mut stat = rustix::fs::stat("/").unwrap();
        (stat.st_size, stat.st_ctime) = (len.cast_signed(), ctime);
        Seen::of(&stat)
    }

    #[test]
    fn hashes_of_a_large_tree_are_stored_and_a_damaged_file_holds_none() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("hashes");
        let all: Vec<Seen> = (0..WORTH_A_FILE as u64).map(|len| seen(len, 7)).collect();
        let hash = sha256_hex(b"content");
        let last = all.last().unwrap();
        all.iter().for_each(|seen| add(seen, &hash));
        store(&file, all.iter(), all.len() - 1);
        assert!(!file.exists(), "too few are not worth a file");
        let fresh = seen(0, now_seconds());
        add(&fresh, &hash);
        assert_eq!((get(last), get(&fresh)), (Some(hash.clone()), None));
        store(&file, all.iter(), all.len());
        let found = stored(&file).unwrap();
        assert_eq!(found.len(), all.len());
        assert_eq!(found.get(&key(last)), Some(&hash));
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&whole[..whole.len() - 1], &whole[..20], b"", &flipped] {
            code_commit_dir::replace(&file, damaged).unwrap();
            assert_eq!(stored(&file), None);
        }
    }
}
