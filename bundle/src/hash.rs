//! The end of a bundle: a skippable Zstandard frame with the SHA-256 of every byte before the hash.

use std::io::{self, Read, Seek, SeekFrom, Write};

use sha2::{Digest as _, Sha256};

/// The head of the skippable frame: its magic number and the length of its content.
const HEAD: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
const HASH: u64 = 32;

/// Passes everything on and hashes it.
pub(crate) struct Hashing<W> {
    inner: W,
    digest: Sha256,
    pub(crate) bytes: u64,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
            bytes: 0,
        }
    }

    /// The hash of everything so far, in lower-case hex.
    pub(crate) fn hex(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

impl<W: Write> Hashing<W> {
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write_all(&HEAD)?;
        let hash = self.digest.finalize();
        self.inner.write_all(&hash)?;
        self.inner.flush()
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.digest.update(bytes.get(..count).unwrap_or(bytes));
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Checks the hash at the end; gives the length of what comes before that end, and the hash of the whole.
/// `None` if it is another one. Leaves `file` at its beginning.
pub(crate) fn check(file: &mut (impl Read + Seek)) -> io::Result<Option<(u64, String)>> {
    let whole = file.seek(SeekFrom::End(0))?;
    let end = HEAD.len() as u64 + HASH;
    let Some(packed) = whole.checked_sub(end) else {
        return Ok(None);
    };
    file.rewind()?;
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut file.by_ref().take(whole - HASH), &mut hashing)?;
    let mut said = Vec::new();
    file.by_ref().take(HASH).read_to_end(&mut said)?;
    let is = hashing.digest.finalize();
    file.seek(SeekFrom::Start(packed))?;
    let mut head = [0; HEAD.len()];
    file.read_exact(&mut head)?;
    file.rewind()?;
    Ok((said == is.as_slice() && head == HEAD).then(|| (packed, hex(&is))))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
