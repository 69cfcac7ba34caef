//! What is sent. The stable part comes first, because the service caches prefixes.

use code_commit_llm::Request;
use serde::Serialize;
use serde_json::Value;

/// `GenerateContentRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: [Content<'a>; 1],
    #[serde(skip_serializing_if = "Config::is_empty")]
    generation_config: Config<'a>,
}

#[derive(Debug, Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: [Part<'a>; 1],
}

#[derive(Debug, Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation_token: Option<&'a str>,
}

impl Config<'_> {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl<'a> Body<'a> {
    pub(crate) fn of(request: &Request<'a>, continuation: Option<&'a str>) -> Self {
        Self {
            system_instruction: request.system.map(Content::user),
            contents: [Content::user(request.prompt)],
            generation_config: Config {
                temperature: request.temperature,
                max_output_tokens: request.max_output_tokens,
                response_mime_type: request.schema.map(|_| "application/json"),
                response_json_schema: request.schema,
                continuation_token: continuation,
            },
        }
    }
}

impl<'a> Content<'a> {
    fn user(text: &'a str) -> Self {
        Self {
            role: "user",
            parts: [Part { text }],
        }
    }
}

/// `CountTokensRequest`: only its nested form also counts the system instruction.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Count<'a> {
    generate_content_request: Counted<'a>,
}

#[derive(Debug, Serialize)]
struct Counted<'a> {
    model: String,
    #[serde(flatten)]
    body: Body<'a>,
}

impl<'a> Count<'a> {
    pub(crate) fn of(model: &str, request: &Request<'a>) -> Self {
        let body = Body::of(request, None);
        Self {
            generate_content_request: Counted {
                model: format!("models/{model}"),
                body,
            },
        }
    }
}
