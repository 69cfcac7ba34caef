//! The environment, as whoever read it hands it over.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What the process was started with.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// These variables and no others.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    /// The value of a variable that is set, not empty and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// An absolute path; a relative one counts as not set, as the XDG base directories have it.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Where Docker's daemon listens, if not in the usual place.
    pub fn docker_host(&self) -> Option<&OsStr> {
        self.variables.get(OsStr::new("DOCKER_HOST")).map(OsString::as_os_str)
    }

    /// Where programs are looked for.
    pub fn path(&self) -> Option<&OsStr> {
        self.variables.get(OsStr::new("PATH")).map(OsString::as_os_str)
    }

    /// Every variable.
    pub fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }
}
