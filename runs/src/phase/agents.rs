//! The agents of a role: a CLI, a model and a key each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::anyhow;
use code_commit_agent::{Key, Kind};
use code_commit_engine::Agents;
use code_commit_perform::Worker;
use code_commit_report::Output;
use code_commit_settings::keys::DOT_ENV;
use code_commit_settings::{Address, Environment, Settings};

use crate::agents::{address, can_be_told, can_keep, numbers};
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

/// The agents of a role: the first one, then those that work where it cannot, then those for repairs.
pub(super) struct RoleAgents {
    pub(super) first: Worker,
    pub(super) others: Vec<Worker>,
    pub(super) numbers: Agents,
}

impl RoleAgents {
    /// The name of the first one's model.
    pub(super) fn model(&self) -> String {
        self.first.model.clone().unwrap_or_default()
    }
}

/// Finds agents: with their programs, keys and limits.
pub(super) struct AgentFinder<'f> {
    pub(super) secrets: &'f Secrets,
    pub(super) trusted: &'f Trusted,
    pub(super) settings: &'f Settings,
    pub(super) base_url: Option<&'f Address>,
    pub(super) output: &'f Output,
}

impl AgentFinder<'_> {
    /// From lists of models with commas between.
    pub(super) fn find(&self, models: &str, stronger: Option<&str>) -> Result<RoleAgents, Failure> {
        let all = |models: &str| -> Result<Vec<_>, _> {
            models
                .split(',')
                .map(|model| self.worker(model.trim()))
                .collect()
        };
        let stronger = stronger.map(all).transpose()?.unwrap_or_default();
        let mut others = all(models)?;
        let first = others.remove(0);
        let numbers = numbers(&others, stronger.len());
        others.extend(stronger);
        Ok(RoleAgents {
            first,
            others,
            numbers,
        })
    }

    /// Finds program and key, or reports what is missing.
    fn worker(&self, model: &str) -> Result<Worker, Failure> {
        let (kind, name) = kind_of(model).ok_or_else(|| {
            let how = "write gemini/NAME, claude/NAME or codex/NAME: a role works through one of these programs";
            Failure::refused(anyhow!("no agent takes the model {model}"), how)
        })?;
        if name.is_empty() {
            return Err(Failure::refused(
                anyhow!("a model has no name"),
                "name them with commas between: -b NAME,NAME",
            ));
        }
        let cli = self.trusted.agent(kind).map_err(|failure| Failure {
            error: failure.error.context(format!("the model {model}")),
            ..failure
        })?;
        let (variable, environment) = (kind.key_variable(), self.trusted.environment());
        // The user's own key takes precedence: a cloned project may contain one, whose owner would then see the
        // prompts.
        let key = environment
            .text(variable)
            .or_else(|| self.secrets.0.get(variable).map(String::as_str))
            .ok_or_else(|| {
                Failure::refused(
                    anyhow!("there is no key for {}", kind.name()),
                    format!("put a line {variable}=… into {DOT_ENV}"),
                )
            })?;
        can_keep(kind, self.settings)?;
        can_be_told(kind, self.base_url, self.output)?;
        Ok(Worker {
            cli,
            model: Some(name.to_owned()),
            extra_env: passed(environment)
                .into_iter()
                .chain(address(kind, self.base_url))
                .collect(),
            key: Some(Key::new(variable, key)),
        })
    }
}

/// A model's CLI and name, from `claude/NAME` or a bare name whose provider is obvious. All other bare names go to
/// Gemini CLI. `None` for the model of another provider.
fn kind_of(model: &str) -> Option<(Kind, &str)> {
    let begins = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    Some(match model.split_once('/') {
        Some(("gemini", name)) => (Kind::Gemini, name),
        Some(("claude", name)) => (Kind::Claude, name),
        Some(("codex", name)) => (Kind::Codex, name),
        Some((provider, _)) if provider != "models" => return None,
        _ if begins(&["claude", "opus", "sonnet", "haiku"]) => (Kind::Claude, model),
        _ if begins(&["gpt-", "codex"]) => (Kind::Codex, model),
        _ => (Kind::Gemini, model),
    })
}

pub(crate) fn passed(environment: &Environment) -> Vec<(OsString, OsString)> {
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
pub(super) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Reads the file; empty if there is none.
    pub(super) fn read(root: &Path) -> Result<Self, Failure> {
        Ok(Self(parse(&read(&root.join(DOT_ENV))?.unwrap_or_default())))
    }

    /// Every value whose name marks it as secret, for the redactor.
    pub(super) fn exposed(&self) -> impl Iterator<Item = &str> {
        let is_secret = |name: &str| {
            let marks = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];
            marks.iter().any(|word| name.to_uppercase().contains(word))
        };
        let secrets = self.0.iter().filter(move |(name, _)| is_secret(name));
        secrets.map(|(_, value)| value.as_str())
    }
}

/// A line that is no setting is left out, and so is one without a value.
fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = dotenvy::from_read_iter(text.as_bytes()).flatten();
    lines.filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_asked_through_its_makers_cli() {
        for (model, kind, name) in [
            ("gemini-3.8-flash", Kind::Gemini, "gemini-3.8-flash"),
            ("models/gemini-3", Kind::Gemini, "models/gemini-3"),
            ("my-own", Kind::Gemini, "my-own"),
            ("claude/opus", Kind::Claude, "opus"),
            ("claude-opus-5-5", Kind::Claude, "claude-opus-5-5"),
            ("codex/gpt-6", Kind::Codex, "gpt-6"),
        ] {
            assert_eq!(kind_of(model), Some((kind, name)), "{model}");
        }
        assert_eq!(kind_of("openai/gpt-6"), None);
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
