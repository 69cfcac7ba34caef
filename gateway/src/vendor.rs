//! The vendors, and what may be asked of them.

use code_commit_llm::http::BaseUrl;
use code_commit_llm::{Dialect, ModelId, Provider, Secret};
use code_commit_llm_anthropic::Anthropic;
use code_commit_llm_gemini::Gemini;
use code_commit_llm_openai::{OpenAi, Responses};

/// The providers whose dialects have paths of their own, so that a request says by its path which one it is for.
pub(crate) const VENDORS: [&str; 3] = ["gemini", "anthropic", "openai"];

/// A vendor with its key.
#[derive(Debug, Clone)]
pub(crate) struct Vendor {
    pub(crate) provider: &'static Provider,
    pub(crate) base: BaseUrl,
    key: Secret,
}

/// The wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gemini,
    Anthropic,
    Chat,
    Responses,
}

/// A path that a client of the product asks for, below the address that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'t> {
    pub(crate) format: Format,
    /// Whether it is answered without billing: counting tokens, describing a model.
    pub(crate) is_free: bool,
    /// In formats that have it in the path.
    pub(crate) model: Option<&'t str>,
}

impl Vendor {
    /// A provider of the product's table, at `base` if that is not its own address.
    pub(crate) fn new(
        provider: &'static Provider,
        base: Option<&str>,
        key: &str,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            provider,
            base: base.unwrap_or(&provider.base_url).parse()?,
            key: Secret::new(key),
        })
    }

    pub(crate) fn dialect(&self, format: Format, model: &ModelId) -> Box<dyn Dialect> {
        let (base, model, key) = (self.base.clone(), model.clone(), self.key.clone());
        match format {
            Format::Gemini => Box::new(Gemini::new(base, model, key)),
            // The limit of an answer is the question's.
            Format::Anthropic => {
                Box::new(Anthropic::new(base, model, key).with_max_output(u64::MAX))
            }
            Format::Chat => Box::new(OpenAi::new(base, model, key)),
            Format::Responses => Box::new(Responses::new(base, model, key)),
        }
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

    /// The fields that a body may have, at any depth: those that the product's clients send. Others can cost what no reservation
    /// covers: files and earlier answers by their names, tools of the vendor's own, faster tiers, longer caches.
    pub(crate) fn fields(self) -> &'static str {
        match self {
            Self::Gemini => {
                "contents systemInstruction generationConfig role parts text temperature maxOutputTokens \
                 responseMimeType responseJsonSchema continuationToken generateContentRequest model"
            }
            Self::Anthropic => {
                "model system messages role content type text cache_control max_tokens temperature stream \
                 output_config format schema"
            }
            Self::Chat => {
                "model messages role content temperature max_completion_tokens max_tokens stream \
                 response_format type json_schema name strict schema stream_options include_usage"
            }
            Self::Responses => {
                "model instructions input temperature max_output_tokens text format type name strict schema \
                 store stream"
            }
        }
    }
}

impl<'t> Target<'t> {
    /// `target` is path and query as they will be sent. Nothing is decoded, and a path that is not listed is refused: a method
    /// that is unknown here could be billed in ways that no reservation covers.
    pub(crate) fn read(target: &'t str) -> Option<Self> {
        let (format, is_free, model) = match target {
            "/v1/messages" => (Format::Anthropic, false, None),
            "/v1/messages/count_tokens" => (Format::Anthropic, true, None),
            "/chat/completions" => (Format::Chat, false, None),
            "/responses" => (Format::Responses, false, None),
            _ => {
                if let Some(model) = target.strip_prefix("/v1/models/") {
                    (Format::Anthropic, true, Some(model))
                } else {
                    let rest = target.strip_prefix("/v1beta/models/")?;
                    let (model, method) = rest.split_once(':').unwrap_or((rest, ""));
                    let is_free = match method {
                        "generateContent" | "streamGenerateContent?alt=sse" => false,
                        "countTokens" | "" => true,
                        _ => return None,
                    };
                    (Format::Gemini, is_free, Some(model))
                }
            }
        };
        Some(Self {
            format,
            is_free,
            model,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_listed_is_refused() {
        for target in [
            "/v1/messages/batches",
            "/v1/messages?beta=true",
            "/v1beta/models/gemini-2.5-pro:predict",
            "/v1beta/models/gemini-2.5-pro:generateContent?key=x",
            "/chat/completions/",
            "",
        ] {
            assert_eq!(Target::read(target), None, "{target}");
        }
    }
}
