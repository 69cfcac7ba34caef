#![doc = include_str!("../README.md")]

mod failure;
mod finish;
mod reply;
mod request;

use std::sync::Arc;

use code_commit_llm::http::{BaseUrl, Head, Post};
use code_commit_llm::{Dialect, Stream};

pub use code_commit_llm::prelude::*;

/// One Gemini model.
#[derive(Debug)]
pub struct Gemini {
    base: BaseUrl,
    id: ModelId,
    key: Secret,
}

impl Dialect for Gemini {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn post(&self, request: &Request<'_>, continuation: Option<&str>) -> Result<Post, CallError> {
        let (method, query) = if request.stream {
            ("streamGenerateContent", "?alt=sse")
        } else {
            ("generateContent", "")
        };
        let body = request::Body::of(request, continuation);
        Ok(Post {
            body: Arc::new(code_commit_llm::json::body(&body)?),
            ..self.address(&format!(":{method}{query}"))
        })
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
        let body = request::Count::of(self.id.name(), request);
        Ok(Some(Post {
            body: Arc::new(code_commit_llm::json::body(&body)?),
            ..self.address(":countTokens")
        }))
    }

    fn read_count(&self, body: &[u8]) -> Result<u64, CallError> {
        reply::read_count(body)
    }

    /// The model's description, which is free.
    fn describe(&self) -> Option<Post> {
        Some(self.address(""))
    }
}

impl Gemini {
    /// A model of the service at `base`, which is an origin: the version is added here.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self { base, id, key }
    }

    fn address(&self, method: &str) -> Post {
        Post {
            url: self
                .base
                .join(&format!("/v1beta/models/{}{method}", self.id.name())),
            headers: vec![("content-type", "application/json".into())],
            key: Some(("x-goog-api-key", self.key.clone())),
            body: Arc::default(),
        }
    }
}
