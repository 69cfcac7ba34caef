//! Finds keys: in the environment, in files in `agent-config/`, or (S0) at the root.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use llm::{Provider, Secret};
use names::ours::AGENT_CONFIG;

use crate::Environment;

/// Variables with keys. All of them are redacted in every output, whichever model is asked.
const VARIABLES: [(&str, Option<Provider>); 5] = [
    // Google's own clients prefer the first of the two.
    ("GOOGLE_API_KEY", Some(Provider::Gemini)),
    ("GEMINI_API_KEY", Some(Provider::Gemini)),
    ("OPENAI_API_KEY", Some(Provider::OpenAi)),
    ("ANTHROPIC_API_KEY", None),
    ("CODEX_API_KEY", None),
];

/// All keys that this process can see.
#[derive(Debug, Default)]
pub struct Keys {
    known: Vec<Key>,
    /// Key files without a key.
    without: Vec<Without>,
}

/// A key, its provider, and where it was found.
#[derive(Debug)]
struct Key {
    whose: Option<Provider>,
    secret: Secret,
    source: String,
}

/// A key file without a key.
#[derive(Debug)]
struct Without {
    whose: Option<Provider>,
    /// The file, and why it has no usable key.
    what: String,
}

/// Keys for programs that read this file; a project with phases keeps its secrets here (S3
/// §Environment and Security).
pub const DOT_ENV: &str = ".env";

/// The maximum size of a key file; no key is longer.
const LARGEST_KEY_FILE: u64 = 64 << 10;

impl Keys {
    /// Finds keys in the environment, then in `agent-config/*-key.txt` and at the root. The first
    /// one wins, so the environment takes precedence.
    pub fn find(environment: &Environment, root: &Path) -> Self {
        let from_environment = VARIABLES.iter().filter_map(|(name, provider)| {
            let key = Secret::new(environment.text(name)?);
            Some(Key { whose: *provider, secret: key, source: (*name).to_owned() })
        });
        let mut known: Vec<_> = from_environment.collect();
        // S0 keeps its key at the root.
        let files = key_files(&root.join(AGENT_CONFIG)).into_iter().chain(files_at(root));
        let mut without = Vec::new();
        for path in files {
            match read_key(root, &path) {
                Ok(key) => known.push(key),
                Err(none) => without.push(none),
            }
        }
        known.retain(|found| !found.secret.is_empty());
        Self { known, without }
    }

    /// The same key for every provider that needs one.
    pub fn just(key: Secret) -> Self {
        Self {
            known: vec![Key { whose: Some(Provider::Gemini), secret: key, source: "the program".to_owned() }],
            without: Vec::new(),
        }
    }

    /// The key for a provider.
    pub fn of(&self, provider: Provider) -> Option<&Secret> {
        self.known.iter().find(|found| found.whose == Some(provider)).map(|found| &found.secret)
    }

    /// Where the key for a provider was found, if it cannot be sent in a header: it contains white
    /// space or unprintable characters.
    pub fn unsendable(&self, provider: Provider) -> Option<&str> {
        let key = self.known.iter().find(|found| found.whose == Some(provider))?;
        let sendable = key.secret.expose().chars().all(|c| c.is_ascii_graphic());
        (!sendable).then_some(key.source.as_str())
    }

    /// The key file of a provider that contains no key, and why.
    pub fn without(&self, provider: Provider) -> Option<&str> {
        self.without.iter().find(|none| none.whose == Some(provider)).map(|none| none.what.as_str())
    }

    /// Every key in plain text, for the redactor.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|found| found.secret.expose())
    }

    /// Every key, redacted, with its provider and where it was found.
    pub fn found(&self) -> impl Iterator<Item = (Option<Provider>, &Secret, &str)> {
        self.known.iter().map(|found| (found.whose, &found.secret, found.source.as_str()))
    }
}

/// Whether this variable contains a key.
pub fn is_key_variable(name: &OsStr) -> bool {
    VARIABLES.iter().any(|(known, _)| name == *known)
}

/// What to do if there is no key.
pub fn remedy(provider: Provider) -> String {
    let (variable, file) = match provider {
        Provider::OpenAi => ("OPENAI_API_KEY", "openai-key.txt"),
        Provider::Gemini | Provider::Scripted | Provider::Recorded => ("GEMINI_API_KEY", "gemini-key.txt"),
    };
    format!("set {variable}, or put the key into {AGENT_CONFIG}/{file}")
}

/// The project's paths that a sandbox hides in every loop that works at its root: all places of our
/// keys.
pub fn hidden(root: &Path) -> Vec<PathBuf> {
    files_at(root).chain([root.join(AGENT_CONFIG)]).collect()
}

/// The same for an agent, which has network access: also hides `.env`, which a build may need.
pub fn hidden_from_agents(root: &Path) -> Vec<PathBuf> {
    hidden(root).into_iter().chain([root.join(DOT_ENV)]).collect()
}

/// Where keys may be, relative to the root: a folder and two files.
pub fn places() -> [String; 3] {
    let [gemini, openai] = names_at_root();
    [format!("{AGENT_CONFIG}/"), gemini, openai]
}

/// The two key files that S0 expects at the root.
fn names_at_root() -> [String; 2] {
    [Provider::Gemini, Provider::OpenAi].map(|provider| format!("{}{KEY_FILE}", provider.as_str()))
}

/// Whether a file's name is that of a key file.
pub fn is_key_file(path: &str) -> bool {
    path.ends_with(KEY_FILE)
}

/// The end of a key file's name.
const KEY_FILE: &str = "-key.txt";

/// The existing ones at the root.
fn files_at(root: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = names_at_root().map(|name| root.join(name));
    paths.into_iter().filter(|path| path.symlink_metadata().is_ok())
}

/// `agent-config/gemini-key.txt`, `agent-config/openai-key.txt`, and any other `…-key.txt` there.
fn key_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_key = |path: &PathBuf| path.to_str().is_some_and(is_key_file);
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_key).collect();
    files.sort();
    files
}

/// The key in a file, which must be a small regular file.
fn read_key(root: &Path, path: &Path) -> Result<Key, Without> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let whose = [Provider::Gemini, Provider::OpenAi]
        .into_iter()
        .find(|provider| name.strip_suffix(KEY_FILE) == Some(provider.as_str()));
    let source = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let none = |why: &str| Without { whose, what: format!("{source} {why}") };
    let bytes = dir::read(path, LARGEST_KEY_FILE, dir::Links::Followed)
        .map_err(|error| none(&format!("cannot be read: {error}")))?
        .ok_or_else(|| none("is no small file"))?;
    let text = String::from_utf8(bytes).map_err(|_| none("is not UTF-8"))?;
    // Some editors write a byte order mark first.
    let secret = Secret::new(text.trim_start_matches('\u{feff}'));
    if secret.is_empty() {
        return Err(none("is empty"));
    }
    Ok(Key { whose, secret, source })
}
