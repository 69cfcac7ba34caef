//! Regular files where a stranger, a build or an agent may have put something else: a pipe would hold us up, a device fill the memory.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a symbolic link in the file's own place is followed; one on the way to it always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A person may have put it there.
    Followed,
    /// Opening it fails.
    Refused,
}

/// The bytes of a file of at most `largest` bytes; none where it is larger or no regular file. What is opened is what is looked at.
pub fn read(path: &Path, largest: u64, links: Links) -> io::Result<Option<Vec<u8>>> {
    let no_link = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = i32::try_from((OFlags::NONBLOCK | no_link).bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > largest {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= largest).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_that_fits_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        File::create(at("text")).unwrap().write_all(b"text").unwrap();
        File::create(at("large")).unwrap().set_len(5).unwrap();
        symlink(at("text"), at("link")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let read = |name: &str, links| read(&at(name), 4, links);
        for name in ["text", "link"] {
            assert_eq!(read(name, Links::Followed).unwrap().as_deref(), Some(&b"text"[..]), "{name}");
        }
        for name in ["device", "pipe", "large", "."] {
            assert_eq!(read(name, Links::Followed).unwrap(), None, "{name}");
        }
        assert!(read("link", Links::Refused).is_err());
        assert_eq!(read("nothing", Links::Followed).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
