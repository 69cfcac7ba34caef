//! The settings of a run: the defaults, the user's own file, the project's `code-commit.toml`, the environment, the flags; what comes
//! later goes before. A project's file that is not trusted may only tighten what the user's file and the defaults say.

use std::path::{Path, PathBuf};

use names::ours::PROJECT_FILE;

use crate::read::{self, File, ReadError};
use crate::{Bases, Environment, Layer, Model, Origin, Settings, Standing, Trust, key};

/// The configuration files that bear on one project.
#[derive(Debug)]
pub struct Files {
    /// The user's own, if there is one.
    pub user: Option<File>,
    /// The project's, if there is one.
    pub project: Option<File>,
    /// Whether the project's is trusted.
    pub standing: Standing,
    root: PathBuf,
    home: Option<PathBuf>,
}

/// Settings, and what of the project's file is not part of them.
#[derive(Debug)]
pub struct Loaded {
    /// In force.
    pub settings: Settings,
    /// What would weaken, and is not in force: `sandbox.network = true`.
    pub ignored: Vec<String>,
}

impl Files {
    /// Reads what is there. A file with an error in it is a refusal that points at the line.
    pub fn read(root: &Path, environment: &Environment) -> Result<Self, ReadError> {
        let home = environment.folder("HOME");
        let user = folder(environment, "XDG_CONFIG_HOME", ".config")
            .map(|base| base.join("code-commit/config.toml"));
        let user = user.map(|path| read::read(&path)).transpose()?.flatten();
        let project = read::read(&root.join(PROJECT_FILE))?;
        let trust = trust_of(environment);
        let standing =
            project.as_ref().map_or(Standing::Unknown, |file| trust.standing(&file.path, &file.sha256));
        Ok(Self { user, project, standing, root: root.to_owned(), home })
    }

    /// Puts all layers together.
    pub fn settings(&self, environment: &Environment, flags: Layer) -> Loaded {
        let bases = self.bases();
        let mut settings = self.without_project();
        let mut ignored = Vec::new();
        if let Some(file) = &self.project {
            let mut layer = file.layer.clone();
            if self.standing != Standing::Trusted {
                ignored = key::take_weakening(&mut layer, &settings, bases);
            }
            settings.put(layer, Origin::Project, bases);
        }
        // Which variable counts depends on whose model it is.
        let model = Model { name: flags.model.name.clone(), ..Model::default() };
        settings.put(Layer { model, ..Layer::default() }, Origin::Flag, bases);
        settings.put_environment(environment);
        settings.put(flags, Origin::Flag, bases);
        Loaded { settings, ignored }
    }

    /// What of the project's file would weaken what the user and the defaults say.
    pub fn weakening(&self) -> Vec<String> {
        let layer = self.project.as_ref().map(|file| file.layer.clone());
        layer.map_or_else(Vec::new, |mut layer| {
            key::take_weakening(&mut layer, &self.without_project(), self.bases())
        })
    }

    /// One sentence for something that is not in force.
    pub fn why_ignored(&self, what: &str) -> String {
        let why = match self.standing {
            Standing::Changed => "has changed since it was trusted",
            Standing::Unknown | Standing::Trusted => "is not trusted and may only tighten",
        };
        format!(
            "{PROJECT_FILE} {why}, so `{what}` is not in force; look at the file, then: code-commit trust"
        )
    }

    fn without_project(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(file) = &self.user {
            settings.put(file.layer.clone(), Origin::User, self.bases());
        }
        settings
    }

    fn bases(&self) -> Bases<'_> {
        Bases { root: &self.root, home: self.home.as_deref() }
    }
}

/// The user's list of trusted files.
pub fn trust_of(environment: &Environment) -> Trust {
    Trust::read(folder(environment, "XDG_STATE_HOME", ".local/state").as_deref())
}

/// A base folder of the user: what the variable says if that is absolute, else its usual place below the home.
fn folder(environment: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    environment.folder(variable).or_else(|| Some(environment.folder("HOME")?.join(usual)))
}
