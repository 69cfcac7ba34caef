//! Finds keys: in the environment, in files in `agent-config/`, or (S0) at the root.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use code_commit_llm::{Provider, Secret};
use code_commit_names::ours::AGENT_CONFIG;

use crate::{Environment, Files, Options, Settings};

/// A variable with a key that only an agent needs.
const OF_AGENTS: &str = "CODEX_API_KEY";

/// All keys that this process can see. All of them are redacted in every output, whichever model is
/// asked.
#[derive(Debug, Default)]
pub struct Keys {
    all: Vec<Key>,
    /// Variables that may contain a key, set or not.
    variables: Vec<String>,
}

#[derive(Debug)]
struct Key {
    /// Or why there is none in its file.
    secret: Result<Secret, String>,
    /// The name of the variable or of the file.
    source: String,
    whose: Whose,
}

/// Which providers a key is for.
#[derive(Debug)]
enum Whose {
    /// Those that name the variable.
    Variable,
    /// Those with this name of a key file.
    File(String),
    /// All: the key is in the program itself, as that of the demo.
    All,
}

/// Keys for programs that read this file; a project with phases keeps its secrets here (S3
/// §Environment and Security).
pub const DOT_ENV: &str = ".env";

/// The maximum size of a key file; no key is longer.
const LARGEST_KEY_FILE: u64 = 64 << 10;

impl Keys {
    /// Finds keys in the environment, then in `agent-config/*-key.txt` and at the root. Which variables hold keys
    /// is also up to the configuration; one that cannot be read is an error elsewhere.
    pub fn find(environment: &Environment, root: &Path) -> Self {
        let settings = Files::read(root, environment).map_or_else(
            |_| Settings::default(),
            |files| files.settings(environment, &Options::default()).settings,
        );
        let mut variables: Vec<String> = Vec::new();
        let of_providers = settings.all_providers().into_iter();
        let names = of_providers.flat_map(|provider| provider.key_env);
        for name in names.chain([OF_AGENTS.to_owned()]) {
            // Several providers may share a key.
            if !variables.contains(&name) {
                variables.push(name);
            }
        }
        let in_variable = |name: &String| {
            let secret = Some(Secret::new(environment.text(name)?));
            Some(Key {
                secret: Ok(secret.filter(|secret| !secret.is_empty())?),
                source: name.clone(),
                whose: Whose::Variable,
            })
        };
        // S0 keeps its key at the root.
        let files = key_files(&root.join(AGENT_CONFIG)).into_iter();
        let in_file = |path: PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            Key {
                secret: read_key(&path),
                source: shown.to_string(),
                whose: Whose::File(name.strip_suffix(KEY_FILE).unwrap_or_default().to_owned()),
            }
        };
        let files = files.chain(files_at(root)).map(in_file);
        Self {
            all: variables
                .iter()
                .filter_map(in_variable)
                .chain(files)
                .collect(),
            variables,
        }
    }

    /// One key for every provider that needs one.
    pub fn just(key: Secret) -> Self {
        let key = Key {
            secret: Ok(key),
            source: "the program".to_owned(),
            whose: Whose::All,
        };
        Self {
            all: vec![key],
            variables: Vec::new(),
        }
    }

    /// The key for a provider. The environment takes precedence, in the order of the provider's variables.
    pub fn of(&self, provider: &Provider) -> Option<&Secret> {
        self.found_for(provider).map(|(secret, _)| secret)
    }

    fn found_for(&self, provider: &Provider) -> Option<(&Secret, &str)> {
        let variables = provider.key_env.iter();
        let mut variable =
            variables.filter_map(|name| self.usable().find(|(key, _)| key.is_variable(name)));
        let file = || self.usable().find(|(key, _)| key.is_file_of(provider));
        let (key, secret) = variable.next().or_else(file)?;
        Some((secret, &key.source))
    }

    fn usable(&self) -> impl Iterator<Item = (&Key, &Secret)> {
        self.all
            .iter()
            .filter_map(|key| Some((key, key.secret.as_ref().ok()?)))
    }

    /// Where the key for a provider was found, if it cannot be sent in a header: it contains white
    /// space or unprintable characters.
    pub fn unsendable(&self, provider: &Provider) -> Option<String> {
        let (secret, source) = self.found_for(provider)?;
        let sendable = secret.expose().chars().all(|c| c.is_ascii_graphic());
        (!sendable).then(|| source.to_owned())
    }

    /// The key file of a provider that contains no key, and why.
    pub fn without(&self, provider: &Provider) -> Option<String> {
        let mut files = self.all.iter().filter(|key| key.is_file_of(provider));
        files.find_map(|key| Some(format!("{} {}", key.source, key.secret.as_ref().err()?)))
    }

    /// Every key in plain text, for the redactor.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        self.usable().map(|(_, secret)| secret.expose())
    }

    /// Every key, redacted, with the first of `providers` that it is for and where it was found.
    pub fn found<'k>(
        &'k self,
        providers: &'k [Provider],
    ) -> impl Iterator<Item = (Option<&'k str>, &'k Secret, &'k str)> {
        self.usable().map(|(key, secret)| {
            let is_its = |provider: &&Provider| {
                let mut variables = provider.key_env.iter();
                key.is_file_of(provider) || variables.any(|name| key.is_variable(name))
            };
            let whose = providers.iter().find(is_its);
            let whose = whose.map(|provider| provider.name.as_str());
            (whose, secret, key.source.as_str())
        })
    }

    /// Whether this variable contains a key.
    pub fn is_variable(&self, name: &OsStr) -> bool {
        self.variables.iter().any(|known| name == known.as_str())
    }
}

impl Key {
    fn is_variable(&self, name: &str) -> bool {
        matches!(self.whose, Whose::Variable) && self.source == name
    }

    fn is_file_of(&self, provider: &Provider) -> bool {
        match &self.whose {
            Whose::Variable => false,
            Whose::File(whose) => whose == provider.key_file(),
            Whose::All => true,
        }
    }
}

/// What to do if there is no key.
pub fn remedy(provider: &Provider) -> String {
    // The last one: programs of the service itself prefer the others.
    let variable = provider
        .key_env
        .last()
        .map(|name| format!("set {name}, or "))
        .unwrap_or_default();
    format!(
        "{variable}put the key into {AGENT_CONFIG}/{}{KEY_FILE}",
        provider.key_file()
    )
}

/// The project's paths that a sandbox hides in every loop that works at its root: all places of our
/// keys.
pub fn hidden(root: &Path) -> Vec<PathBuf> {
    files_at(root).chain([root.join(AGENT_CONFIG)]).collect()
}

/// What a sandbox hides from an agent, which has network access: also `.env`, which a build may need.
pub fn hidden_from_agents(root: &Path) -> Vec<PathBuf> {
    hidden(root)
        .into_iter()
        .chain([root.join(DOT_ENV)])
        .collect()
}

/// Whether keys may be at a path, relative to the root: in a folder, or in the files at the root.
pub fn is_place(path: &Path) -> bool {
    let is_at_root = path.parent() == Some(Path::new(""));
    path.starts_with(AGENT_CONFIG)
        || (is_at_root && names_at_root().any(|name| path == Path::new(&name)))
}

/// The key files that S0 expects at the root.
fn names_at_root() -> impl Iterator<Item = String> {
    let mut names: Vec<&str> = Provider::all_built_in()
        .iter()
        .map(Provider::key_file)
        .collect();
    names.dedup();
    names.into_iter().map(|name| format!("{name}{KEY_FILE}"))
}

/// Whether a file's name is that of a key file.
pub fn is_key_file(path: &str) -> bool {
    path.ends_with(KEY_FILE)
}

/// The end of a key file's name.
const KEY_FILE: &str = "-key.txt";

/// The existing ones at the root.
fn files_at(root: &Path) -> impl Iterator<Item = PathBuf> {
    names_at_root()
        .map(|name| root.join(name))
        .filter(|path| path.symlink_metadata().is_ok())
}

/// Every `agent-config/…-key.txt`.
fn key_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = code_commit_dir::list(folder) else {
        return Vec::new();
    };
    let is_key = |path: &PathBuf| path.to_str().is_some_and(is_key_file);
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_key)
        .collect();
    files.sort();
    files
}

/// The key in a file, which must be a small regular file; or why there is none.
fn read_key(path: &Path) -> Result<Secret, String> {
    let bytes = code_commit_dir::read(path, LARGEST_KEY_FILE, code_commit_dir::Links::Followed)
        .map_err(|error| format!("cannot be read: {error}"))?
        .ok_or("is not a small file")?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    // Some editors write a byte order mark first.
    let secret = Secret::new(text.trim_start_matches('\u{feff}'));
    if secret.is_empty() {
        Err("is empty".to_owned())
    } else {
        Ok(secret)
    }
}
