//! Computes length and hash while writing, so that nothing has to be read back.

use std::io;

use sha2::{Digest as _, Sha256};

/// Passes everything on, counting and hashing it.
#[derive(Debug)]
pub(crate) struct Hashing<W> {
    pub(crate) inner: W,
    pub(crate) bytes: u64,
    digest: Sha256,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, bytes: 0, digest: Sha256::new() }
    }

    /// The hash of everything so far, in lower-case hex.
    pub(crate) fn sha256(&self) -> String {
        crate::hex(&self.digest.clone().finalize())
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
