//! What a new service needs: its wire format.

use std::fmt::Debug;

use serde_json::Value;

use crate::collect::{Collect, Event, Names};
use crate::http::{BaseUrl, Post};
use crate::{CallError, Finish, ModelId, Request, Secret};

/// One model of a service, in its wire format. Pure: bytes in, bytes out. This is all that a new service needs.
pub trait Dialect: Debug + Send + Sync {
    /// The model, where it is asked, and with which key.
    fn service(&self) -> &Service;

    /// The HTTP request for `request`.
    fn post(&self, request: &Request<'_>, continuation: Option<&str>) -> Result<Post, CallError>;

    /// The most tokens that the answer to `request` may have, as the service is told.
    fn limit(&self, request: &Request<'_>) -> Option<u64> {
        request.max_output_tokens
    }

    /// Where the service reports what.
    fn names(&self) -> &'static Names;

    /// Reads one event of a stream.
    fn event(&self, json: &[u8]) -> Result<Event, CallError>;

    /// Reads an answer in one piece: one event, unless the service has another form for it.
    fn message(&self, json: &[u8]) -> Result<Event, CallError> {
        self.event(json)
    }

    /// What the service's word for how an answer ended means.
    fn finish(&self, reason: &str, _answer: &Collect<'_>) -> Finish {
        Finish::of_word(reason)
    }

    /// The assembled answer as the service would have sent it in one piece, but for its [`Event::fields`], and with
    /// [`Raw::TEXT`](crate::Raw::TEXT) for its text.
    fn merged(&self, answer: &Collect<'_>) -> Value;

    /// The request that counts the tokens of `request`, if the service can do that without billing, and the name of their
    /// number in its reply.
    fn count(&self, _request: &Request<'_>) -> Result<Option<(Post, &'static str)>, CallError> {
        Ok(None)
    }

    /// The cheapest request that shows whether key and model work, if there is one.
    fn describe(&self) -> Option<Post> {
        None
    }

    /// Whether the reply to [`Dialect::describe`] has the model.
    fn read_description(&self, _body: &[u8]) -> Result<(), CallError> {
        Ok(())
    }
}

/// Which model is asked, where, and with which key.
#[derive(Debug, Clone)]
pub struct Service {
    /// The address that all requests are below.
    pub base: BaseUrl,
    /// The model.
    pub id: ModelId,
    /// Empty if the server needs none.
    pub key: Secret,
}

impl Service {
    /// A request with this body, or a GET without one. `key` is the header that the key is sent in, and what precedes it.
    pub fn post(&self, path: &str, (header, before): (&'static str, &str), body: Vec<u8>) -> Post {
        let key = || Secret::new(&format!("{before}{}", self.key.expose()));
        Post {
            url: self.base.join(path),
            headers: vec![("content-type", "application/json".into())],
            key: (!self.key.is_empty()).then(|| (header, key())),
            body,
        }
    }
}
