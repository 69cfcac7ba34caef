//! What is sent. The stable part comes first and is marked, because the service caches only what is marked.

use code_commit_llm::Request;
use serde::Serialize;
use serde_json::{Value, json};

/// A beginning with fewer bytes is not marked: no model caches so little.
const LEAST_TO_CACHE: usize = 2048;

/// The body of `v1/messages`.
#[derive(Debug, Serialize)]
pub(crate) struct Body<'a> {
    #[serde(flatten)]
    asked: Counted<'a>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// What is counted: the body of `v1/messages/count_tokens`.
#[derive(Debug, Serialize)]
pub(crate) struct Counted<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: [Message<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Serialize)]
struct Block<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

impl<'a> Body<'a> {
    pub(crate) fn of(model: &'a str, request: &Request<'a>, max_tokens: u64) -> Self {
        Self {
            asked: Counted::of(model, request),
            max_tokens,
            temperature: request.temperature,
            stream: request.stream,
        }
    }
}

impl<'a> Counted<'a> {
    pub(crate) fn of(model: &'a str, request: &Request<'a>) -> Self {
        let (stable, rest) = request.stable_and_rest();
        // The service refuses empty blocks.
        let blocks = [Block::cached(stable), Block::of(rest)].into_iter();
        let content = blocks.filter(|block| !block.text.is_empty()).collect();
        Self {
            model,
            system: request.system.map(|text| [Block::cached(text)]),
            messages: [Message {
                role: "user",
                content,
            }],
            output_config: request
                .schema
                .map(|schema| json!({"format": {"type": "json_schema", "schema": schema}})),
        }
    }
}

impl<'a> Block<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            r#type: "text",
            text,
            cache_control: None,
        }
    }

    /// Marked as the end of what later calls repeat. Writing to the cache costs more than plain input, which
    /// pays from the second call on.
    fn cached(text: &'a str) -> Self {
        let is_worth_it = text.len() >= LEAST_TO_CACHE;
        let cache_control = is_worth_it.then(|| json!({"type": "ephemeral"}));
        Self {
            cache_control,
            ..Self::of(text)
        }
    }
}
