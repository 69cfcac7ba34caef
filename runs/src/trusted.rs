//! The trusted base: what is fixed before any command of the project or of a model runs, and handed down from here.
//!
//! The repository as it was opened, with its configuration and the user's excludes; what the harness starts itself,
//! outside of every sandbox: programs that no command of the project can change, in an environment whose `PATH` names no
//! folder that one can change. What a sandbox mounts is opened by the runner, for each command.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use code_commit_agent::NotInstalled;
use code_commit_guard::{Configuration, Guard, OpenError, Policy, Surroundings};
use code_commit_logging::sha256_hex;
use code_commit_repo::{Git, WorkTree};
use code_commit_runner::{NoProgram, Programs};
use code_commit_settings::{Environment, Settings};
use serde::{Deserialize, Serialize};

use crate::dot_gits;
use crate::exit::Failure;
use crate::place::work_tree_if_any;

/// What a run trusts. Made once for a project; a clone shares what was opened.
#[derive(Debug, Clone)]
pub struct Trusted {
    root: PathBuf,
    tree: Option<WorkTree>,
    surroundings: OnceCell<Surroundings>,
    programs: Programs,
    environment: Environment,
}

/// What git reports about the tree at one moment. Commands and agents may add repositories, so each run asks again.
#[derive(Debug, Default)]
pub struct TreeStatus {
    /// What is not committed, as in [`Status::dirty`](code_commit_repo::Status::dirty).
    pub dirty: Vec<PathBuf>,
    /// What leads git into the [repositories](dot_gits::of) in the tree.
    pub(crate) dot_gits: Vec<PathBuf>,
}

/// What a run trusted, as `run.json` keeps it for later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// The git program, which runs start outside of every sandbox; null if there is none. `~` is the home folder.
    git: Option<String>,
    /// SHA-256 of git's configuration, from all its files; null without a repository.
    git_config_sha256: Option<String>,
    /// SHA-256 of the user's excludes file and of `info/exclude`; null without a repository.
    git_excludes_sha256: Option<String>,
}

impl Trusted {
    /// For the project at the root of this work tree.
    pub fn of(tree: &WorkTree, environment: &Environment) -> Self {
        Self::at(tree.root(), Some(tree.clone()), environment)
    }

    /// For the project in this folder. Fails if its repository cannot be read.
    pub fn find(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        Ok(Self::at(root, work_tree_if_any(root)?, environment))
    }

    /// For the project in this folder, which may be in a work tree.
    pub fn at(root: &Path, tree: Option<WorkTree>, environment: &Environment) -> Self {
        let project = tree.as_ref().map_or(root, WorkTree::top);
        let programs = Programs::new(environment.path(), [project]);
        Self {
            root: root.to_owned(),
            tree,
            surroundings: OnceCell::new(),
            programs,
            environment: environment.clone(),
        }
        .with_path()
    }

    /// What remains to be trusted if commands may change these places, too.
    #[must_use]
    pub fn except<'p>(&self, changeable: impl IntoIterator<Item = &'p Path>) -> Self {
        Self {
            programs: self.programs.except(changeable),
            ..self.clone()
        }
        .with_path()
    }

    /// What remains to be trusted if commands may change what the settings open to them.
    #[must_use]
    pub fn under(&self, settings: &Settings) -> Self {
        self.except(
            settings
                .sandbox
                .writable
                .iter()
                .map(|place| place.0.as_path()),
        )
    }

    fn with_path(self) -> Self {
        let mut variables = self.environment.all().clone();
        variables.insert("PATH".into(), self.programs.path());
        Self {
            environment: Environment::of(variables),
            ..self
        }
    }

    /// The root of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its repository; a project of agents need not have one.
    pub fn tree(&self) -> Option<&WorkTree> {
        self.tree.as_ref()
    }

    /// What git says of the root.
    pub fn surroundings(&self) -> Result<&Surroundings, Failure> {
        if let Some(known) = self.surroundings.get() {
            return Ok(known);
        }
        let found = Surroundings::find(&self.root, Configuration::All).map_err(cannot_read)?;
        Ok(self.surroundings.get_or_init(|| found))
    }

    /// What is not committed, and what leads git into other repositories. Asks git each time.
    pub fn status(&self, settings: &Settings) -> Result<TreeStatus, Failure> {
        let Some(tree) = &self.tree else {
            return Ok(TreeStatus::default());
        };
        let git = self.under(settings).git(tree.top())?;
        let mut status = tree.status(&git)?;
        Ok(TreeStatus {
            dirty: std::mem::take(&mut status.dirty),
            dot_gits: dot_gits::of(tree, &tree.repositories_below(status, &git)),
        })
    }

    /// The guard for the `.gitignore` files of now.
    pub fn guard(&self, policy: Policy) -> Result<Guard, Failure> {
        self.surroundings()?.guard(policy).map_err(cannot_read)
    }

    /// The file to start for a name.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Result<PathBuf, Failure> {
        self.programs
            .find(name)
            .map_err(|error| Failure::hinted(error, NoProgram::hint))
    }

    /// The git program in a folder.
    pub fn git(&self, folder: impl Into<PathBuf>) -> Result<Git, Failure> {
        Ok(Git::new(
            folder,
            self.program("git")?,
            self.environment.all().clone(),
        ))
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

    /// For the record. From now on all of it is read.
    pub(crate) fn base(&self) -> Base {
        let around = self.surroundings().ok().filter(|around| around.is_git());
        let excludes = around.map(|around| sha256_hex(&around.excludes().join(&0)));
        let config = self
            .tree
            .as_ref()
            .map(|tree| sha256_hex(&tree.configuration()));
        Base {
            git: self.recorded_place("git"),
            git_config_sha256: config,
            git_excludes_sha256: excludes,
        }
    }

    /// Where a program is, for the record: the home folder may lie elsewhere when the run goes on.
    fn recorded_place(&self, name: &str) -> Option<String> {
        let place = self.programs.find(name).ok()?;
        let home = self.environment.folder("HOME");
        let below = home
            .and_then(|home| place.strip_prefix(home).ok())
            .map(|below| Path::new("~").join(below));
        Some(below.unwrap_or(place).display().to_string())
    }

    /// A warning about what was another one when a run began.
    pub(crate) fn unlike(&self, then: &Base) -> Option<String> {
        let now = self.base();
        let git = (now.git != then.git).then_some("the git program");
        let config =
            (now.git_config_sha256 != then.git_config_sha256).then_some("git's configuration");
        let excludes =
            (now.git_excludes_sha256 != then.git_excludes_sha256).then_some("git's excludes");
        let changed: Vec<&str> = git.into_iter().chain(config).chain(excludes).collect();
        (!changed.is_empty())
            .then(|| format!("changed since the run began: {}", changed.join(", ")))
    }
}

pub(crate) fn cannot_read(error: OpenError) -> Failure {
    Failure::refused(error, "make the folder readable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_that_appears_is_known_when_git_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = "/usr/local/bin:/usr/bin:/bin";
        let environment = Environment::of([("PATH".into(), path.into())]);
        let git = Trusted::at(folder.path(), None, &environment)
            .git(folder.path())
            .unwrap();
        git.init().unwrap();
        let trusted = Trusted::find(folder.path(), &environment).unwrap();
        let dot_gits = || trusted.status(&Settings::default()).unwrap().dot_gits;
        assert!(dot_gits().is_empty());
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        git.at(folder.path().join("inner")).init().unwrap();
        assert!(dot_gits().contains(&PathBuf::from("inner/.git")));
    }
}
