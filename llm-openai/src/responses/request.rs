//! What is sent. The stable part comes first, because the service caches prefixes.

use code_commit_llm::Request;
use serde::Serialize;
use serde_json::Value;

/// The body of `responses`.
#[derive(Debug, Serialize)]
pub(crate) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    /// By default the service keeps prompts and answers.
    store: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Debug, Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Debug, Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> Body<'a> {
    pub(crate) fn of(model: &'a str, request: &Request<'a>) -> Self {
        let format = |schema| Format {
            r#type: "json_schema",
            name: "answer",
            strict: true,
            schema,
        };
        Self {
            model,
            instructions: request.system,
            input: request.prompt,
            temperature: request.temperature,
            max_output_tokens: request.max_output_tokens,
            text: request.schema.map(|schema| Text {
                format: format(schema),
            }),
            store: false,
            stream: request.stream,
        }
    }
}
