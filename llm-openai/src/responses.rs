//! The Responses API, for models that have no other.

mod reply;
mod request;

use std::sync::Arc;

use code_commit_llm::http::{BaseUrl, Head, Post};
use code_commit_llm::{CallError, Dialect, ModelId, Request, Secret, Stream};

use crate::{Service, failure};

/// One model that is reached through `responses`. Every prompt is whole: nothing is stored at the service, and no
/// answer refers to an earlier one.
#[derive(Debug)]
pub struct Responses {
    service: Service,
}

impl Responses {
    /// A model of the server at `base`, which includes the version (`…/v1`). Servers on this
    /// machine need no key.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self {
            service: Service { base, id, key },
        }
    }
}

impl Dialect for Responses {
    fn id(&self) -> &ModelId {
        &self.service.id
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let body = request::Body::of(self.service.model(), request);
        Ok(Post {
            body: Arc::new(code_commit_llm::json::body(&body)?),
            ..self.service.address("/responses")
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
        crate::reply::find_model(body, &self.service)
    }
}
