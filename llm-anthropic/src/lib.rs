#![doc = include_str!("../README.md")]

mod failure;
mod reply;
mod request;

use std::sync::Arc;

use code_commit_llm::http::{BaseUrl, Head, Post};
use code_commit_llm::{Answer, Dialect, Stream, Unread};

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
    base: BaseUrl,
    id: ModelId,
    key: Secret,
    max_output: u64,
}

impl Anthropic {
    /// A model of the service at `base`, which is an origin: the version is added here. Servers on this machine need
    /// no key.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self {
            base,
            id,
            key,
            max_output: USUAL_OUTPUT,
        }
    }

    /// Limits a reply to this many tokens.
    #[must_use]
    pub fn with_max_output(self, max_output: u64) -> Self {
        Self { max_output, ..self }
    }

    /// More than the model can write is an error.
    fn limit(&self, request: &Request<'_>) -> u64 {
        request
            .max_output_tokens
            .map_or(self.max_output, |most| most.min(self.max_output))
    }

    fn address(&self, path: &str) -> Post {
        Post {
            url: self.base.join(path),
            headers: vec![
                ("content-type", "application/json".into()),
                ("anthropic-version", VERSION.into()),
            ],
            key: (!self.key.is_empty()).then(|| ("x-api-key", self.key.clone())),
            body: Arc::default(),
        }
    }
}

impl Dialect for Anthropic {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let body = request::Body::of(self.id.name(), request, self.limit(request));
        Ok(Post {
            body: Arc::new(code_commit_llm::json::body(&body)?),
            ..self.address("/v1/messages")
        })
    }

    fn read(
        &self,
        body: Vec<u8>,
        request: &Request<'_>,
        _: Option<&str>,
    ) -> Result<Answer, Unread> {
        code_commit_llm::in_one_piece(body, Some(self.limit(request)), self.stream(), None)
    }

    fn stream(&self) -> Box<dyn Stream> {
        Box::new(reply::Merge::new(
            self.id.name().to_owned(),
            self.key.clone(),
        ))
    }

    fn failure(&self, head: &Head, body: &[u8]) -> CallError {
        failure::of(head, body, self.id.name(), &self.key)
    }

    fn count(&self, request: &Request<'_>) -> Result<Option<Post>, CallError> {
        let body = code_commit_llm::json::body(&request::Counted::of(self.id.name(), request))?;
        Ok(Some(Post {
            body: Arc::new(body),
            ..self.address("/v1/messages/count_tokens")
        }))
    }

    fn read_count(&self, body: &[u8]) -> Result<u64, CallError> {
        reply::read_count(body)
    }

    /// The model's description, which is free.
    fn describe(&self) -> Option<Post> {
        Some(self.address(&format!("/v1/models/{}", self.id.name())))
    }
}
