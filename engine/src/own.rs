//! Files of the harness's own in a tree where a build, an agent or the repository may have put a link or a FIFO in their place.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to be read and to be added to, made if it is not there. Nothing but a regular file is opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Appends lines to such a file; a last line that lacks its end, there or in `text`, gets one.
pub fn append_to_own(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open(path)?;
    if text.is_empty() {
        return Ok(());
    }
    let mut last = [b'\n'];
    if let Some(end) = file.metadata()?.len().checked_sub(1) {
        file.read_at(&mut last, end)?;
    }
    let start = if last == [b'\n'] { "" } else { "\n" };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{start}{text}{end}").as_bytes())
}
