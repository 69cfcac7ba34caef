#![doc = include_str!("../README.md")]

mod failure;
mod reply;
mod request;
mod responses;
mod switches;

use std::sync::Arc;

use code_commit_llm::http::{BaseUrl, Head, Post};
use code_commit_llm::{Dialect, Stream};

pub use code_commit_llm::prelude::*;
pub use responses::Responses;
pub use switches::{OutputLimit, Switches, SystemRole};

/// One model of a server that speaks the chat dialect.
#[derive(Debug)]
pub struct OpenAi {
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

impl Dialect for OpenAi {
    fn id(&self) -> &ModelId {
        &self.service.id
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let body = request::Body::of(self.service.model(), request, self.switches);
        Ok(Post {
            body: Arc::new(code_commit_llm::json::body(&body)?),
            ..self.service.address("/chat/completions")
        })
    }

    fn stream(&self) -> Box<dyn Stream> {
        Box::new(reply::Merge::new(self.service.clone()))
    }

    fn failure(&self, head: &Head, body: &[u8]) -> CallError {
        failure::of(head, body, &self.service)
    }

    /// The list of the models, which every server has and none bills.
    fn describe(&self) -> Option<Post> {
        Some(self.service.address("/models"))
    }

    fn read_description(&self, body: &[u8]) -> Result<(), CallError> {
        reply::find_model(body, &self.service)
    }
}

impl Service {
    /// The model, as the server names it.
    fn model(&self) -> &str {
        self.id.name()
    }

    fn address(&self, path: &str) -> Post {
        let Self { base, key, .. } = self;
        let bearer = || Secret::new(&format!("Bearer {}", key.expose()));
        Post {
            url: base.join(path),
            headers: vec![("content-type", "application/json".into())],
            key: (!key.is_empty()).then(|| ("authorization", bearer())),
            body: Arc::default(),
        }
    }
}
