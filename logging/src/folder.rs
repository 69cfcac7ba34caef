//! The run folder: creates it, and reads and writes its files.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};

use code_commit_model::Stored;
use serde::Serialize;

use crate::{Hashing, Redactor, sha256_hex};

/// Streams are redacted, hashed and written in chunks of this many bytes.
const WRITTEN_AT_ONCE: usize = 64 * 1024;

/// Why something could not be recorded or read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum FolderError {
    /// A file or folder of the record could not be read or written.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, in one word: `create`, `write`, `read`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A stored file is no longer what its record says.
    #[error("{} is not the file that was recorded (SHA-256 differs)", path.display())]
    Changed { path: PathBuf },
    /// The file would be outside the run folder: its name comes from a modified record.
    #[error("`{file}` is not the name of a file in the run folder")]
    Outside { file: String },
}

/// One run's folder. Everything written through it is redacted, except what is written to a file
/// from [`create_file`](Self::create_file).
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    redactor: Redactor,
}

impl RunFolder {
    /// Creates `base/name`, or `base/name-2`, `-3` and so on if the name is taken: two runs in the
    /// same second never share a folder.
    pub fn create(base: &Path, name: &str, redactor: Redactor) -> Result<Self, FolderError> {
        fs::create_dir_all(base).map_err(|source| io_error("create", base, source))?;
        for path in names(base, name) {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, redactor }),
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(io_error("create", &path, source)),
            }
        }
        unreachable!("four billion runs in one second")
    }

    /// The folder that [`create`](Self::create) would make, for one that is made beside it and then
    /// renamed. Only a lock keeps the name free.
    pub fn choose(base: &Path, name: &str, redactor: Redactor) -> Result<Self, FolderError> {
        for path in names(base, name) {
            match fs::symlink_metadata(&path) {
                Err(free) if free.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { path, redactor });
                }
                Ok(_) => {}
                Err(source) => return Err(io_error("look at", &path, source)),
            }
        }
        unreachable!("four billion runs in one second")
    }

    /// Opens an existing run's folder, to continue the run or to read it.
    #[must_use]
    pub fn open(path: PathBuf, redactor: Redactor) -> Self {
        Self { path, redactor }
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The redactor for this folder's files.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Redacts `text` and stores it as `file`, replacing an existing one. Like every new file of a record it is not
    /// synced: whoever names it in the journal does that.
    pub fn store(&self, file: &str, text: &str) -> Result<Stored, FolderError> {
        self.store_and_tell(file, text).map(|(stored, _)| stored)
    }

    /// Like [`store`](Self::store); also returns the text as stored.
    pub fn store_and_tell<'t>(
        &self,
        file: &str,
        text: &'t str,
    ) -> Result<(Stored, Cow<'t, str>), FolderError> {
        let text = self.redactor.redact(text);
        let path = self.path_of(file)?;
        write_file(&path, text.as_bytes()).map_err(|source| io_error("write", &path, source))?;
        let (bytes, sha256) = (text.len() as u64, sha256_hex(text.as_bytes()));
        Ok((
            Stored {
                file: file.to_owned(),
                bytes,
                sha256,
            },
            text,
        ))
    }

    /// Writes a value as indented JSON with a final newline.
    pub fn store_json<T: Serialize>(&self, file: &str, value: &T) -> Result<Stored, FolderError> {
        let text =
            serde_json::to_string_pretty(value).map_err(|e| self.error("write", file, e.into()))?;
        self.store(file, &format!("{text}\n"))
    }

    /// Stores what `write` writes as `file`, redacted, without holding all of it in memory.
    pub fn store_with(
        &self,
        file: &str,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<Stored, FolderError> {
        let redacting = self.redactor.writer(Hashing::new(self.create_file(file)?));
        // Buffer before redacting: a serializer writes a few bytes at a time, and each write is
        // searched for keys.
        let mut writer = BufWriter::with_capacity(WRITTEN_AT_ONCE, redacting);
        let done = write(&mut writer)
            .and_then(|()| writer.into_inner().map_err(io::IntoInnerError::into_error))
            .and_then(crate::RedactWriter::finish)
            .map_err(|source| self.error("write", file, source))?;
        Ok(Stored {
            file: file.to_owned(),
            bytes: done.bytes,
            sha256: done.sha256(),
        })
    }

    /// Describes and opens a `file` that was written through [`writer`](Self::writer). It may be
    /// larger than memory.
    pub fn adopt(&self, file: &str) -> Result<(Stored, File), FolderError> {
        let failed = |source| self.error("read", file, source);
        let mut whole = File::open(self.path_of(file)?).map_err(failed)?;
        let mut hashing = Hashing::new(io::sink());
        let bytes = io::copy(&mut whole, &mut hashing).map_err(failed)?;
        Ok((
            Stored {
                file: file.to_owned(),
                bytes,
                sha256: hashing.sha256(),
            },
            whole,
        ))
    }

    /// An error about `file` of this folder.
    #[must_use]
    pub fn error(&self, doing: &'static str, file: &str, source: io::Error) -> FolderError {
        io_error(doing, &self.path.join(file), source)
    }

    /// A redacting writer that creates or replaces `file`, for text that is stored as it arrives.
    pub fn writer(&self, file: &str) -> Result<crate::RedactWriter<File>, FolderError> {
        Ok(self.redactor.writer(self.create_file(file)?))
    }

    /// Also redacts what a command may print: tokens that the harness does not know.
    pub fn output_writer(&self, file: &str) -> Result<crate::RedactWriter<File>, FolderError> {
        Ok(self.redactor.with_tokens().writer(self.create_file(file)?))
    }

    /// Creates or replaces `file`. Everything written to it must already be redacted.
    pub fn create_file(&self, file: &str) -> Result<File, FolderError> {
        let path = self.path_of(file)?;
        anew(&path).map_err(|source| io_error("create", &path, source))
    }

    /// The current text of `file`, whether or not it has changed since it was stored.
    pub fn read(&self, file: &str) -> Result<String, FolderError> {
        self.read_bytes(file).map(lossy)
    }

    /// The text as it was stored; an error if the file has changed since.
    pub fn recall(&self, stored: &Stored) -> Result<String, FolderError> {
        let bytes = self.read_bytes(&stored.file)?;
        if sha256_hex(&bytes) == stored.sha256 {
            Ok(lossy(bytes))
        } else {
            Err(FolderError::Changed {
                path: self.path.join(&stored.file),
            })
        }
    }

    fn read_bytes(&self, file: &str) -> Result<Vec<u8>, FolderError> {
        let path = self.path_of(file)?;
        fs::read(&path).map_err(|source| io_error("read", &path, source))
    }

    /// The path of `file`; an error if it would be outside the run folder.
    fn path_of(&self, file: &str) -> Result<PathBuf, FolderError> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if file.is_empty() || !Path::new(file).components().all(is_plain) {
            return Err(FolderError::Outside {
                file: file.to_owned(),
            });
        }
        Ok(self.path.join(file))
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// `base/name`, `base/name-2` and so on.
fn names(base: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let numbered = (2_u32..).map(move |number| base.join(format!("{name}-{number}")));
    std::iter::once(base.join(name)).chain(numbered)
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> FolderError {
    FolderError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// Creates a file. Removes an existing one first, so that nothing is written through a planted
/// link.
fn anew(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match create() {
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path).and_then(|()| create())
        }
        created => created,
    }
}

/// A file that is there already is replaced by a rename: the journal may name it, and a kill between its removal
/// and its return would make the record unreadable. So would a power cut between the rename and the content.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(_) => return anew(path)?.write_all(bytes),
        Ok(there) if there.is_file() && fs::read(path).is_ok_and(|there| there == bytes) => {
            return Ok(());
        }
        Ok(_) => {}
    }
    let place = path.with_added_extension("new");
    let mut file = anew(&place)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written
        .and_then(|()| fs::rename(&place, path))
        .inspect_err(|_| drop(fs::remove_file(&place)))
}

#[cfg(test)]
mod tests;
