//! The CLI for a model, and its key.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use code_commit_agent::{Installed, Key, Kind};
use code_commit_engine::Agents;
use code_commit_settings::Environment;
use code_commit_settings::keys::DOT_ENV;

use crate::agents::numbers;
use crate::exit::Failure;
use crate::phase::folders::read;
use crate::trusted::Trusted;

/// Variables about the network path to a service, passed to a CLI like those of proxies: they hold no model's
/// key.
const PASSED: [&str; 5] = [
    "GOOGLE_GEMINI_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub cli: Installed,
    /// The model's name as the program expects it.
    pub model: String,
    pub key: Key,
}

/// A model's CLI and name, from `claude/NAME` or a bare name whose provider is obvious. All other names go to
/// Gemini CLI.
pub(crate) fn kind_of(model: &str) -> (Kind, &str) {
    let kinds = [
        ("gemini", Kind::Gemini),
        ("claude", Kind::Claude),
        ("codex", Kind::Codex),
    ];
    if let Some((prefix, name)) = model.split_once('/')
        && let Some((_, kind)) = kinds.iter().find(|(own, _)| *own == prefix)
    {
        return (*kind, name);
    }
    let begins = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    match model {
        _ if begins(&["claude", "opus", "sonnet", "haiku"]) => (Kind::Claude, model),
        _ if begins(&["gpt-", "codex"]) => (Kind::Codex, model),
        _ => (Kind::Gemini, model),
    }
}

/// Finds program and key, or reports what is missing.
pub(crate) fn choose(model: &str, secrets: &Secrets, trusted: &Trusted) -> Result<Chosen, Failure> {
    let (kind, name) = kind_of(model);
    if name.is_empty() {
        return Err(Failure::refused(
            anyhow!("a model has no name"),
            "name them with commas between: -b NAME,NAME",
        ));
    }
    let cli = trusted.agent(kind)?;
    let variable = kind.key_variable();
    // The user's own key takes precedence: a cloned project may contain one, whose owner would then see the
    // prompts.
    let key = trusted
        .environment()
        .text(variable)
        .or_else(|| secrets.get(variable))
        .ok_or_else(|| {
            Failure::refused(
                anyhow!("there is no key for {}", kind.name()),
                format!("put a line {variable}=… into {DOT_ENV}"),
            )
        })?;
    Ok(Chosen {
        cli,
        model: name.to_owned(),
        key: Key::new(variable, key),
    })
}

/// Those who work in a role: the first one, then the others and those for repairs.
pub(crate) struct Crew {
    pub first: Chosen,
    pub others: Vec<Chosen>,
    pub numbers: Agents,
}

impl Crew {
    /// From lists of models with commas between.
    pub(crate) fn choose(
        models: &str,
        stronger: Option<&str>,
        secrets: &Secrets,
        trusted: &Trusted,
    ) -> Result<Self, Failure> {
        let all = |models: &str| {
            models
                .split(',')
                .map(|model| choose(model.trim(), secrets, trusted))
                .collect::<Result<Vec<_>, _>>()
        };
        let (mut others, stronger) = (
            all(models)?,
            stronger.map(all).transpose()?.unwrap_or_default(),
        );
        let first = others.remove(0);
        let numbers = numbers(&others, stronger.len());
        others.extend(stronger);
        Ok(Self {
            first,
            others,
            numbers,
        })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Chosen> {
        [&self.first].into_iter().chain(&self.others)
    }
}

pub(crate) fn passed(environment: &Environment) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let value = |name: &str| {
        environment
            .text(name)
            .map(|value| (name.into(), value.into()))
    };
    passed_names().filter_map(value).collect()
}

fn passed_names() -> impl Iterator<Item = &'static str> {
    PASSED
        .into_iter()
        .chain(code_commit_llm::http::PROXY_VARIABLES)
}

/// `.env` of a project. Only a CLI's own key is passed on.
#[derive(Default)]
pub(crate) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Reads the file; empty if there is none.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        Ok(Self(parse(&read(&root.join(DOT_ENV))?.unwrap_or_default())))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Every value whose name marks it as secret, for the redactor.
    pub(crate) fn exposed(&self) -> impl Iterator<Item = &str> {
        let is_secret = |name: &str| {
            ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"]
                .iter()
                .any(|word| name.to_uppercase().contains(word))
        };
        self.0
            .iter()
            .filter(move |(name, _)| is_secret(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A line that is no setting is left out.
fn parse(text: &str) -> BTreeMap<String, String> {
    dotenvy::from_read_iter(text.as_bytes()).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_asked_through_its_makers_cli() {
        assert_eq!(
            kind_of("gemini-3.8-flash"),
            (Kind::Gemini, "gemini-3.8-flash")
        );
        assert_eq!(kind_of("claude/opus"), (Kind::Claude, "opus"));
        assert_eq!(
            kind_of("claude-opus-5-5"),
            (Kind::Claude, "claude-opus-5-5")
        );
        assert_eq!(kind_of("codex/gpt-6"), (Kind::Codex, "gpt-6"));
        assert_eq!(kind_of("my-own"), (Kind::Gemini, "my-own"));
    }

    #[test]
    fn a_cli_goes_the_way_that_the_models_are_reached_by() {
        let names: Vec<_> = passed_names().collect();
        for name in [
            "ALL_PROXY",
            "all_proxy",
            "http_proxy",
            "HTTPS_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
        ] {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_dot_env_file_is_read_as_its_users_write_it() {
        let read = parse(
            "# c\nexport A = 'x y'\nB=\"q=1\"\nC=v # note\nnothing\nGEMINI_API_KEY=\"abc\" # mine\n",
        );
        let list: Vec<_> = read
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(list, ["A=x y", "B=q=1", "C=v", "GEMINI_API_KEY=abc"]);
    }
}
