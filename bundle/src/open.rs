//! Reads a bundle, which may come from anybody: everything is counted, and nothing is written before its
//! name was checked.

use std::fs::File;
use std::io::{self, Read, Seek, Take, Write};
use std::path::Path;

use code_commit_dir::Folder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use tar::{Archive, Entry};

use crate::hash::{Hashing, check};
use crate::manifest::{Item, Manifest};
use crate::{
    MANIFEST, MOST_BYTES, MOST_FILES, MOST_MANIFEST, MOST_SIGNATURE, SIGNATURE, entry_name,
};

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum OpenError {
    #[error("cannot read it")]
    Read(#[source] io::Error),
    /// It is cut off, a byte has changed, or it is no bundle at all.
    #[error("it is no bundle, or was changed or cut off: the SHA-256 at its end is another one")]
    Hash,
    /// The hash is right, but not what a bundle holds.
    #[error("it is no bundle of this version: {what}")]
    Malformed { what: String },
    #[error("{name} in it is not the file that the manifest names")]
    Content { name: String },
    #[error("cannot write {name}")]
    Write { name: String, source: io::Error },
}

/// The unit of an archive.
const BLOCK: u64 = 512;

/// A bundle whose every byte was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// What is in it.
    pub manifest: Manifest,
    /// The bytes of the manifest, which are what is signed.
    pub manifest_bytes: Vec<u8>,
    /// The signature, not judged.
    pub signature: Option<Vec<u8>>,
    /// The SHA-256 of the bundle but its last 32 bytes, which say the same.
    pub sha256: String,
}

/// Checks every byte of a bundle. With `into`, an empty folder, writes its files there; what was written
/// before an error is left.
pub fn open(file: &mut (impl Read + Seek), into: Option<&Folder>) -> Result<Opened, OpenError> {
    let (packed, sha256) = check(file)
        .map_err(OpenError::Read)?
        .ok_or(OpenError::Hash)?;
    let plain = StreamingDecoder::new(file.take(packed)).map_err(|e| malformed(e.to_string()))?;
    // Also bounds archives that only a program that ignores the manifest would unpack. Each entry has a head of
    // one block and is filled up to the next.
    let most = MOST_BYTES + MOST_MANIFEST + MOST_SIGNATURE + 1024 * (MOST_FILES as u64 + 32);
    let mut archive = Archive::new(plain.take(most));
    // Raw: otherwise the library reads long names of any length into memory.
    let mut entries = archive
        .entries()
        .map_err(|error| unreadable(&error))?
        .raw(true);
    let mut next = || {
        entries
            .next()
            .transpose()
            .map_err(|error| unreadable(&error))
    };
    let first = next()?.ok_or_else(|| malformed("it is empty"))?;
    let manifest_bytes = small(first, MANIFEST, MOST_MANIFEST)?;
    let manifest = Manifest::read(&manifest_bytes)
        .ok_or_else(|| malformed("its manifest cannot be understood"))?;
    let mut signature = None;
    let mut files = manifest.files.iter().enumerate();
    while let Some(entry) = next()? {
        if entry.path_bytes().as_ref() == SIGNATURE.as_bytes() && signature.is_none() {
            signature = Some(small(entry, SIGNATURE, MOST_SIGNATURE)?);
            continue;
        }
        let (number, item) = files
            .next()
            .ok_or_else(|| malformed("it has more files than its manifest"))?;
        expect(&entry, &entry_name(number, &item.name), item.bytes)?;
        take(entry, item, into)?;
    }
    if let Some((_, item)) = files.next() {
        return Err(OpenError::Content {
            name: item.name.clone(),
        });
    }
    ends(archive.into_inner())?;
    Ok(Opened {
        manifest,
        manifest_bytes,
        signature,
        sha256,
    })
}

/// Nothing comes behind the archive and behind its frame: other programs might unpack what we did not look at.
/// Of the two blocks of zeros at the end of an archive, the first one has been read.
fn ends<R: Read>(mut rest: Take<StreamingDecoder<Take<R>, FrameDecoder>>) -> Result<(), OpenError> {
    let mut last = Vec::new();
    rest.by_ref()
        .take(BLOCK + 1)
        .read_to_end(&mut last)
        .map_err(|error| unreadable(&error))?;
    let is_end = last.len() as u64 == BLOCK && last.iter().all(|byte| *byte == 0);
    if is_end && rest.into_inner().into_inner().limit() == 0 {
        return Ok(());
    }
    Err(malformed("something comes behind its archive"))
}

fn unreadable(error: &io::Error) -> OpenError {
    malformed(error.to_string())
}

fn malformed(what: impl Into<String>) -> OpenError {
    OpenError::Malformed { what: what.into() }
}

/// Only plain files: no links, folders, devices or extensions.
fn expect(entry: &Entry<'_, impl Read>, name: &str, bytes: u64) -> Result<(), OpenError> {
    let is_it = entry.header().entry_type().is_file()
        && entry.path_bytes().as_ref() == name.as_bytes()
        && entry.size() == bytes;
    if is_it {
        Ok(())
    } else {
        Err(OpenError::Content {
            name: name.to_owned(),
        })
    }
}

fn small(mut entry: Entry<'_, impl Read>, name: &str, most: u64) -> Result<Vec<u8>, OpenError> {
    let bytes = entry.size();
    expect(&entry, name, bytes.min(most))?;
    let mut content = Vec::new();
    entry
        .read_to_end(&mut content)
        .map_err(|error| unreadable(&error))?;
    Ok(content)
}

fn take(
    mut entry: Entry<'_, impl Read>,
    item: &Item,
    into: Option<&Folder>,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::Write {
        name: item.name.clone(),
        source,
    };
    let (bytes, sha256) = match into {
        Some(folder) => {
            let mut hashing = Hashing::new(create(folder, &item.name).map_err(failed)?);
            io::copy(&mut entry, &mut hashing).map_err(failed)?;
            hashing.flush().map_err(failed)?;
            (hashing.bytes, hashing.hex())
        }
        None => {
            let mut hashing = Hashing::new(io::sink());
            io::copy(&mut entry, &mut hashing).map_err(|error| unreadable(&error))?;
            (hashing.bytes, hashing.hex())
        }
    };
    if (bytes, &sha256) == (item.bytes, &item.sha256) {
        Ok(())
    } else {
        Err(OpenError::Content {
            name: item.name.clone(),
        })
    }
}

/// A new file, with the folders that it needs. Goes through open folders, so that no symlink is followed.
fn create(folder: &Folder, name: &str) -> io::Result<File> {
    let path = Path::new(name);
    let mut here = folder.try_clone()?;
    for part in path.parent().into_iter().flat_map(Path::iter) {
        match here.make_folder(part, 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => here = here.open_in(part)?,
        }
    }
    here.create_file(path.file_name().unwrap_or_default(), 0o600)
}

#[cfg(test)]
mod tests;
