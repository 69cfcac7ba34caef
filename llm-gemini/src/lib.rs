#![doc = include_str!("../README.md")]

mod finish;
mod reply;
mod request;

use code_commit_llm::http::{BaseUrl, Post};
use code_commit_llm::{Collect, Dialect, Event, Names, Service, json};
use serde_json::{Value, json};

pub use code_commit_llm::prelude::*;

/// One Gemini model.
#[derive(Debug)]
pub struct Gemini(Service);

impl Gemini {
    /// A model of the service at `base`, which is an origin: the version is added here.
    pub fn new(base: BaseUrl, id: ModelId, key: Secret) -> Self {
        Self(Service { base, id, key })
    }

    fn at(&self, method: &str, body: Vec<u8>) -> Post {
        let path = format!("/v1beta/models/{}{method}", self.0.id.name());
        self.0.post(&path, ("x-goog-api-key", ""), body)
    }
}

impl Dialect for Gemini {
    fn service(&self) -> &Service {
        &self.0
    }

    fn post(&self, request: &Request<'_>, continuation: Option<&str>) -> Result<Post, CallError> {
        let method = if request.stream {
            ":streamGenerateContent?alt=sse"
        } else {
            ":generateContent"
        };
        let body = request::Body::of(request, continuation);
        Ok(self.at(method, json::body(&body)?))
    }

    fn names(&self) -> &'static Names {
        &Names {
            id: "responseId",
            model: "modelVersion",
            input: &[
                "/usageMetadata/promptTokenCount",
                "/usageMetadata/toolUsePromptTokenCount",
            ],
            cache_read: "/usageMetadata/cachedContentTokenCount",
            output: &[
                "/usageMetadata/candidatesTokenCount",
                "/usageMetadata/thoughtsTokenCount",
            ],
            reasoning: "/usageMetadata/thoughtsTokenCount",
            total: "/usageMetadata/totalTokenCount",
            omits_zero: true,
            ..Names::NONE
        }
    }

    fn event(&self, json: &[u8]) -> Result<Event, CallError> {
        reply::event(json)
    }

    fn finish(&self, reason: &str, answer: &Collect<'_>) -> Finish {
        if reply::block_reason(answer.field("promptFeedback")) == Some(reason) {
            let filter = finish::filter(reason);
            return Finish::Blocked { filter };
        }
        finish::of(reason)
    }

    fn merged(&self, answer: &Collect<'_>) -> Value {
        let thought = answer
            .thought()
            .map(|text| json!({"thought": true, "text": text}));
        let parts: Vec<Value> = thought
            .into_iter()
            .chain([json!({"text": Raw::TEXT})])
            .collect();
        let block = reply::block_reason(answer.field("promptFeedback"));
        let reason = answer.reason().filter(|_| block.is_none());
        let content = json!({"role": "model", "parts": parts});
        json!({"candidates": [{"index": 0, "finishReason": reason, "content": content}]})
    }

    fn count(&self, request: &Request<'_>) -> Result<Option<(Post, &'static str)>, CallError> {
        let body = json::body(&request::Count::of(self.0.id.name(), request))?;
        Ok(Some((self.at(":countTokens", body), "totalTokens")))
    }

    /// The model's description, which is free.
    fn describe(&self) -> Option<Post> {
        Some(self.at("", Vec::new()))
    }
}
