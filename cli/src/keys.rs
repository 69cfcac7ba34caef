//! Where keys come from: the environment, or files in `agent-config/`, or (S0) at the root.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use llm::{Provider, Secret};

use crate::environment::Environment;
use crate::preflight::AGENT_CONFIG;

/// Variables that hold keys. All of them are struck out of every output, whichever model is asked.
const VARIABLES: [(&str, Option<Provider>); 4] = [
    // Google's own clients prefer the first of these two.
    ("GOOGLE_API_KEY", Some(Provider::Gemini)),
    ("GEMINI_API_KEY", Some(Provider::Gemini)),
    ("OPENAI_API_KEY", Some(Provider::OpenAi)),
    ("ANTHROPIC_API_KEY", None),
];

/// All keys that this process can see.
#[derive(Debug, Default)]
pub struct Keys {
    known: Vec<Key>,
}

/// A key, whose it is, and where it was found.
#[derive(Debug)]
struct Key {
    whose: Option<Provider>,
    secret: Secret,
    source: String,
}

impl Keys {
    /// Keys of the environment, then those of `agent-config/*-key.txt` and `*-key.txt`, which is what makes the environment win.
    pub fn find(environment: &Environment, root: &Path) -> Self {
        let from_environment = VARIABLES.iter().filter_map(|(name, provider)| {
            let key = Secret::new(environment.text(name)?);
            Some(Key { whose: *provider, secret: key, source: (*name).to_owned() })
        });
        let mut known: Vec<_> = from_environment.collect();
        known.extend(key_files(root, "agent-config/"));
        // S0 keeps its key at the root.
        known.extend(key_files(root, ""));
        known.retain(|found| !found.secret.is_empty());
        Self { known }
    }

    /// One key for every provider that wants one.
    pub fn just(key: Secret) -> Self {
        Self {
            known: vec![Key { whose: Some(Provider::Gemini), secret: key, source: "the program".to_owned() }],
        }
    }

    /// The key for a provider.
    pub fn of(&self, provider: Provider) -> Option<&Secret> {
        self.known.iter().find(|found| found.whose == Some(provider)).map(|found| &found.secret)
    }

    /// Every key as it is, for the redactor.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|found| found.secret.expose())
    }

    /// Every key, as it may be shown, whose it is, and where it was found.
    pub fn found(&self) -> impl Iterator<Item = (Option<Provider>, &Secret, &str)> {
        self.known.iter().map(|found| (found.whose, &found.secret, found.source.as_str()))
    }
}

/// Whether a variable is one of those that hold keys.
pub fn is_key_variable(name: &OsStr) -> bool {
    VARIABLES.iter().any(|(known, _)| name == *known)
}

/// What to do when there is none.
pub fn remedy(provider: Provider) -> String {
    let (variable, file) = match provider {
        Provider::OpenAi => ("OPENAI_API_KEY", "openai-key.txt"),
        Provider::Gemini | Provider::Scripted | Provider::Recorded => ("GEMINI_API_KEY", "gemini-key.txt"),
    };
    format!("set {variable}, or put the key into {AGENT_CONFIG}/{file}")
}

/// `gemini-key.txt`, `openai-key.txt`, and any other `…-key.txt`.
fn key_files(root: &Path, folder: &str) -> Vec<Key> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut keys: Vec<Key> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let whose = path.file_name()?.to_str()?.strip_suffix("-key.txt")?.to_owned();
            let key = Secret::new(&fs::read_to_string(&path).ok()?);
            let provider = [Provider::Gemini, Provider::OpenAi].into_iter().find(|p| p.as_str() == whose);
            Some(Key { whose: provider, secret: key, source: format!("{folder}{whose}-key.txt") })
        })
        .collect();
    keys.sort_by(|a, b| a.source.cmp(&b.source));
    keys
}
