//! The settings of a run, from the defaults, the user's own file, the project's `code-commit.toml`,
//! the environment and the flags; later ones take precedence. An untrusted project's file may only
//! tighten the defaults and the user's file.

use std::path::{Path, PathBuf};

use code_commit_names::ours::PROJECT_FILE;

use crate::read::{self, File, ReadError};
use crate::{Bases, Environment, Options, Origin, Settings, Standing, Trust};

/// The configuration files that apply to a project.
#[derive(Debug)]
pub struct Files {
    /// The user's own, if there is one.
    pub user: Option<File>,
    /// The project's, if there is one.
    pub project: Option<File>,
    /// Whether the project's file is trusted.
    pub standing: Standing,
    root: PathBuf,
}

/// Settings, and what was ignored in the project's file.
#[derive(Debug)]
pub struct Loaded {
    /// In force.
    pub settings: Settings,
    /// Settings that would weaken something and are therefore ignored: `sandbox.network = true`.
    pub ignored: Vec<String>,
}

impl Files {
    /// Reads the existing files. Refuses a file with an error, and points at the line.
    pub fn read(root: &Path, environment: &Environment) -> Result<Self, ReadError> {
        let user = users_file(environment)
            .map(|path| read::read(&path))
            .transpose()?
            .flatten();
        let project = read::read(&root.join(PROJECT_FILE))?;
        let trust = trust_of(environment);
        let standing = project.as_ref().map_or(Standing::Unknown, |file| {
            trust.standing(&file.path, &file.sha256)
        });
        Ok(Self {
            user,
            project,
            standing,
            root: root.to_owned(),
        })
    }

    /// Combines all layers.
    pub fn settings(&self, environment: &Environment, flags: &Options) -> Loaded {
        let mut settings = self.without_project();
        let mut ignored = Vec::new();
        if let Some(mut layer) = self.project.as_ref().map(|file| file.layer.clone()) {
            if self.standing != Standing::Trusted {
                ignored = settings.take_weakening(&mut layer);
            }
            settings.put(&layer, &Origin::Project);
        }
        settings.put(flags, &Origin::Flag);
        // Which variable applies depends on the model's provider.
        if flags.model.base_url.is_none() {
            settings.put_environment(environment);
        }
        let settings = settings.unpacked(&Bases::new(&self.root, environment));
        Loaded { settings, ignored }
    }

    /// What the project's file would weaken, compared with the user's file and the defaults.
    pub fn weakening(&self) -> Vec<String> {
        let mut layer = self.project.as_ref().map(|file| file.layer.clone());
        let layer = layer.as_mut();
        layer.map_or_else(Vec::new, |layer| {
            self.without_project().take_weakening(layer)
        })
    }

    /// One sentence about an ignored setting.
    pub fn why_ignored(&self, what: &str) -> String {
        let why = match self.standing {
            Standing::Changed => "has changed since it was trusted",
            Standing::Unknown | Standing::Trusted => "is not trusted and may only tighten",
        };
        format!(
            "{PROJECT_FILE} {why}, so `{what}` has no effect; review the file, then: code-commit trust"
        )
    }

    fn without_project(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(file) = &self.user {
            settings.put(&file.layer, &Origin::User);
        }
        settings
    }
}

/// The user's list of trusted files.
pub fn trust_of(environment: &Environment) -> Trust {
    Trust::read(folder(environment, "XDG_STATE_HOME", ".local/state").as_deref())
}

/// The user's own file, whether it exists or not.
pub(crate) fn users_file(environment: &Environment) -> Option<PathBuf> {
    folder(environment, "XDG_CONFIG_HOME", ".config")
        .map(|base| base.join("code-commit/config.toml"))
}

/// A base folder of the user: the variable's value if it is absolute, otherwise the usual path below the home.
fn folder(environment: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    environment
        .folder(variable)
        .or_else(|| Some(environment.folder("HOME")?.join(usual)))
}
