#![doc = include_str!("../README.md")]

mod folder;
mod journal;
mod layout;
mod names;
mod redact;
mod stamp;

pub use folder::{FolderError, RunFolder};
pub use journal::{Entry, Journal, JournalError};
pub use layout::Layout;
pub use names::name_as_text;
pub use redact::{RedactWriter, Redactor};
pub use stamp::{Stamp, millis};

use std::io;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `bytes` as 64 lower-case hex digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of everything that `content` yields, without holding it in memory.
pub fn sha256_of(content: &mut impl io::Read) -> io::Result<String> {
    let mut hashing = Hashing::new(io::sink());
    io::copy(content, &mut hashing)?;
    Ok(hashing.sha256())
}

/// Passes everything on, counting and hashing it, so that nothing has to be read back.
#[derive(Debug)]
pub(crate) struct Hashing<W> {
    pub(crate) inner: W,
    pub(crate) bytes: u64,
    digest: Sha256,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            digest: Sha256::new(),
        }
    }

    /// The hash of everything so far, in lower-case hex.
    pub(crate) fn sha256(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

impl<W: io::Write> io::Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        let written = bytes.get(..count).unwrap_or(bytes);
        self.bytes += written.len() as u64;
        self.digest.update(written);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default())
        .collect()
}
