//! The chat completions API. The stable part of a request comes first, because services cache prefixes.

use code_commit_llm::http::{BaseUrl, Post};
use code_commit_llm::json::{self, Aside, First};
use code_commit_llm::provider::{OutputLimit, SystemRole};
use code_commit_llm::{Collect, Dialect, Event, Fragment, Names, Service};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::switches::Switches;
use crate::{CallError, ModelId, Raw, Request, Secret};

/// One model of a server that speaks the chat dialect.
#[derive(Debug)]
pub struct OpenAi {
    service: Service,
    switches: Switches,
}

impl OpenAi {
    /// A model of the server at `base`, which includes the version (`…/v1`). Servers on this
    /// machine need no key.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        let switches = Switches::of(&base);
        Self {
            service: Service { base, id, key },
            switches,
        }
    }

    /// For a server whose dialect differs from what its address suggests.
    #[must_use]
    pub fn with_switches(self, switches: Switches) -> Self {
        Self { switches, ..self }
    }
}

/// The body of `chat/completions`.
#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

/// A completion, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    #[serde(deserialize_with = "json::each")]
    choices: First<Choice>,
    usage: Aside,
    model: Aside,
    id: Aside,
    created: Aside,
    service_tier: Aside,
    #[serde(deserialize_with = "json::error")]
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    message: Option<Said>,
    delta: Option<Said>,
    finish_reason: Aside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    content: Fragment,
    refusal: Fragment,
}

impl Dialect for OpenAi {
    fn service(&self) -> &Service {
        &self.service
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let role = match self.switches.system_role {
            SystemRole::Developer => "developer",
            SystemRole::System => "system",
        };
        let system = request.system.map(|content| Message { role, content });
        let user = Message {
            role: "user",
            content: request.prompt,
        };
        let limit = |name| {
            let is_its_name = self.switches.max_tokens == name;
            request.max_output_tokens.filter(|_| is_its_name)
        };
        let format = |schema| json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}});
        let body = Body {
            model: self.service.id.name(),
            messages: system.into_iter().chain([user]).collect(),
            temperature: request.temperature,
            max_completion_tokens: limit(OutputLimit::MaxCompletionTokens),
            max_tokens: limit(OutputLimit::MaxTokens),
            response_format: request.schema.map(format),
            stream: request.stream,
            // Otherwise a stream does not report usage.
            stream_options: request.stream.then(|| json!({"include_usage": true})),
        };
        Ok(crate::post(
            &self.service,
            "/chat/completions",
            json::body(&body)?,
        ))
    }

    fn names(&self) -> &'static Names {
        &Names {
            id: "id",
            model: "model",
            tier: "/service_tier",
            input: &["/usage/prompt_tokens"],
            cache_read: "/usage/prompt_tokens_details/cached_tokens",
            cache_write: "/usage/prompt_tokens_details/cache_write_tokens",
            output: &["/usage/completion_tokens"],
            reasoning: "/usage/completion_tokens_details/reasoning_tokens",
            total: "/usage/total_tokens",
            ..Names::NONE
        }
    }

    fn event(&self, json: &[u8]) -> Result<Event, CallError> {
        let chunk: Chunk = json::object(json)?;
        let choice = chunk.choices.0.unwrap_or_default();
        let said = choice.delta.or(choice.message).unwrap_or_default();
        Ok(Event {
            fields: vec![
                ("id", chunk.id),
                ("created", chunk.created),
                ("model", chunk.model),
                ("service_tier", chunk.service_tier),
                ("usage", chunk.usage),
            ],
            reason: choice.finish_reason,
            text: said.content,
            refusal: said.refusal,
            error: chunk.error,
            ..Event::default()
        })
    }

    fn merged(&self, answer: &Collect<'_>) -> Value {
        let message =
            json!({"role": "assistant", "refusal": answer.refusal(), "content": Raw::TEXT});
        let choice = json!({"index": 0, "finish_reason": answer.reason(), "message": message});
        json!({"object": "chat.completion", "choices": [choice]})
    }

    fn describe(&self) -> Option<Post> {
        Some(crate::post(&self.service, "/models", Vec::new()))
    }

    fn read_description(&self, body: &[u8]) -> Result<(), CallError> {
        crate::find_model(body, &self.service)
    }
}
