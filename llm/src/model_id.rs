//! The name of a model.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Provider;
use crate::provider::SCRIPTED;

/// A model as the user names it: `PROVIDER/NAME`, or a bare name that begins like one provider's
/// names.
///
/// ```
/// use code_commit_llm::ModelId;
/// let id: ModelId = "gemini-3.8-flash".parse()?;
/// assert_eq!(id.provider(), "gemini");
/// assert_eq!(id.to_string(), "gemini/gemini-3.8-flash");
/// # Ok::<(), code_commit_llm::ModelIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModelId {
    provider: String,
    name: String,
}

/// Why a text does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelIdError {
    /// The name is empty, or contains white space or control characters.
    #[error(
        "`{0}` is not a valid model name: it is empty, or it contains a blank or a control character"
    )]
    BadName(String),
    /// The provider does not follow from the name.
    #[error(
        "cannot tell the provider of `{0}`: write it before the name, such as openai/{0}, or write scripted/FILE"
    )]
    UnknownProvider(String),
}

impl FromStr for ModelId {
    type Err = ModelIdError;

    /// The provider may be one of the configuration, which is not known here.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((provider, name)) = text.split_once('/')
            && Provider::is_name(provider)
        {
            return Self::new(provider, name);
        }
        let provider = Provider::of_bare_name(text)
            .ok_or_else(|| ModelIdError::UnknownProvider(text.to_owned()))?;
        Self::new(&provider.name, text)
    }
}

impl ModelId {
    /// A model of `provider`. Paths may contain spaces, names of services may not.
    pub fn new(provider: &str, name: &str) -> Result<Self, ModelIdError> {
        let is_path = provider == SCRIPTED;
        let bad =
            |c: char| c.is_control() || (!is_path && (c.is_whitespace() || "?#%\\".contains(c)));
        let climbs = !is_path && name.split('/').any(|part| matches!(part, "" | "." | ".."));
        // The services of Gemini list their models as `models/NAME`, which is how users copy it.
        let name = match provider {
            "gemini" => name.strip_prefix("models/").unwrap_or(name),
            _ => name,
        };
        if name.is_empty() || climbs || name.contains(bad) {
            return Err(ModelIdError::BadName(name.escape_debug().to_string()));
        }
        Ok(Self {
            provider: provider.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(crate) fn inline_script() -> Self {
        Self {
            provider: SCRIPTED.to_owned(),
            name: "inline".to_owned(),
        }
    }

    /// The name of its provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Whether its answers come from a file: no service is called, and nothing is paid.
    pub fn is_file(&self) -> bool {
        self.provider == SCRIPTED
    }

    /// The name that the service knows, valid in a URL; a path if it is scripted.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

impl From<ModelId> for String {
    fn from(id: ModelId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ModelId {
    type Error = ModelIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) -> String {
        text.parse::<ModelId>()
            .map_or_else(|e| e.to_string(), |id| id.to_string())
    }

    #[test]
    fn a_provider_is_named_or_plain_from_the_name() {
        assert_eq!(check("gemini/g"), "gemini/g");
        assert_eq!(check("gemini/models/g"), "gemini/g");
        assert_eq!(check("my-server/llama"), "my-server/llama");
        assert_eq!(
            check("openai/meta-llama/Llama-4"),
            "openai/meta-llama/Llama-4"
        );
        assert_eq!(check("gpt-6-sol"), "openai/gpt-6-sol");
        assert_eq!(
            check("scripted/my replies.jsonl"),
            "scripted/my replies.jsonl"
        );
        assert_eq!(check("scripted//tmp/a"), "scripted//tmp/a");
    }

    #[test]
    fn a_name_that_would_change_the_address_is_refused() {
        for name in [
            "gemini/",
            "gemini/a?b",
            "gemini/../x",
            "gemini/a b",
            "openai/a//b",
            "gemini/a%2f",
            "gemini/a\n",
        ] {
            assert!(
                check(name).contains("is not a valid model name"),
                "{name}: {}",
                check(name)
            );
        }
        insta::assert_snapshot!(check("llama"), @"cannot tell the provider of `llama`: write it before the name, such as openai/llama, or write scripted/FILE");
    }

    #[test]
    fn an_id_survives_json() {
        let id: ModelId = "openai/m".parse().unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"openai/m\"");
        assert_eq!(serde_json::from_str::<ModelId>(&json).unwrap(), id);
    }
}
