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
        let found = Provider::built_in(provider)
            .ok_or_else(|| ServiceError::Unknown(provider.to_owned()))?;
        let base = base.unwrap_or(&found.base_url).parse();
        let base = base.map_err(|error| ServiceError::Address(provider.to_owned(), error))?;
        Ok(Self {
            provider: found,
            base,
            key: Secret::new(key),
        })
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

/// What is asked of a vendor. Only answers are billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Answer,
    Count,
    Description,
}

/// A path that a client of the product asks for, below the address that the program was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'p> {
    pub(crate) format: Format,
    pub(crate) kind: Kind,
    /// The model's name, in formats that have it in the path.
    pub(crate) model: Option<&'p str>,
    pub(crate) without_query: &'p str,
}

impl<'p> Path<'p> {
    /// `target` is path and query as they will be sent. Nothing is decoded, and what is not listed is refused: a method that
    /// is unknown here could be billed in ways that no reservation covers.
    pub(crate) fn read(target: &'p str) -> Option<Self> {
        let without_query = target.split('?').next()?;
        let (format, kind, model) = match target {
            "/v1/messages" => (Format::Anthropic, Kind::Answer, None),
            "/v1/messages/count_tokens" => (Format::Anthropic, Kind::Count, None),
            "/chat/completions" => (Format::Chat, Kind::Answer, None),
            "/responses" => (Format::Responses, Kind::Answer, None),
            _ => match (
                target.strip_prefix("/v1beta/models/"),
                target.strip_prefix("/v1/models/"),
            ) {
                (Some(rest), _) => {
                    let (kind, model) = gemini(rest)?;
                    (Format::Gemini, kind, Some(model))
                }
                (None, Some(model)) => (Format::Anthropic, Kind::Description, Some(model)),
                (None, None) => return None,
            },
        };
        Some(Self {
            format,
            kind,
            model,
            without_query,
        })
    }
}

/// `MODEL:METHOD`, or a model alone.
fn gemini(rest: &str) -> Option<(Kind, &str)> {
    let Some((model, method)) = rest.split_once(':') else {
        return Some((Kind::Description, rest));
    };
    match method {
        "generateContent" | "streamGenerateContent?alt=sse" => Some((Kind::Answer, model)),
        "countTokens" => Some((Kind::Count, model)),
        _ => None,
    }
}

impl Format {
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
