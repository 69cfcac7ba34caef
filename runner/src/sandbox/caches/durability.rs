//! What of the layers is kept when the machine stopped in between.
//!
//! A layer is mounted volatile: nothing is written back when it is unmounted, for which a command would wait. So a
//! mark beside the layers names the boot in which they are used, and its time says until when everything is known to
//! be on the disk. In another boot, layers with anything later are thrown away: files of it may be incomplete.

use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock, fsync, syncfs};

/// The mark, in the folder of the layers.
const MARK: &str = "boot";
const THIS_BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The times of files lag behind the clock by some milliseconds.
const LAG: Duration = Duration::from_secs(1);

/// Layers that nobody else uses until this is dropped.
pub(crate) struct Held {
    folder: OwnedFd,
    mark: PathBuf,
}

/// Waits until no other command uses these layers: the kernel does not prevent it, and says nothing about the
/// outcome. Then throws them away if they may be incomplete.
pub(super) fn hold(layers: &Path) -> io::Result<Held> {
    fs::create_dir_all(layers)?;
    let held = Held {
        folder: File::open(layers)?.into(),
        mark: layers.join(MARK),
    };
    flock(&held.folder, FlockOperation::LockExclusive)?;
    let boot = fs::read(THIS_BOOT)?;
    let marked = fs::read(&held.mark).ok();
    if marked.as_ref() == Some(&boot) {
        return Ok(held);
    }
    if marked.is_some() {
        let known = fs::metadata(&held.mark)?;
        if has_later(&layers.join("upper"), (known.mtime(), known.mtime_nsec())) {
            ["upper", "work"]
                .iter()
                .try_for_each(|name| code_commit_dir::reach::remove(&held.folder, name.as_ref()))?;
        }
    }
    // What is there now was read from the disk. On the disk itself before anything is written that is not.
    code_commit_dir::replace(&held.mark, &boot)?;
    fsync(&held.folder)?;
    Ok(held)
}

/// Whether anything in a folder has changed after a time. What cannot be examined may have.
fn has_later(path: &Path, time: (i64, i64)) -> bool {
    let has_later = || {
        let found = path.symlink_metadata()?;
        if (found.ctime(), found.ctime_nsec()) > time {
            return Ok(true);
        }
        let mut entries = if found.is_dir() {
            code_commit_dir::list(path)?.collect::<io::Result<Vec<_>>>()?
        } else {
            Vec::new()
        };
        Ok(entries
            .drain(..)
            .any(|entry| has_later(&entry.path(), time)))
    };
    has_later().unwrap_or_else(|error: io::Error| error.kind() != io::ErrorKind::NotFound)
}

impl Drop for Held {
    fn drop(&mut self) {
        // The next command need not wait, either.
        let _ = flock(&self.folder, FlockOperation::Unlock);
        let (Ok(folder), mark) = (self.folder.try_clone(), mem::take(&mut self.mark)) else {
            return;
        };
        // If it fails, or the program ends before, less is known to be on the disk.
        let _ = thread::Builder::new().spawn(move || write_back(&folder, &mark));
    }
}

/// Writes back what commands have written, while nobody waits for it, and then says so by the mark.
fn write_back(folder: &OwnedFd, mark: &Path) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the times of files"
    )]
    let until = SystemTime::now() - LAG;
    syncfs(folder)?;
    let mark = File::options().write(true).open(mark)?;
    if mark.metadata()?.modified()? < until {
        mark.set_modified(until)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_back_is_known_to_be_on_the_disk_and_that_is_never_taken_back() {
        let layers = tempfile::tempdir().unwrap();
        let held = hold(layers.path()).unwrap();
        let mark = || File::options().write(true).open(&held.mark).unwrap();
        let time = || mark().metadata().unwrap().modified().unwrap();
        mark().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        write_back(&held.folder, &held.mark).unwrap();
        assert!(time() > SystemTime::UNIX_EPOCH);
        let later = time() + Duration::from_hours(1);
        mark().set_modified(later).unwrap();
        write_back(&held.folder, &held.mark).unwrap();
        assert_eq!(time(), later);
    }
}
