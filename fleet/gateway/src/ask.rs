//! A program's request to a model, and the most that it can cost.

use code_commit_fleet_store::Nanodollars;
use code_commit_llm::{Day, ModelId, Price, Prices, Usage};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::service::{Format, Kind, Path, Service};

/// A request to a vendor.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) format: Format,
    pub(crate) model: ModelId,
    /// Whether it is answered without billing: counting tokens, describing a model.
    pub(crate) is_free: bool,
    /// Of path and body, in hex.
    pub(crate) sha256: String,
    /// The most tokens that the answer may have, if the request says so.
    pub(crate) max_output: Option<u64>,
    /// `None` if nobody knows.
    pub(crate) most: Option<Nanodollars>,
}

/// The fields of a body that matter for money. Each format has its own names, and none uses another's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    model: Option<String>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    // Gemini takes either spelling.
    #[serde(rename = "generationConfig", alias = "generation_config")]
    generation_config: Option<GenerationConfig>,
    n: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
    #[serde(alias = "candidate_count")]
    candidate_count: Option<u64>,
}

impl Body {
    fn max_output(&self) -> Option<u64> {
        let config = self
            .generation_config
            .as_ref()
            .and_then(|config| config.max_output_tokens);
        [
            self.max_tokens,
            self.max_completion_tokens,
            self.max_output_tokens,
            config,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

impl Question {
    /// `None` if the body does not belong to the path, or neither says which model it is for.
    pub(crate) fn read(path: &Path<'_>, service: &Service, body: &[u8]) -> Option<Self> {
        // Without a body it is sent as a GET.
        if body.is_empty() != (path.kind == Kind::Description) {
            return None;
        }
        let fields: Body = if body.is_empty() {
            Body::default()
        } else {
            serde_json::from_slice(body).ok()?
        };
        let model = service
            .model(path.model.or(fields.model.as_deref())?)
            .ok()?;
        let mut hash = Sha256::new();
        hash.update(path.without_query);
        hash.update([0]);
        hash.update(body);
        let sha256 = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let most =
            price_of(&model).and_then(|price| most(&price, service, &fields, body.len() as u64));
        let (is_free, max_output) = (path.kind != Kind::Answer, fields.max_output());
        Some(Self {
            format: path.format,
            model,
            is_free,
            sha256,
            max_output,
            most,
        })
    }
}

/// No tokenizer makes more tokens than there are bytes.
fn most(price: &Price, service: &Service, body: &Body, bytes: u64) -> Option<Nanodollars> {
    let output = body
        .max_output()
        .or(price.max_output)
        .or(service.provider.max_output)?;
    let candidates = body
        .generation_config
        .as_ref()
        .and_then(|config| config.candidate_count);
    let answers = body.n.or(candidates).unwrap_or(1);
    let plain = Usage {
        input_tokens: Some(bytes),
        output_tokens: Some(output.saturating_mul(answers)),
        ..Usage::default()
    };
    // Writing to a cache may cost more than not to.
    let cached = Usage {
        cache_write_tokens: Some(bytes),
        ..plain
    };
    let usd = price
        .cost(&plain)?
        .as_usd()
        .max(price.cost(&cached)?.as_usd());
    Nanodollars::from_usd(usd)
}

/// Today's price, of the model that was asked.
pub(crate) fn price_of(model: &ModelId) -> Option<Price> {
    priced(model, None)
}

/// The cost of an answer, at the price of the model that served it.
pub(crate) fn cost(model: &ModelId, served: Option<&str>, usage: &Usage) -> Option<Nanodollars> {
    Nanodollars::from_usd(priced(model, served)?.cost(usage)?.as_usd())
}

fn priced(model: &ModelId, served: Option<&str>) -> Option<Price> {
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .to_string();
    let today = Day::try_from(today).ok()?;
    Prices::built_in().of(model, served, &today).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(target: &str, body: &str) -> Option<Question> {
        let path = Path::read(target)?;
        let service = Service::new(path.format.provider(), None, "key").unwrap();
        Question::read(&path, &service, body.as_bytes())
    }

    fn most_usd(path: &str, body: &str) -> Option<String> {
        question(path, body)?
            .most
            .map(|most| format!("{:.7}", most.as_usd()))
    }

    #[test]
    fn each_format_names_model_and_limit_in_its_own_way() {
        let gemini = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
        let limited = r#"{"generationConfig":{"maxOutputTokens":1000000}}"#;
        // 10 dollars a million of output, 1.25 a million of input.
        assert_eq!(most_usd(gemini, limited).as_deref(), Some("10.0000600"));
        assert_eq!(
            most_usd(gemini, "{}").as_deref(),
            Some("0.6553625"),
            "the model's own limit of 65,536 tokens"
        );
        let claude = r#"{"model":"claude-fable-5-1","max_tokens":1000000}"#;
        assert_eq!(
            most_usd("/v1/messages", claude).as_deref(),
            Some("50.0006125"),
            "cache writes cost more"
        );
        for path in ["/chat/completions", "/responses"] {
            let model = question(path, r#"{"model":"gpt-x"}"#).unwrap().model;
            assert_eq!(
                (model.provider(), model.name()),
                ("openai", "gpt-x"),
                "{path}"
            );
        }
    }

    #[test]
    fn an_unknown_price_is_not_a_price_of_zero() {
        assert_eq!(
            most_usd("/v1beta/models/nobody-knows:generateContent", "{}"),
            None
        );
    }

    #[test]
    fn several_answers_cost_several_times_as_much() {
        let path = "/v1beta/models/gemini-2.5-pro:generateContent";
        let one = question(path, r#"{"generationConfig":{"maxOutputTokens":1000}}"#)
            .unwrap()
            .most
            .unwrap();
        for four in [
            r#"{"generationConfig":{"maxOutputTokens":1000,"candidateCount":4}}"#,
            r#"{"generation_config":{"max_output_tokens":1000,"candidate_count":4}}"#,
        ] {
            assert!(
                question(path, four).unwrap().most.unwrap().0 > 3 * one.0,
                "{four}"
            );
        }
    }

    #[test]
    fn only_what_is_not_billed_is_free() {
        assert!(
            question("/v1beta/models/gemini-2.5-pro:countTokens", "{}")
                .unwrap()
                .is_free
        );
        assert!(
            question("/v1beta/models/gemini-2.5-pro", "")
                .unwrap()
                .is_free
        );
        assert!(
            question(
                "/v1/messages/count_tokens",
                r#"{"model":"claude-fable-5-1"}"#
            )
            .unwrap()
            .is_free
        );
        assert!(question("/v1/models/claude-fable-5-1", "").unwrap().is_free);
        assert!(
            !question("/v1/messages", r#"{"model":"claude-fable-5-1"}"#)
                .unwrap()
                .is_free
        );
    }

    #[test]
    fn the_hash_is_that_of_path_and_body() {
        let sha256 = |path, body| question(path, body).unwrap().sha256;
        let (a, b) = (
            "/v1beta/models/a:generateContent",
            "/v1beta/models/b:generateContent",
        );
        assert_eq!(sha256(a, "{}"), sha256(a, "{}"));
        assert_ne!(sha256(a, "{}"), sha256(b, "{}"));
        assert_ne!(sha256(a, "{}"), sha256(a, "{ }"));
    }

    #[test]
    fn what_is_no_request_of_a_known_format_is_none() {
        for (path, body) in [
            ("/v1/files", "{}"),
            ("/v1/messages", "{}"),
            ("/responses", "no"),
            ("/v1beta/models/", ""),
        ] {
            assert!(question(path, body).is_none(), "{path}");
        }
    }
}
