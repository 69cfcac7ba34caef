//! Finds keys: in the environment, in files in `agent-config/`, or (S0) at the root.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use code_commit_llm::{Provider, Secret};
use code_commit_names::ours::AGENT_CONFIG;

use crate::{Environment, Files, Layer};

/// A variable with a key that only an agent needs.
const OF_AGENTS: &str = "CODEX_API_KEY";

/// All keys that this process can see. All of them are redacted in every output, whichever model is
/// asked.
#[derive(Debug, Default)]
pub struct Keys {
    known: Vec<Key>,
    /// Key files without a key: where, and why it has no usable key.
    without: Vec<(Source, String)>,
    /// Variables that may contain a key, set or not.
    variables: Vec<String>,
}

#[derive(Debug)]
struct Key {
    secret: Secret,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Variable(String),
    File {
        path: String,
        whose: String,
    },
    /// In the program itself: the demo's.
    Program,
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
        let files = Files::read(root, environment).ok();
        let settings = files.map(|files| files.settings(environment, Layer::default()).settings);
        let own = settings
            .iter()
            .flat_map(|settings| &settings.providers)
            .map(|own| &own.value);
        let of_providers = Provider::all_built_in()
            .iter()
            .chain(own)
            .flat_map(|provider| &provider.key_env);
        let mut variables: Vec<String> = Vec::new();
        for name in of_providers.map(String::as_str).chain([OF_AGENTS]) {
            // Several providers may share a key.
            if !variables.iter().any(|known| known == name) {
                variables.push(name.to_owned());
            }
        }
        let from_environment = variables.iter().filter_map(|name| {
            let secret = Secret::new(environment.text(name)?);
            Some(Key {
                secret,
                source: Source::Variable(name.clone()),
            })
        });
        let mut known: Vec<_> = from_environment.collect();
        // S0 keeps its key at the root.
        let files = key_files(&root.join(AGENT_CONFIG))
            .into_iter()
            .chain(files_at(root));
        let mut without = Vec::new();
        for path in files {
            let source = source_of(root, &path);
            match read_key(&path) {
                Ok(secret) => known.push(Key { secret, source }),
                Err(why) => without.push((source, why)),
            }
        }
        known.retain(|found| !found.secret.is_empty());
        Self {
            known,
            without,
            variables,
        }
    }

    /// One key for every provider that needs one.
    pub fn just(key: Secret) -> Self {
        Self {
            known: vec![Key {
                secret: key,
                source: Source::Program,
            }],
            ..Self::default()
        }
    }

    /// The key for a provider. The environment takes precedence, in the order of the provider's variables.
    pub fn of(&self, provider: &Provider) -> Option<&Secret> {
        self.found_for(provider).map(|found| &found.secret)
    }

    fn found_for(&self, provider: &Provider) -> Option<&Key> {
        let variable = |name: &&String| {
            self.known
                .iter()
                .find(|found| found.source.is_variable(name))
        };
        let rest = || {
            self.known
                .iter()
                .find(|found| found.source.is_file_of(provider))
        };
        provider
            .key_env
            .iter()
            .find_map(|name| variable(&name))
            .or_else(rest)
    }

    /// Where the key for a provider was found, if it cannot be sent in a header: it contains white
    /// space or unprintable characters.
    pub fn unsendable(&self, provider: &Provider) -> Option<String> {
        let key = self.found_for(provider)?;
        let sendable = key.secret.expose().chars().all(|c| c.is_ascii_graphic());
        (!sendable).then(|| key.source.to_string())
    }

    /// The key file of a provider that contains no key, and why.
    pub fn without(&self, provider: &Provider) -> Option<String> {
        let (source, why) = self
            .without
            .iter()
            .find(|(source, _)| source.is_file_of(provider))?;
        Some(format!("{source} {why}"))
    }

    /// Every key in plain text, for the redactor.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|found| found.secret.expose())
    }

    /// Every key, redacted, with the first of `providers` that it is for and where it was found.
    pub fn found<'k>(
        &'k self,
        providers: &'k [&Provider],
    ) -> impl Iterator<Item = (Option<&'k str>, &'k Secret, String)> {
        self.known.iter().map(|found| {
            let is_its = |provider: &&&Provider| {
                found.source.is_file_of(provider)
                    || provider
                        .key_env
                        .iter()
                        .any(|name| found.source.is_variable(name))
            };
            let whose = providers
                .iter()
                .find(is_its)
                .map(|provider| provider.name.as_str());
            (whose, &found.secret, found.source.to_string())
        })
    }

    /// Whether this variable contains a key.
    pub fn is_variable(&self, name: &OsStr) -> bool {
        self.variables.iter().any(|known| name == known.as_str())
    }
}

impl Source {
    fn is_variable(&self, name: &str) -> bool {
        matches!(self, Self::Variable(variable) if variable == name)
    }

    fn is_file_of(&self, provider: &Provider) -> bool {
        match self {
            Self::Variable(_) => false,
            Self::File { whose, .. } => whose == provider.key_file(),
            Self::Program => true,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Variable(name) => name,
            Self::File { path, .. } => path,
            Self::Program => "the program",
        })
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

/// Where keys may be, relative to the root: a folder and the files at the root.
pub fn places() -> Vec<String> {
    std::iter::once(format!("{AGENT_CONFIG}/"))
        .chain(names_at_root())
        .collect()
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

fn source_of(root: &Path, path: &Path) -> Source {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let whose = name.strip_suffix(KEY_FILE).unwrap_or_default().to_owned();
    Source::File {
        path: path
            .strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string(),
        whose,
    }
}

/// The key in a file, which must be a small regular file; or why there is none.
fn read_key(path: &Path) -> Result<Secret, String> {
    let bytes = code_commit_dir::read(path, LARGEST_KEY_FILE, code_commit_dir::Links::Followed)
        .map_err(|error| format!("cannot be read: {error}"))?
        .ok_or("is no small file")?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    // Some editors write a byte order mark first.
    let secret = Secret::new(text.trim_start_matches('\u{feff}'));
    if secret.is_empty() {
        Err("is empty".to_owned())
    } else {
        Ok(secret)
    }
}
