//! What the harness starts itself, outside of every sandbox: programs that no command of the project can change, in an
//! environment whose `PATH` names no folder that one can change.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use code_commit_agent::NotInstalled;
use code_commit_repo::{Git, WorkTree};
use code_commit_runner::{NoProgram, Programs};
use code_commit_settings::{Environment, Settings};

use crate::exit::Failure;
use crate::host::Host;

/// The programs and their environment.
#[derive(Debug, Clone)]
pub struct Trusted {
    programs: Programs,
    environment: Environment,
}

impl Trusted {
    /// `places` hold the project; the settings may open more to commands.
    pub fn around(places: &[&Path], settings: Option<&Settings>, environment: &Environment) -> Self {
        let writable = settings.into_iter().flat_map(|settings| &settings.writable);
        let changeable = places.iter().copied().chain(writable.map(|place| place.value.as_path()));
        let programs = Programs::new(environment.path(), changeable);
        let mut variables = environment.all().clone();
        variables.insert("PATH".into(), programs.path());
        Self { programs, environment: Environment::of(variables) }
    }

    /// For commands about the current folder's project, or about none.
    pub fn here(host: Host<'_>) -> Self {
        let folder = host.folder.unwrap_or(Path::new("/nonexistent"));
        let tree = WorkTree::at(folder).ok();
        Self::around(&[tree.as_ref().map_or(folder, WorkTree::top)], None, host.environment)
    }

    /// The file to start for a name.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Result<PathBuf, Failure> {
        self.programs.find(name).map_err(|error| Failure::hinted(error, NoProgram::hint))
    }

    /// The git program in a folder.
    pub fn git(&self, folder: impl Into<PathBuf>) -> Result<Git, Failure> {
        Ok(Git::new(folder, self.program("git")?, self.environment.all().clone()))
    }

    /// The CLI of an agent, which works in a sandbox.
    pub(crate) fn agent(
        &self,
        kind: code_commit_agent::Kind,
    ) -> Result<code_commit_agent::Installed, Failure> {
        code_commit_agent::find(kind, &self.programs)
            .map_err(|error| Failure::hinted(error, NotInstalled::hint))
    }

    /// The user's, with another `PATH`.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Where they are found.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }
}
