//! The environment, read by the caller.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The environment variables of the process.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// These variables and no others.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
        }
    }

    /// The value of a variable that is set, not empty and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.variable(name)?.to_str();
        value.filter(|value| !value.is_empty())
    }

    /// An absolute path; a relative one counts as unset, as for the XDG base directories.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    }

    /// Where Docker's daemon listens, if not at the default address.
    pub fn docker_host(&self) -> Option<&OsStr> {
        self.variable("DOCKER_HOST")
    }

    /// The folders in which programs are searched for.
    pub fn path(&self) -> Option<&OsStr> {
        self.variable("PATH")
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name));
        value.map(OsString::as_os_str)
    }

    /// Every variable.
    pub fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }
}
