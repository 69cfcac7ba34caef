#![doc = include_str!("../README.md")]

mod failure;
mod finish;
mod reply;
mod request;
mod switches;

use std::sync::Arc;

use llm::http::{Agent, BaseUrl, Head, Post};
use llm::{Answer, CallError, Dialect, Model, ModelId, Reply, Request, Retry, Secret, Stream, Unread, Watch};

pub use switches::{OutputLimit, Schema, Switches, SystemRole};

/// Where OpenAI serves the API.
pub const BASE_URL: &str = "https://api.openai.com/v1";

/// One model of a server that speaks the chat dialect.
#[derive(Debug)]
pub struct OpenAi {
    agent: Arc<Agent>,
    retry: Retry,
    wire: Wire,
}

/// Everything but the I/O.
#[derive(Debug)]
struct Wire {
    service: Service,
    switches: Switches,
}

/// Which model is asked, where, and with which key.
#[derive(Debug, Clone)]
struct Service {
    base: BaseUrl,
    id: ModelId,
    key: Secret,
}

impl Service {
    /// The model, as the server names it.
    fn model(&self) -> &str {
        self.id.name()
    }
}

impl OpenAi {
    /// A model of the server at `base`, which includes the version (`…/v1`). Servers on this
    /// machine need no key.
    pub fn new(agent: Arc<Agent>, base: BaseUrl, id: ModelId, key: Secret) -> Self {
        let switches = Switches::of(&base);
        Self { agent, retry: Retry::default(), wire: Wire { service: Service { base, id, key }, switches } }
    }

    /// The same model with other retry rules.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The same model on a server that differs from what its address suggests.
    #[must_use]
    pub fn with_switches(mut self, switches: Switches) -> Self {
        self.wire.switches = switches;
        self
    }
}

impl Model for OpenAi {
    fn id(&self) -> &ModelId {
        &self.wire.service.id
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        llm::call(&self.agent, &self.wire, &self.retry, request, watch)
    }

    /// Lists the models, which every server supports and none bills.
    fn check(&self, watch: &mut dyn Watch) -> Result<(), CallError> {
        let body = llm::fetch(&self.agent, &self.wire, &self.wire.address("/models"), watch)?;
        reply::find_model(&body, &self.wire.service)
    }
}

impl Dialect for Wire {
    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let body = request::Body::of(self.service.model(), request, self.switches);
        Ok(Post { body: Arc::new(llm::json::body(&body)?), ..self.address("/chat/completions") })
    }

    fn read(&self, body: Vec<u8>, _continuation: Option<&str>) -> Result<Answer, Unread> {
        reply::read(body, reply::Merge::new(self.service.clone()))
    }

    fn stream(&self) -> Box<dyn Stream> {
        Box::new(reply::Merge::new(self.service.clone()))
    }

    fn failure(&self, head: &Head, body: &[u8]) -> CallError {
        failure::of(head, body, &self.service)
    }
}

impl Wire {
    fn address(&self, path: &str) -> Post {
        let Service { base, key, .. } = &self.service;
        let bearer = || Secret::new(&format!("Bearer {}", key.expose()));
        Post {
            url: base.join(path),
            headers: vec![("content-type", "application/json".into())],
            key: (!key.is_empty()).then(|| ("authorization", bearer())),
            body: Arc::default(),
        }
    }
}
