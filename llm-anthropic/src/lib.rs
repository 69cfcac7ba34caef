#![doc = include_str!("../README.md")]

mod reply;
mod request;

use code_commit_llm::http::{BaseUrl, Post};
use code_commit_llm::{Collect, Dialect, Event, Names, Service, json};
use serde_json::{Value, json};

pub use code_commit_llm::prelude::*;

/// The version of the API that is asked for. The next one refuses every temperature, and servers of the same
/// dialect know this one.
const VERSION: &str = "2023-06-01";

/// The longest reply that is asked for if nobody limits it: the service wants a limit, and all of its
/// present models can write this much.
const USUAL_OUTPUT: u64 = 64_000;

/// One Anthropic model.
#[derive(Debug)]
pub struct Anthropic {
    service: Service,
    max_output: u64,
}

impl Anthropic {
    /// A model of the service at `base`, which is an origin: the version is added here. Servers on this machine need
    /// no key.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self {
            service: Service { base, id, key },
            max_output: USUAL_OUTPUT,
        }
    }

    /// Limits a reply to this many tokens.
    #[must_use]
    pub fn with_max_output(self, max_output: u64) -> Self {
        Self { max_output, ..self }
    }

    fn at(&self, path: &str, body: Vec<u8>) -> Post {
        let mut post = self.service.post(path, ("x-api-key", ""), body);
        post.headers.push(("anthropic-version", VERSION.into()));
        post
    }
}

impl Dialect for Anthropic {
    fn service(&self) -> &Service {
        &self.service
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let limit = self.limit(request).unwrap_or(self.max_output);
        let body = request::Body::of(self.service.id.name(), request, limit);
        Ok(self.at("/v1/messages", json::body(&body)?))
    }

    /// More than the model can write is an error.
    fn limit(&self, request: &Request<'_>) -> Option<u64> {
        let most = request.max_output_tokens.unwrap_or(u64::MAX);
        Some(most.min(self.max_output))
    }

    /// Plain input, input read from the cache and input written to it are counted apart.
    fn names(&self) -> &'static Names {
        &Names {
            id: "id",
            model: "model",
            tier: "/usage/service_tier",
            input: &[
                "/usage/input_tokens",
                "/usage/cache_read_input_tokens",
                "/usage/cache_creation_input_tokens",
            ],
            cache_read: "/usage/cache_read_input_tokens",
            cache_write: "/usage/cache_creation_input_tokens",
            output: &["/usage/output_tokens"],
            reasoning: "/usage/output_tokens_details/thinking_tokens",
            ..Names::NONE
        }
    }

    fn event(&self, json: &[u8]) -> Result<Event, CallError> {
        reply::event(json)
    }

    fn message(&self, json: &[u8]) -> Result<Event, CallError> {
        reply::message(json)
    }

    fn merged(&self, answer: &Collect<'_>) -> Value {
        let thought = answer
            .thought()
            .map(|text| json!({"type": "thinking", "thinking": text}));
        let text = json!({"type": "text", "text": Raw::TEXT});
        let content: Vec<Value> = thought.into_iter().chain([text]).collect();
        json!({"type": "message", "role": "assistant", "stop_reason": answer.reason(), "content": content})
    }

    fn count(&self, request: &Request<'_>) -> Result<Option<(Post, &'static str)>, CallError> {
        let body = json::body(&request::Counted::of(self.service.id.name(), request))?;
        Ok(Some((
            self.at("/v1/messages/count_tokens", body),
            "input_tokens",
        )))
    }

    /// The model's description, which is free.
    fn describe(&self) -> Option<Post> {
        Some(self.at(
            &format!("/v1/models/{}", self.service.id.name()),
            Vec::new(),
        ))
    }
}
