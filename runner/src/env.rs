//! The environment of a command, built from scratch.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

/// Every process of a run has this variable, with a different value for each command.
pub const RUN_MARKER: &str = "CODE_COMMIT_RUN";

/// Variables that are always passed on from the caller's environment; so is `LC_*`.
const ALLOWED: [&str; 12] = [
    "CARGO_HOME",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_HOME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// The variables that a command sees, and no others.
///
/// ```
/// use code_commit_runner::Env;
///
/// let mine = [("PATH", "/bin"), ("LC_ALL", "C.UTF-8"), ("GEMINI_API_KEY", "s3cret"), ("CC", "clang")];
/// let env = Env::allowed(mine.map(|(name, value)| (name.into(), value.into())), &["CC".into()]);
/// let names: Vec<_> = env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
/// assert_eq!(names, ["CC", "LC_ALL", "PATH"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
}

impl Env {
    /// The variables of `given` that every build needs (`PATH`, `HOME`, the locale, `TERM`, `TZ`,
    /// the Rust homes, …) and those that `extra` names.
    pub fn allowed(
        given: impl IntoIterator<Item = (OsString, OsString)>,
        extra: &[OsString],
    ) -> Self {
        let passes = |name: &OsStr| is_allowed(name) || extra.iter().any(|more| more == name);
        Self {
            variables: given.into_iter().filter(|(name, _)| passes(name)).collect(),
        }
    }

    /// Adds a word to a variable with options.
    pub(crate) fn add_option(&mut self, name: &str, option: &str) {
        let mut options = self.get(name).map_or_else(OsString::new, ToOwned::to_owned);
        if !options.is_empty() {
            options.push(" ");
        }
        options.push(option);
        self.set(name, options);
    }

    /// Sets a variable, whatever its name.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_loader_variables_and_git_variables_do_not_pass() {
        let given = [
            "OPENAI_API_KEY",
            "LD_PRELOAD",
            "GIT_DIR",
            "SSH_AUTH_SOCK",
            "PATHS",
            "LC",
            "lc_all",
        ];
        let env = Env::allowed(given.map(|name| (name.into(), "x".into())), &[]);
        assert_eq!(env, Env::default());
    }

    #[test]
    fn a_later_value_replaces_the_earlier_one() {
        let mut env = Env::allowed([("HOME".into(), "/home/a".into())], &[]);
        env.set("HOME", "/nowhere");
        assert_eq!(env.get("HOME"), Some(OsStr::new("/nowhere")));
    }
}
