#![doc = include_str!("../README.md")]

mod failure;
mod finish;
mod reply;
mod request;

use std::sync::Arc;

use llm::http::{Agent, BaseUrl, Head, Post};
use llm::{Answer, CallError, Dialect, Model, ModelId, Reply, Request, Retry, Secret, Stream, Unread, Watch};

/// Where Google serves the API.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// One Gemini model.
#[derive(Debug)]
pub struct Gemini {
    agent: Arc<Agent>,
    retry: Retry,
    wire: Wire,
}

/// Everything but the I/O.
#[derive(Debug)]
struct Wire {
    base: BaseUrl,
    id: ModelId,
    key: Secret,
}

impl Gemini {
    /// A model of the service at `base`, which is an origin: the version is added here.
    pub fn new(agent: Arc<Agent>, base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self { agent, retry: Retry::default(), wire: Wire { base, id, key } }
    }

    /// The same model with other retry rules.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }
}

impl Model for Gemini {
    fn id(&self) -> &ModelId {
        &self.wire.id
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        llm::call(&self.agent, &self.wire, &self.retry, request, watch)
    }

    fn count_tokens(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Option<u64>, CallError> {
        let body = llm::fetch(&self.agent, &self.wire, &self.wire.count(request)?, watch)?;
        reply::read_count(&body).map(Some)
    }

    /// Requests the model's description, which is free.
    fn check(&self, watch: &mut dyn Watch) -> Result<(), CallError> {
        llm::fetch(&self.agent, &self.wire, &self.wire.describe(), watch).map(|_| ())
    }
}

impl Dialect for Wire {
    fn post(&self, request: &Request<'_>, continuation: Option<&str>) -> Result<Post, CallError> {
        let (method, query) =
            if request.stream { ("streamGenerateContent", "?alt=sse") } else { ("generateContent", "") };
        let body = request::Body::of(request, continuation);
        Ok(Post { body: Arc::new(llm::json::body(&body)?), ..self.address(&format!(":{method}{query}")) })
    }

    fn read(&self, body: Vec<u8>, continuation: Option<&str>) -> Result<Answer, Unread> {
        let merge = reply::Merge::new(self.id.name().to_owned(), self.key.clone());
        reply::read(body, merge, continuation)
    }

    fn stream(&self) -> Box<dyn Stream> {
        Box::new(reply::Merge::new(self.id.name().to_owned(), self.key.clone()))
    }

    fn failure(&self, head: &Head, body: &[u8]) -> CallError {
        failure::of(head, body, self.id.name(), &self.key)
    }
}

impl Wire {
    fn count(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let body = request::Count::of(self.id.name(), request);
        Ok(Post { body: Arc::new(llm::json::body(&body)?), ..self.address(":countTokens") })
    }

    fn describe(&self) -> Post {
        self.address("")
    }

    fn address(&self, method: &str) -> Post {
        Post {
            url: self.base.join(&format!("/v1beta/models/{}{method}", self.id.name())),
            headers: vec![("content-type", "application/json".into())],
            key: Some(("x-goog-api-key", self.key.clone())),
            body: Arc::default(),
        }
    }
}
