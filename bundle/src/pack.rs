//! A folder becomes one file.

use std::io::{self, Read, Write};
use std::path::Path;

use code_commit_dir::Folder;
use ruzstd::encoding::{CompressionLevel, compress};
use tar::{EntryType, Header};

use crate::hash::Hashing;
use crate::manifest::Manifest;
use crate::{MANIFEST, SIGNATURE, entry_name};

/// Why no bundle was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum PackError {
    /// The manifest is not one of this folder: a bundle would be refused later.
    #[error("the manifest names what a bundle cannot hold")]
    Manifest,
    /// A file has changed since the manifest was made.
    #[error("{name} has changed in the meantime")]
    Changed { name: String },
    /// A file could not be read, or the bundle not be written.
    #[error("cannot pack {name}")]
    Io { name: String, source: io::Error },
}

/// Writes the files that `manifest` names, with the signature of its bytes if there is one.
///
/// The archive goes through a temporary file without a name.
pub fn pack(
    folder: &Folder,
    manifest: &[u8],
    signature: Option<&[u8]>,
    to: impl Write,
) -> Result<(), PackError> {
    let read = Manifest::read(manifest).ok_or(PackError::Manifest)?;
    let archive = Archive {
        folder,
        manifest: &read,
        bytes: manifest,
        signature,
    };
    let failed = |source| PackError::Io {
        name: MANIFEST.to_owned(),
        source,
    };
    let mut plain = tempfile::tempfile().map_err(failed)?;
    archive.write(&mut plain)?;
    io::Seek::rewind(&mut plain).map_err(failed)?;
    let (mut from, mut to) = (Quiet::new(plain), Quiet::new(Hashing::new(to)));
    compress(&mut from, &mut to, CompressionLevel::Fastest);
    from.done()
        .and_then(|_| to.done()?.finish())
        .map_err(failed)
}

/// Keeps an error for later: the compressor panics at one.
struct Quiet<T> {
    inner: T,
    failed: Option<io::Error>,
}

impl<T> Quiet<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            failed: None,
        }
    }

    fn done(self) -> io::Result<T> {
        self.failed.map_or(Ok(self.inner), Err)
    }

    /// After an error nothing more is read or written; `otherwise` is what the compressor is told.
    fn attempt(
        &mut self,
        otherwise: usize,
        work: impl FnOnce(&mut T) -> io::Result<usize>,
    ) -> usize {
        if self.failed.is_some() {
            return otherwise;
        }
        work(&mut self.inner).unwrap_or_else(|error| {
            self.failed = Some(error);
            otherwise
        })
    }
}

impl<R: Read> Read for Quiet<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.attempt(0, |inner| inner.read(buffer)))
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len();
        Ok(self.attempt(count, |inner| inner.write_all(bytes).map(|()| count)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Archive<'a> {
    folder: &'a Folder,
    manifest: &'a Manifest,
    bytes: &'a [u8],
    signature: Option<&'a [u8]>,
}

impl Archive<'_> {
    fn write(&self, to: &mut impl Write) -> Result<(), PackError> {
        let mut tar = tar::Builder::new(to);
        append(&mut tar, MANIFEST, self.bytes.len() as u64, self.bytes)?;
        if let Some(signature) = self.signature {
            append(&mut tar, SIGNATURE, signature.len() as u64, signature)?;
        }
        for (number, item) in self.manifest.files.iter().enumerate() {
            let failed = |source| PackError::Io {
                name: item.name.clone(),
                source,
            };
            let changed = || PackError::Changed {
                name: item.name.clone(),
            };
            let file = self
                .folder
                .open_file_below(Path::new(&item.name))
                .map_err(failed)?;
            let mut hashed = Hashed {
                inner: file.ok_or_else(changed)?,
                hashing: Hashing::new(io::sink()),
            };
            append(
                &mut tar,
                &entry_name(number, &item.name),
                item.bytes,
                &mut hashed,
            )?;
            if hashed.hashing.hex() != item.sha256 {
                return Err(changed());
            }
        }
        tar.finish().map_err(|source| PackError::Io {
            name: MANIFEST.to_owned(),
            source,
        })
    }
}

/// An entry that is the same whoever writes it, and when.
fn append(
    tar: &mut tar::Builder<impl Write>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> Result<(), PackError> {
    let failed = |source| PackError::Io {
        name: name.to_owned(),
        source,
    };
    let mut header = Header::new_ustar();
    header.set_path(name).map_err(failed)?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(bytes);
    header.set_cksum();
    let mut content = content.take(bytes);
    tar.append(&header, &mut content).map_err(failed)?;
    // A file that is shorter now would shift every entry behind it.
    if content.limit() == 0 {
        Ok(())
    } else {
        Err(PackError::Changed {
            name: name.to_owned(),
        })
    }
}

struct Hashed<R> {
    inner: R,
    hashing: Hashing<io::Sink>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hashing
            .write_all(buffer.get(..count).unwrap_or_default())?;
        Ok(count)
    }
}
