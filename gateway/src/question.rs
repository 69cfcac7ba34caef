//! A program's request to a model, and the most that it can cost.

use code_commit_llm::{ModelId, Price, Prices, Usage};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::money::Nanodollars;
use crate::vendor::{Format, Target, Vendor};

/// Tokens of input that a vendor may add to a request by itself, for roles and schemas.
const ADDED_TOKENS: u64 = 1000;
/// Values nested deeper than this are refused.
const DEEPEST: usize = 32;

/// A request to a vendor.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) format: Format,
    pub(crate) model: ModelId,
    pub(crate) is_free: bool,
    /// Of path and body.
    pub(crate) sha256: [u8; 32],
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
    #[serde(rename = "generationConfig")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: Option<u64>,
}

impl Question {
    /// Fails if the body does not belong to the path, neither says which model it is for, or its cost has no bound.
    pub(crate) fn read(
        target: &str,
        path: &Target<'_>,
        vendor: &Vendor,
        prices: &Prices,
        body: &[u8],
    ) -> anyhow::Result<Self> {
        let content: Value = if body.is_empty() && path.is_free {
            Value::Null
        } else {
            serde_json::from_slice(body)?
        };
        check(&content, path.format.fields(), DEEPEST)?;
        // The vendor may obey the first one, or the last.
        anyhow::ensure!(
            members_of(&content) == members_of_text(body),
            "the request has a field twice"
        );
        let fields = Option::<Body>::deserialize(&content)?.unwrap_or_default();
        let name = path.model.or(fields.model.as_deref());
        let model = ModelId::new(&vendor.provider.name, name.unwrap_or_default())?;
        let price = price_of(prices, &model, None);
        let max_output = fields.max_output();
        let mut hash = Sha256::new();
        hash.update(target);
        hash.update([0]);
        hash.update(body);
        Ok(Self {
            format: path.format,
            is_free: path.is_free,
            sha256: hash.finalize().into(),
            most: price.and_then(|price| {
                let output = max_output
                    .or(price.max_output)
                    .or(vendor.provider.max_output)?;
                most(price, body.len() as u64 + ADDED_TOKENS, output)
            }),
            max_output,
            model,
        })
    }

    /// The cost of its answer, at the price of the model that served it.
    pub(crate) fn cost(
        &self,
        prices: &Prices,
        served: Option<&str>,
        usage: &Usage,
    ) -> Option<Nanodollars> {
        Nanodollars::of(price_of(prices, &self.model, served)?.cost(usage)?)
    }
}

impl Body {
    fn max_output(&self) -> Option<u64> {
        let config = self.generation_config.as_ref();
        [
            self.max_tokens,
            self.max_completion_tokens,
            self.max_output_tokens,
            config.and_then(|config| config.max_output_tokens),
        ]
        .into_iter()
        .flatten()
        // A request that sets two of them gets what its vendor obeys, which may be either.
        .max()
    }
}

/// Refuses every field that is not listed; what is below a schema is only text to the model.
fn check(value: &Value, fields: &str, depth: usize) -> anyhow::Result<()> {
    anyhow::ensure!(depth > 0, "the request is nested too deeply");
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check(item, fields, depth - 1)),
        Value::Object(object) => object.iter().try_for_each(|(name, value)| {
            anyhow::ensure!(
                fields.split(' ').any(|field| field == name),
                "the gateway cannot bound the cost of a request with `{}`",
                name.escape_debug()
            );
            if matches!(name.as_str(), "schema" | "responseJsonSchema") {
                return Ok(());
            }
            check(value, fields, depth - 1)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// How many members the objects of a valid JSON text have. A parsed object has the last one of each name only.
fn members_of_text(json: &[u8]) -> usize {
    let (mut members, mut is_string, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_string = !is_string,
            b':' if !is_string => members += 1,
            _ => {}
        }
    }
    members
}

fn members_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members_of).sum(),
        Value::Object(object) => object.values().map(|value| 1 + members_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// No tokenizer makes more tokens than there are bytes.
fn most(price: &Price, input: u64, output: u64) -> Option<Nanodollars> {
    let plain = Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    };
    // Writing to a cache may cost more than not to.
    let cached = Usage {
        cache_write_tokens: Some(input),
        ..plain
    };
    // Long prompts have prices of their own, which need not be higher.
    let usages = [plain, cached];
    let costs = usages
        .iter()
        .map(|usage| price.cost(usage).and_then(Nanodollars::of));
    costs.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Today's price of a model.
fn price_of<'p>(prices: &'p Prices, model: &ModelId, served: Option<&str>) -> Option<&'p Price> {
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    prices.of(model, served, today)
}

#[cfg(test)]
mod tests {
    use code_commit_llm::Provider;

    use super::*;

    fn question(target: &str, body: &str) -> anyhow::Result<Question> {
        let path = Target::read(target).unwrap();
        let provider = Provider::built_in(path.format.provider()).unwrap();
        let vendor = Vendor::new(provider, None, "key").unwrap();
        Question::read(target, &path, &vendor, &Prices::built_in(), body.as_bytes())
    }

    fn most(target: &str, body: &str) -> Option<String> {
        Some(question(target, body).unwrap().most?.to_string())
    }

    const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent";

    #[test]
    fn each_format_names_model_and_limit_in_its_own_way() {
        let limited = r#"{"generationConfig":{"maxOutputTokens":1000000}}"#;
        // 10 dollars a million of output, 1.25 a million of input: 48 bytes and what a vendor may add.
        assert_eq!(most(GEMINI, limited).unwrap(), "10.00131");
        // The model's own limit of 65,536 tokens.
        assert_eq!(most(GEMINI, "{}").unwrap(), "0.6566125");
        let claude = r#"{"model":"claude-fable-5-1","max_tokens":1000000}"#;
        // Cache writes cost more.
        assert_eq!(most("/v1/messages", claude).unwrap(), "50.0131125");
        for path in ["/chat/completions", "/responses"] {
            let model = question(path, r#"{"model":"gpt-x"}"#).unwrap().model;
            assert_eq!(model.to_string(), "openai/gpt-x", "{path}");
        }
        // An unknown price is not a price of zero.
        assert_eq!(most(&GEMINI.replace("gemini-2.5", "unknown"), "{}"), None);
    }

    #[test]
    fn a_request_whose_cost_has_no_bound_is_refused() {
        let messages = "/v1/messages";
        let claude = |more: &str| format!(r#"{{"model":"claude-x",{more}}}"#);
        let gpt = |more: &str| format!(r#"{{"model":"gpt-x",{more}}}"#);
        let longer_cache = r#""system":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]"#;
        for (path, body) in [
            ("/chat/completions", gpt(r#""n":100"#)),
            ("/chat/completions", gpt(r#""service_tier":"priority""#)),
            ("/responses", gpt(r#""previous_response_id":"r""#)),
            (messages, claude(r#""tools":[{"type":"web_search"}]"#)),
            (messages, claude(longer_cache)),
            (messages, "{}".to_owned()),
            (
                GEMINI,
                r#"{"contents":[{"parts":[{"fileData":{}}]}]}"#.to_owned(),
            ),
            (GEMINI, r#"{"generation_config":{}}"#.to_owned()),
            (messages, claude(r#""max_tokens":9,"max_tokens":8"#)),
            (messages, claude(r#""max_tokens":9,"max\u005ftokens":8"#)),
            (
                GEMINI,
                r#"{"contents":[{"fileData":{}}],"contents":[]}"#.to_owned(),
            ),
            (GEMINI, String::new()),
        ] {
            assert!(question(path, &body).is_err(), "{body}");
        }
    }

    #[test]
    fn the_hash_is_that_of_path_and_body() {
        let hash = |path, body| question(path, body).unwrap().sha256;
        let other = GEMINI.replace("pro", "flash");
        assert_ne!(hash(GEMINI, "{}"), hash(&other, "{}"));
        assert_ne!(hash(GEMINI, "{}"), hash(GEMINI, "{ }"));
        assert_eq!(hash(GEMINI, "{}"), hash(GEMINI, "{}"));
    }
}
