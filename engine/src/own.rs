//! Files of the harness's own in a tree where a build, an agent or the repository may have put a link or a FIFO in their place.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to be read and to be added to, made if it is not there. Nothing but a regular file is opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Appends a text and, where it does not end its last line, that end, to such a file.
pub fn append_to_own(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open(path)?;
    file.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { file.write_all(b"\n") }
}
