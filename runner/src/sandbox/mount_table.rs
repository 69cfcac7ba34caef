//! The kernel's table of mounts: `mountinfo` of proc(5).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

pub(super) const OWN: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    /// The numbers of its file system.
    pub(super) device: Vec<u8>,
    /// Which part of the file system it shows.
    pub(super) part: PathBuf,
    pub(super) place: PathBuf,
    pub(super) options: Vec<u8>,
}

impl Mounted {
    pub(super) fn has(&self, option: &str) -> bool {
        self.options
            .split(|byte| *byte == b',')
            .any(|word| word == option.as_bytes())
    }
}

/// Reads a table, in the order in which the mounts were made.
pub(super) fn read(table: impl AsRef<Path>) -> io::Result<Vec<Mounted>> {
    Ok(parse(&fs::read(table)?))
}

pub(super) fn parse(table: &[u8]) -> Vec<Mounted> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(mounted)
        .collect()
}

fn mounted(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = fields.next()?.to_vec();
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(fields.next()?))));
    let (part, place) = (path()?, path()?);
    Some(Mounted {
        device,
        part,
        place,
        options: fields.next()?.to_vec(),
    })
}

/// Blanks, tabs, line breaks and backslashes are written as three octal digits (proc(5)).
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        match digits.filter(|_| *byte == b'\\') {
            Some(code) => {
                bytes.push(code);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_with_blanks_and_line_breaks_is_read_as_it_is() {
        assert_eq!(unescaped(br"/a\040b\012c\134040\9"), b"/a b\nc\\040\\9");
        assert_eq!(unescaped(br"/end\04"), br"/end\04");
    }
}
