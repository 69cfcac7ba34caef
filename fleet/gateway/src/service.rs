//! The vendors.

use std::fmt;

use code_commit_llm::http::{BaseUrl, BaseUrlError};
use code_commit_llm::{Dialect, ModelId, ModelIdError, Provider, Secret};
use code_commit_llm_anthropic::Anthropic;
use code_commit_llm_gemini::Gemini;
use code_commit_llm_openai::{OpenAi, Responses};

/// A vendor with its key.
#[derive(Debug, Clone)]
pub struct Service {
    pub(crate) provider: &'static Provider,
    pub(crate) base: BaseUrl,
    key: Secret,
}

/// Why there is no such vendor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The product's table does not have it.
    #[error("there is no provider `{0}`")]
    Unknown(String),
    /// Its address is none.
    #[error("the address of {0} cannot be used")]
    Address(String, #[source] BaseUrlError),
}

/// The wire formats. Each has paths of its own, so a request says by its path which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gemini,
    Anthropic,
    Chat,
    Responses,
}

impl Service {
    /// A provider of the product's table, at `base` if that is not its own address.
    pub fn new(provider: &str, base: Option<&str>, key: &str) -> Result<Self, ServiceError> {
        let found = Provider::built_in(provider).ok_or_else(|| ServiceError::Unknown(provider.to_owned()))?;
        let base = base.unwrap_or(&found.base_url).parse();
        let base = base.map_err(|error| ServiceError::Address(provider.to_owned(), error))?;
        Ok(Self { provider: found, base, key: Secret::new(key) })
    }

    /// Reader and writer of its wire format.
    pub(crate) fn dialect(&self, format: Format, model: &ModelId) -> Box<dyn Dialect> {
        let (base, model, key) = (self.base.clone(), model.clone(), self.key.clone());
        match format {
            Format::Gemini => Box::new(Gemini::new(base, model, key)),
            Format::Anthropic => Box::new(Anthropic::new(base, model, key)),
            Format::Chat => Box::new(OpenAi::new(base, model, key)),
            Format::Responses => Box::new(Responses::new(base, model, key)),
        }
    }

    pub(crate) fn model(&self, name: &str) -> Result<ModelId, ModelIdError> {
        ModelId::new(&self.provider.name, name)
    }
}

impl Format {
    /// By the path below the address that the program was given.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path {
            _ if path.starts_with("/v1beta/models/") => Some(Self::Gemini),
            _ if path == "/v1/messages" || path.starts_with("/v1/messages/") => Some(Self::Anthropic),
            "/chat/completions" => Some(Self::Chat),
            "/responses" => Some(Self::Responses),
            _ => None,
        }
    }

    /// The provider's name in the product's table.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::Chat | Self::Responses => "openai",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.provider())
    }
}
