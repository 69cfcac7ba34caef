//! Services as data: the built-in ones are a table, the user's own are values of the same type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::Price;

const BUILT_IN: &str = include_str!("../data/providers.toml");

/// The provider of models that answer from a file.
pub const SCRIPTED: &str = "scripted";

/// A service that models are reached through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// The word before the slash in [`ModelId`](crate::ModelId).
    pub name: String,
    /// The wire format. This crate knows none: the program that opens a model does.
    pub dialect: String,
    /// Where the service is.
    pub base_url: String,
    /// The variable that its own clients read the address from.
    pub base_env: Option<String>,
    /// Variables with the key; the first that is set counts. If there is none, none is needed.
    pub key_env: Vec<String>,
    /// The first part of the key file's name, if it is not that of the provider.
    pub key_file: Option<String>,
    /// Whether a server with another address may need no key.
    pub key_optional: bool,
    /// How bare names of its models begin.
    pub begins: Vec<String>,
    /// The maximum number of tokens of one reply, for models whose price does not say it.
    pub max_output: Option<u64>,
    /// The maximum number of tokens of one prompt, for models whose price does not say it.
    pub window: Option<u64>,
    /// Prices of its models. If `None`, those of the built-in table hold.
    pub prices: Option<Vec<Price>>,
}

/// How a server of the OpenAI dialect names the output limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimit {
    /// `max_completion_tokens`: OpenAI's own models reject the other one.
    MaxCompletionTokens,
    /// `max_tokens`: the only one that many local servers know.
    MaxTokens,
}

/// The role that a server of the OpenAI dialect gives the system instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemRole {
    /// OpenAI's own.
    Developer,
    /// Every other server's.
    System,
}

impl Provider {
    /// The built-in provider with this name.
    pub fn built_in(name: &str) -> Option<&'static Self> {
        Self::all_built_in()
            .iter()
            .find(|provider| provider.name == name)
    }

    /// All built-in providers.
    pub fn all_built_in() -> &'static [Self] {
        static TABLE: LazyLock<Vec<Provider>> = LazyLock::new(|| {
            // A test parses the table, so the default is never used in practice.
            let table: BTreeMap<String, Provider> = toml::from_str(BUILT_IN).unwrap_or_default();
            table
                .into_iter()
                .map(|(name, provider)| Provider { name, ..provider })
                .collect()
        });
        &TABLE
    }

    /// The built-in provider of a bare name, if that is obvious.
    pub(crate) fn of_bare_name(model: &str) -> Option<&'static Self> {
        let is_its =
            |provider: &&Self| provider.begins.iter().any(|begin| model.starts_with(begin));
        Self::all_built_in().iter().find(is_its)
    }

    /// The first part of its key file's name.
    pub fn key_file(&self) -> &str {
        self.key_file.as_deref().unwrap_or(&self.name)
    }

    /// Whether `name` can be that of a provider.
    pub fn is_name(name: &str) -> bool {
        let is_part =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.chars().all(is_part)
    }

    /// Whether a user's own provider may not have this name.
    pub fn is_taken(name: &str) -> bool {
        name == SCRIPTED || Self::built_in(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_can_be_read() {
        let table: BTreeMap<String, Provider> = toml::from_str(BUILT_IN).unwrap();
        for (name, provider) in table {
            assert!(Provider::is_name(&name), "{name}");
            assert!(
                provider.base_url.parse::<crate::http::BaseUrl>().is_ok(),
                "{name}"
            );
            assert!(
                !provider.key_env.is_empty() && !provider.dialect.is_empty(),
                "{name}"
            );
            assert!(Provider::is_taken(&name));
        }
    }

    #[test]
    fn a_providers_name_is_a_plain_word() {
        for good in ["local", "open-router", "vllm_2", "z.ai"] {
            assert!(
                Provider::is_name(good) && !Provider::is_taken(good),
                "{good}"
            );
        }
        for bad in ["", "A", "a b", "-a", "a/b", "ü", "../a"] {
            assert!(!Provider::is_name(bad), "{bad}");
        }
        assert!(Provider::is_taken(SCRIPTED) && Provider::is_taken("gemini"));
    }
}
