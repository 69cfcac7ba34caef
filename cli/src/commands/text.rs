//! Texts of a project, where a stranger or an agent may have put something else in a file's place.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use rustix::fs::OFlags;

use crate::exit::Failure;

/// A larger file is not read.
const LARGEST_MIB: u64 = 16;

/// The text of a regular file, also by a link; none where there is none. A pipe would hold us up, a device fill the memory.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    let bytes = match bytes(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let message = anyhow!("{} is no regular file of at most {LARGEST_MIB} MiB", path.display());
            return Err(Failure::refused(message, "remove it, or make it one"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let error = Err(error).with_context(|| format!("cannot read {}", path.display()));
            return error.map_err(|error| Failure::refused(error, "see who may read it"));
        }
    };
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| Failure::refused(anyhow!("{} is not UTF-8", path.display()), "save it as UTF-8"))
}

/// None of what is no such file.
fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let largest = LARGEST_MIB << 20;
    file.take(largest + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= largest).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_that_fits_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::File::create(at("text")).unwrap().write_all(b"text\n").unwrap();
        symlink(at("text"), at("link")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        std::fs::File::create(at("large")).unwrap().set_len((LARGEST_MIB << 20) + 1).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert_eq!(read(&at("text")).unwrap().as_deref(), Some("text\n"));
        assert_eq!(read(&at("link")).unwrap().as_deref(), Some("text\n"));
        assert_eq!(read(&at("nothing")).unwrap(), None);
        for name in ["device", "pipe", "large", "."] {
            let why = read(&at(name)).unwrap_err().error.to_string();
            assert!(why.contains("is no regular file"), "{name}: {why}");
        }
    }
}
