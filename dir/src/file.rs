//! Single files in a tree where a build, an agent or the repository may have put a symlink or a FIFO
//! in their place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Whether the file itself may be a symlink. Symlinks in the folders above it are always followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A person may have put it there.
    Followed,
    /// It is not a regular file.
    Refused,
}

/// Opens one of the harness's files for reading and appending, and creates it with its folders if it
/// is missing. Anything but a regular file is an error.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let opened = regular(
        OpenOptions::new().read(true).append(true).create(true),
        path,
        Links::Refused,
    )?;
    opened.ok_or_else(|| io::Error::other("it is not a regular file"))
}

/// Opens a regular file for reading; `None` if it is anything else.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    regular(OpenOptions::new().read(true), path, Links::Refused)
}

/// The content of a file; `None` if it is longer than `most` bytes or not a regular file. A FIFO would
/// block, and a device would fill the memory.
pub fn read(path: &Path, most: u64, links: Links) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = regular(OpenOptions::new().read(true), path, links)? else {
        return Ok(None);
    };
    let length = file.metadata()?.len();
    if length > most {
        return Ok(None);
    }
    let mut content = Vec::new();
    // A sparse file may be longer than the memory.
    content.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    Ok(Some(content).filter(|content| content.len() as u64 <= most))
}

/// Checks the descriptor, not the name: the name may refer to something else by now.
fn regular(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<Option<File>> {
    let no_link = if links == Links::Refused {
        OFlags::NOFOLLOW
    } else {
        OFlags::empty()
    };
    let flags = no_link | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = match options.custom_flags(flags).open(path) {
        // A link, and a socket.
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::LOOP | Errno::NXIO)
            ) =>
        {
            return Ok(None);
        }
        opened => opened?,
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Appends lines to a regular file, which is created if it is missing. Adds a missing newline at the
/// end of the file and at the end of `text`.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    append_lines(&mut open(path)?, "", text)
}

/// Appends like [`append`], with `head` at the start of a new file. Whole lines that a killed run has
/// already appended are not appended again.
pub fn append_once(path: &Path, head: &str, text: &str) -> io::Result<()> {
    let mut file = open(path)?;
    let is_there = !text.is_empty() && ends_with(&file, text)?;
    if is_there {
        Ok(())
    } else {
        append_lines(&mut file, head, text)
    }
}

fn append_lines(file: &mut File, head: &str, text: &str) -> io::Result<()> {
    let start = if file.metadata()?.len() == 0 {
        head
    } else if text.is_empty() || ends_with(file, "\n")? {
        ""
    } else {
        "\n"
    };
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    file.write_all(format!("{start}{text}{end}").as_bytes())
}

/// Whether these are the last bytes of a file.
fn ends_with(file: &File, text: &str) -> io::Result<bool> {
    let Some(start) = file.metadata()?.len().checked_sub(text.len() as u64) else {
        return Ok(false);
    };
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
        let read = |path: &Path, most| super::read(path, most, Links::Refused);
        File::create(at("file"))
            .unwrap()
            .write_all(b"12345")
            .unwrap();
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
        for other in [
            at("link"),
            at("socket"),
            at("fifo"),
            folder.path().to_owned(),
        ] {
            assert!(
                read(&other, 9).unwrap().is_none() && open_regular(&other).unwrap().is_none(),
                "{other:?}"
            );
        }
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        assert_eq!(
            super::read(&at("device"), 9, Links::Followed).unwrap(),
            None
        );
        assert_eq!(
            super::read(&at("link"), 9, Links::Followed)
                .unwrap()
                .as_deref(),
            Some(&b"12345"[..])
        );
        File::create(at("sparse"))
            .unwrap()
            .set_len(1 << 42)
            .unwrap();
        assert_eq!(read(&at("sparse"), 9).unwrap(), None);
        assert_eq!(
            read(&at("sparse"), u64::MAX).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
        assert_eq!(
            read(&at("none"), 9).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            read(&at("file"), 5).unwrap().as_deref(),
            Some(&b"12345"[..])
        );
        assert_eq!(read(&at("file"), 4).unwrap(), None);
    }

    #[test]
    fn lines_that_are_there_already_are_not_appended_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("logs/tokens.csv");
        for rows in ["1,a\n", "1,a\n", "2,b\n", "2,b\n", ""] {
            append_once(&file, "n,name\n", rows).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "n,name\n1,a\n2,b\n"
        );
    }

    #[test]
    fn lines_are_appended_neither_through_a_symlink_nor_to_a_fifo() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (
            folder.path().join("tokens.csv"),
            folder.path().join("theirs"),
        );
        append(&target, "theirs").unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        append_once(&file, "n,name\n", "1,a\n").unwrap_err();
        append(&file, "1,a").unwrap_err();
        assert_eq!(std::fs::read(&target).unwrap(), b"theirs\n");
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        append_once(&file, "n,name\n", "1,a\n").unwrap_err();
    }
}
