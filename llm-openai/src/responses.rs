//! The Responses API, for models that have no other. Every prompt is whole: nothing is stored at the service, and no
//! answer refers to an earlier one.

use code_commit_llm::http::{BaseUrl, Post};
use code_commit_llm::json::{self, Aside};
use code_commit_llm::{Collect, Dialect, Event, Fragment, Names, Service, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{CallError, ModelId, Raw, Request, Secret};

/// One model that is reached through `responses`.
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

/// The body of `responses`.
#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    /// By default the service keeps prompts and answers.
    store: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// A response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    id: Aside,
    created_at: Aside,
    service_tier: Aside,
    model: Aside,
    status: Aside,
    incomplete_details: Aside,
    #[serde(deserialize_with = "json::each")]
    output: Output,
    usage: Aside,
    #[serde(deserialize_with = "json::error")]
    error: Value,
}

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Streamed {
    item: Option<Item>,
    response: Option<Response>,
    #[serde(deserialize_with = "json::error")]
    error: Value,
    code: Aside,
    message: Aside,
}

/// Its type, by which its other fields have theirs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kind {
    r#type: Aside,
}

/// More of the text. Thoughts and tool calls have deltas, too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    delta: Fragment,
    text: Fragment,
}

/// An element of `output`: a message, a thought, a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: Aside,
    #[serde(deserialize_with = "json::each")]
    content: Content,
}

/// A part of a message. A thought has parts, too, of another type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    r#type: Aside,
    text: Fragment,
    refusal: Fragment,
}

#[derive(Debug, Default)]
struct Content {
    text: Fragment,
    refusal: Fragment,
}

#[derive(Debug, Default)]
struct Output {
    content: Content,
    called_tool: bool,
}

impl Extend<Part> for Content {
    fn extend<I: IntoIterator<Item = Part>>(&mut self, parts: I) {
        for part in parts {
            match part.r#type.as_str() {
                Some("output_text") => self.text.extend(part.text),
                Some("refusal") => self.refusal.extend(part.refusal),
                _ => {}
            }
        }
    }
}

impl Extend<Item> for Output {
    fn extend<I: IntoIterator<Item = Item>>(&mut self, items: I) {
        for item in items {
            self.called_tool |= item.is_tool();
            if *item.r#type == "message" {
                self.content.text.extend(item.content.text);
                self.content.refusal.extend(item.content.refusal);
            }
        }
    }
}

impl Item {
    fn is_tool(&self) -> bool {
        self.r#type
            .as_str()
            .is_some_and(|kind| kind.ends_with("_call"))
    }
}

impl Response {
    /// The reason is the service's word for why it is incomplete, else its status, unless that is one of an open response.
    fn into_event(self) -> Event {
        let why = self
            .incomplete_details
            .get("reason")
            .filter(|why| why.is_string());
        let is_open = matches!(self.status.as_str(), Some("queued" | "in_progress"));
        let reason = match why {
            Some(why) => Aside(why.clone()),
            None if is_open => Aside::default(),
            None => self.status,
        };
        Event {
            fields: vec![
                ("id", self.id),
                ("created_at", self.created_at),
                ("model", self.model),
                ("service_tier", self.service_tier),
                ("incomplete_details", self.incomplete_details),
                ("usage", self.usage),
            ],
            reason,
            text: self.output.content.text,
            refusal: self.output.content.refusal,
            span: Span::Whole,
            called_tool: self.output.called_tool,
            error: self.error,
            ..Event::default()
        }
    }
}

impl Dialect for Responses {
    fn service(&self) -> &Service {
        &self.service
    }

    fn post(&self, request: &Request<'_>, _continuation: Option<&str>) -> Result<Post, CallError> {
        let format = |schema| json!({"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": schema}});
        let body = Body {
            model: self.service.id.name(),
            instructions: request.system,
            input: request.prompt,
            temperature: request.temperature,
            max_output_tokens: request.max_output_tokens,
            text: request.schema.map(format),
            store: false,
            stream: request.stream,
        };
        Ok(crate::post(&self.service, "/responses", json::body(&body)?))
    }

    fn names(&self) -> &'static Names {
        &Names {
            id: "id",
            model: "model",
            tier: "/service_tier",
            input: &["/usage/input_tokens"],
            cache_read: "/usage/input_tokens_details/cached_tokens",
            cache_write: "/usage/input_tokens_details/cache_write_tokens",
            output: &["/usage/output_tokens"],
            reasoning: "/usage/output_tokens_details/reasoning_tokens",
            total: "/usage/total_tokens",
            ..Names::NONE
        }
    }

    fn event(&self, json: &[u8]) -> Result<Event, CallError> {
        let kind: Kind = json::object(json)?;
        let kind = kind.r#type.as_str().unwrap_or_default();
        let streamed: Streamed = json::object(json)?;
        let mut event = streamed.response.unwrap_or_default().into_event();
        event.called_tool |= streamed.item.is_some_and(|item| item.is_tool());
        event.is_end = matches!(kind, "response.completed" | "response.incomplete");
        if !streamed.error.is_null() {
            event.error = streamed.error;
        }
        match kind {
            "error" if event.error.is_null() => {
                event.error = json!({"code": *streamed.code, "message": *streamed.message});
            }
            "response.output_text.delta" => {
                event.text = json::object::<Delta>(json)?.delta;
                event.span = Span::Delta;
            }
            // Some gateways send only the whole text of each part.
            "response.output_text.done" => {
                event.text = json::object::<Delta>(json)?.text;
                event.span = Span::Part;
            }
            "response.refusal.delta" => {
                event.refusal = json::object::<Delta>(json)?.delta;
                event.span = Span::Delta;
            }
            _ => {}
        }
        Ok(event)
    }

    fn message(&self, json: &[u8]) -> Result<Event, CallError> {
        Ok(json::object::<Response>(json)?.into_event())
    }

    fn merged(&self, answer: &Collect<'_>) -> Value {
        let refusal = answer
            .refusal()
            .map(|refusal| json!({"type": "refusal", "refusal": refusal}));
        let text = json!({"type": "output_text", "text": Raw::TEXT});
        let content: Vec<Value> = refusal.into_iter().chain([text]).collect();
        let is_incomplete = !answer.field("incomplete_details").is_null();
        let status = if is_incomplete {
            Some("incomplete")
        } else {
            answer.reason()
        };
        let message = json!({"type": "message", "role": "assistant", "content": content});
        json!({"object": "response", "status": status, "output": [message]})
    }

    fn describe(&self) -> Option<Post> {
        Some(crate::post(&self.service, "/models", Vec::new()))
    }

    fn read_description(&self, body: &[u8]) -> Result<(), CallError> {
        crate::find_model(body, &self.service)
    }
}
