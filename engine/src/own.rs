//! Files in a tree where a build, an agent or the repository may have put a link or a FIFO in their place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Whether a symbolic link in a file's own place is followed; one on the way to it always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A person may have put it there.
    Followed,
    /// It is no regular file.
    Refused,
}

/// Opens a file of the harness's own to be read and to be added to, made if it is not there. Nothing but a regular file is opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let opened = regular(OpenOptions::new().read(true).append(true).create(true), path, Links::Refused)?;
    opened.ok_or_else(|| io::Error::other("it is not a regular file"))
}

/// Opens a file to be read; none where anything but a regular file is there.
pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    regular(OpenOptions::new().read(true), path, Links::Refused)
}

/// What a file holds; none where it is longer than this, or no regular file: a pipe would hold us up, a device fill the memory.
pub fn read_regular(path: &Path, most: u64, links: Links) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = regular(OpenOptions::new().read(true), path, links)? else { return Ok(None) };
    let length = file.metadata()?.len();
    if length > most {
        return Ok(None);
    }
    let mut content = Vec::new();
    // A sparse file may say that it is longer than any memory.
    content.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    Ok(Some(content).filter(|content| content.len() as u64 <= most))
}

/// SHA-256 of what a file holds, in hex; none where it is no regular file.
pub(crate) fn sha256_of(path: &Path) -> io::Result<Option<String>> {
    let Some(mut file) = open_to_read(path)? else { return Ok(None) };
    logging::sha256_of(&mut file).map(Some)
}

/// Copies a file with its mode, or a link as one, whole or not at all. Anything else is not opened; an error.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    let Some(mut file) = open_to_read(from)? else {
        return std::os::unix::fs::symlink(std::fs::read_link(from)?, to);
    };
    copy_open(&mut file, to)
}

/// The same of a file that is open already, into a folder that is there.
pub(crate) fn copy_open(file: &mut File, to: &Path) -> io::Result<()> {
    let part = tempfile::NamedTempFile::new_in(to.parent().unwrap_or(to))?;
    io::copy(file, &mut part.as_file())?;
    part.as_file().set_permissions(file.metadata()?.permissions())?;
    part.persist_noclobber(to).map(drop).map_err(Into::into)
}

/// What it is, is asked of the file that was opened: its name may stand for another one by now.
fn regular(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<Option<File>> {
    let no_link = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = no_link | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = match options.custom_flags(flags).open(path) {
        // A link, and a socket.
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NXIO)) => {
            return Ok(None);
        }
        opened => opened?,
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Appends lines to such a file; a last line that lacks its end, there or in `text`, gets one.
pub fn append_to_own(path: &Path, text: &str) -> io::Result<()> {
    append_lines(&mut open(path)?, text)
}

/// The same for whole lines that a run which was killed may have appended already: they are not there twice.
pub(crate) fn append_once_to_own(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open(path)?;
    if ends_with(&file, text)? { Ok(()) } else { append_lines(&mut file, text) }
}

fn append_lines(file: &mut File, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let start = if file.metadata()?.len() == 0 || ends_with(file, "\n")? { "" } else { "\n" };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{start}{text}{end}").as_bytes())
}

/// Whether these are the last bytes of a file.
pub(crate) fn ends_with(file: &File, text: &str) -> io::Result<bool> {
    let Some(start) = file.metadata()?.len().checked_sub(text.len() as u64) else { return Ok(false) };
    let mut end = vec![0; text.len()];
    file.read_exact_at(&mut end, start)?;
    Ok(end == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_only_up_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let read = |path: &Path, most| read_regular(path, most, Links::Refused);
        File::create(at("file")).unwrap().write_all(b"12345").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        for other in [at("link"), at("socket"), at("fifo"), folder.path().to_owned()] {
            assert!(read(&other, 9).unwrap().is_none() && sha256_of(&other).unwrap().is_none(), "{other:?}");
        }
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        assert_eq!(read_regular(&at("device"), 9, Links::Followed).unwrap(), None);
        assert_eq!(read_regular(&at("link"), 9, Links::Followed).unwrap().as_deref(), Some(&b"12345"[..]));
        File::create(at("sparse")).unwrap().set_len(1 << 42).unwrap();
        assert_eq!(read(&at("sparse"), 9).unwrap(), None);
        assert_eq!(read(&at("sparse"), u64::MAX).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(read(&at("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(&at("file"), 5).unwrap().as_deref(), Some(&b"12345"[..]));
        assert_eq!(read(&at("file"), 4).unwrap(), None);
        assert_eq!(sha256_of(&at("file")).unwrap(), Some(logging::sha256_hex(b"12345")));
    }
}
