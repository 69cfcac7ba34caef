//! What is sent. The stable part comes first, because services cache prefixes.

use code_commit_llm::Request;
use serde::Serialize;
use serde_json::Value;

use crate::switches::{OutputLimit, Switches, SystemRole};

/// The body of `chat/completions`.
#[derive(Debug, Serialize)]
pub(crate) struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Debug, Serialize)]
struct Format<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Debug, Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> Body<'a> {
    pub(crate) fn of(model: &'a str, request: &Request<'a>, switches: Switches) -> Self {
        let role = match switches.system_role {
            SystemRole::Developer => "developer",
            SystemRole::System => "system",
        };
        let system = request.system.map(|content| Message { role, content });
        let user = Message {
            role: "user",
            content: request.prompt,
        };
        let limit = |name| {
            request
                .max_output_tokens
                .filter(|_| switches.max_tokens == name)
        };
        Self {
            model,
            messages: system.into_iter().chain([user]).collect(),
            temperature: request.temperature,
            max_completion_tokens: limit(OutputLimit::MaxCompletionTokens),
            max_tokens: limit(OutputLimit::MaxTokens),
            response_format: request.schema.map(format),
            stream: request.stream,
            // Otherwise a stream does not report usage.
            stream_options: request.stream.then_some(StreamOptions {
                include_usage: true,
            }),
        }
    }
}

fn format(schema: &Value) -> Format<'_> {
    Format {
        r#type: "json_schema",
        json_schema: NamedSchema {
            name: "answer",
            strict: true,
            schema,
        },
    }
}
