//! Which project files the user trusts: their paths and the SHA-256 of their bytes, in the user's
//! state folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// `trusted.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Pins {
    /// The hash of each project file, by path.
    files: BTreeMap<PathBuf, String>,
}

/// The files that are trusted.
#[derive(Debug)]
pub struct Trust {
    store: Option<PathBuf>,
    pins: Pins,
}

/// The trust status of a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// These bytes are trusted.
    Trusted,
    /// Another version of the file was trusted.
    Changed,
    /// No version was ever trusted.
    Unknown,
}

impl Trust {
    /// Reads `code-commit/trusted.json` in the user's state folder. A list that is missing or
    /// cannot be read trusts nothing.
    pub fn read(state_home: Option<&Path>) -> Self {
        let store = state_home.map(|home| home.join("code-commit").join("trusted.json"));
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let pins = store.as_ref().and_then(read).unwrap_or_default();
        Self { store, pins }
    }

    /// The trust status of `file`, whose bytes have this hash.
    pub fn standing(&self, file: &Path, sha256: &str) -> Standing {
        match self.pins.files.get(file) {
            Some(pinned) if pinned == sha256 => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    /// Trusts these bytes from now on, and no earlier ones. Returns the path of the list.
    pub fn pin(mut self, file: &Path, sha256: &str) -> Result<PathBuf, PinError> {
        let store = self.store.take().ok_or(PinError::NoHome)?;
        self.pins.files.insert(file.to_owned(), sha256.to_owned());
        match replace(&store, &self.pins) {
            Ok(()) => Ok(store),
            Err(source) => Err(PinError::Io {
                path: store,
                source,
            }),
        }
    }
}

/// Why trust in a file cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// Neither variable names a folder.
    #[error("trust cannot be recorded: neither XDG_STATE_HOME nor HOME is set")]
    NoHome,
    /// The list could not be written.
    #[error("cannot write {}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PinError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoHome => "set HOME",
            Self::Io { .. } => "check its permissions",
        }
    }
}

/// Replaces the whole file by a rename; only the user may read it.
fn replace(store: &Path, pins: &Pins) -> io::Result<()> {
    let folder = store.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut file, pins)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(store).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_not_trusted_any_more() {
        let home = tempfile::tempdir().unwrap();
        let file = Path::new("/p/code-commit.toml");
        let trust = || Trust::read(Some(home.path()));
        assert_eq!(trust().standing(file, "aa"), Standing::Unknown);
        trust().pin(file, "aa").unwrap();
        trust().pin(Path::new("/other"), "cc").unwrap();
        assert_eq!(trust().standing(file, "aa"), Standing::Trusted);
        assert_eq!(trust().standing(file, "bb"), Standing::Changed);
        assert_eq!(
            trust().standing(Path::new("/q/code-commit.toml"), "aa"),
            Standing::Unknown
        );
    }

    #[test]
    fn a_store_that_cannot_be_read_trusts_nothing() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("code-commit")).unwrap();
        fs::File::create(home.path().join("code-commit/trusted.json")).unwrap();
        let trust = Trust::read(Some(home.path()));
        assert_eq!(trust.standing(Path::new("/p"), "aa"), Standing::Unknown);
        assert!(matches!(
            Trust::read(None).pin(Path::new("/p"), "aa"),
            Err(PinError::NoHome)
        ));
    }
}
