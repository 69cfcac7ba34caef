//! Reads what the server sends.

use code_commit_llm::json::Aside;
use code_commit_llm::{
    Answer, CallError, Ending, Filter, Finish, Raw, Reply, Stream, Text, Tier, ToolCall, Unread,
    Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::reply::append;
use crate::{Service, failure};

/// A response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    id: Aside,
    created_at: Aside,
    service_tier: Aside,
    model: Aside,
    status: Aside,
    incomplete_details: Aside,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    usage: Aside,
    #[serde(deserialize_with = "code_commit_llm::json::error")]
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Aside,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(deserialize_with = "code_commit_llm::json::error")]
    error: Value,
    code: Aside,
    message: Aside,
}

/// An element of `output`: a message, a thought, a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(rename = "type")]
    kind: Aside,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A part of a message. A thought has parts, too, of another type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: Aside,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

/// An answer, assembled from one or more events.
#[derive(Debug)]
pub(crate) struct Merge {
    service: Service,
    refusal: Text,
    called_tool: bool,
    has_deltas: bool,
    ending: Ending,
    incomplete_details: Aside,
    usage: Aside,
    served_model: Aside,
    id: Aside,
    created_at: Aside,
    service_tier: Aside,
}

impl Merge {
    pub(crate) fn new(service: Service) -> Self {
        Self {
            service,
            refusal: Text::default(),
            called_tool: false,
            has_deltas: false,
            ending: Ending::default(),
            incomplete_details: Aside::default(),
            usage: Aside::default(),
            served_model: Aside::default(),
            id: Aside::default(),
            created_at: Aside::default(),
            service_tier: Aside::default(),
        }
    }

    /// The whole response, or what is known of it, in an event that had text or not. The last event of a stream repeats all text.
    fn take_response(
        &mut self,
        response: Response<'_>,
        has_text: bool,
        text: &mut Text,
    ) -> Result<(), CallError> {
        if !response.error.is_null() {
            return Err(failure::in_stream(&response.error, &self.service));
        }
        code_commit_llm::json::replace(&mut self.usage, response.usage);
        code_commit_llm::json::replace(&mut self.served_model, response.model);
        code_commit_llm::json::replace(&mut self.created_at, response.created_at);
        code_commit_llm::json::replace(&mut self.service_tier, response.service_tier);
        code_commit_llm::json::replace(&mut self.incomplete_details, response.incomplete_details);
        let length = self.refusal.len() + text.len();
        if let Some(output) = response
            .output
            .filter(|_| text.is_empty() && self.refusal.is_empty())
        {
            code_commit_llm::json::each(output, |item: Item<'_>| self.take_item(&item, text))?;
        }
        let is_open = matches!(response.status.as_str(), Some("queued" | "in_progress"));
        let status = if is_open {
            &Value::Null
        } else {
            &*response.status
        };
        let has_text = has_text || self.refusal.len() + text.len() > length;
        self.ending.take(&response.id, status, has_text);
        code_commit_llm::json::replace(&mut self.id, response.id);
        Ok(())
    }

    fn take_item(&mut self, item: &Item<'_>, text: &mut Text) -> Result<(), CallError> {
        self.note_tool(item);
        let Some(content) = item.content.filter(|_| *item.kind == "message") else {
            return Ok(());
        };
        code_commit_llm::json::each(content, |part: Part<'_>| match part.kind.as_str() {
            Some("refusal") => append(part.refusal, &mut self.refusal),
            Some("output_text") => append(part.text, text),
            _ => Ok(()),
        })
    }

    fn note_tool(&mut self, item: &Item<'_>) {
        self.called_tool |= item
            .kind
            .as_str()
            .is_some_and(|kind| kind.ends_with("_call"));
    }

    /// `delta` of the types that are text; thoughts and tool calls have deltas, too. Some gateways send only the whole text of each
    /// part.
    fn take_text(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        text: &mut Text,
    ) -> Result<(), CallError> {
        self.has_deltas |= kind == "response.output_text.delta";
        match kind {
            "response.output_text.delta" => append(event.delta, text),
            "response.output_text.done" if !self.has_deltas => append(event.text, text),
            "response.refusal.delta" => append(event.delta, &mut self.refusal),
            _ => Ok(()),
        }
    }

    /// The service's term for how it ended: why it is incomplete, else the status.
    fn reason(&self) -> &str {
        let reason = self
            .incomplete_details
            .get("reason")
            .and_then(Value::as_str);
        reason.or(self.ending.reason()).unwrap_or_default()
    }

    fn finish_of(&self, text: &str) -> Finish {
        if self.ending.is_mixed() {
            return Finish::Malformed;
        }
        if !self.refusal.is_empty() {
            return Finish::Refused {
                message: code_commit_llm::clean_message(&self.refusal, &self.service.key),
            };
        }
        match self.reason() {
            "" | "completed" if self.called_tool => Finish::ToolCall(ToolCall::Unexpected),
            "" | "completed" if text.is_empty() => Finish::Empty,
            "" | "completed" => Finish::Complete,
            "max_output_tokens" => Finish::Truncated,
            "content_filter" => Finish::Filtered {
                filter: Filter::Unspecified,
            },
            "queued" | "in_progress" | "incomplete" | "cancelled" | "failed" => Finish::Other,
            other => Finish::Unknown {
                reason: other.to_owned(),
            },
        }
    }

    fn usage(&self) -> Usage {
        let count = |path: &str| self.usage.pointer(path).and_then(Value::as_u64);
        Usage {
            input_tokens: count("/input_tokens"),
            cache_read_tokens: count("/input_tokens_details/cached_tokens"),
            cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
            output_tokens: count("/output_tokens"),
            reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
            tier: self.service_tier.as_str().and_then(Tier::of_word),
        }
        .with_total(count("/total_tokens"))
    }

    /// The merged response as the service would have sent it in one piece, with the text last.
    fn raw(&self) -> Result<Raw, CallError> {
        let refusal = Some(&*self.refusal).filter(|refusal| !refusal.is_empty());
        let refusal = refusal.map(|refusal| MergedPart::Refusal { refusal });
        let merged = Merged {
            id: &self.id,
            object: "response",
            created_at: &self.created_at,
            model: &self.served_model,
            service_tier: &self.service_tier,
            status: self.ending.reason(),
            incomplete_details: &self.incomplete_details,
            usage: &self.usage,
            output: [MergedItem {
                r#type: "message",
                role: "assistant",
                content: refusal
                    .into_iter()
                    .chain([MergedPart::OutputText { text: "" }])
                    .collect(),
            }],
        };
        Raw::merged(&merged, "}]}]}")
    }
}

impl Stream for Merge {
    fn message(&mut self, json: &str, text: &mut Text) -> Result<(), Unread> {
        Ok(self.take_response(code_commit_llm::json::message(json)?, false, text)?)
    }

    fn event(&mut self, data: &str, text: &mut Text) -> Result<(), Unread> {
        let event: Event<'_> = code_commit_llm::json::message(data)?;
        let kind = event.kind.as_str().unwrap_or_default();
        if !event.error.is_null() {
            return Err(failure::in_stream(&event.error, &self.service).into());
        }
        if kind == "error" {
            let error = json!({"code": *event.code, "message": *event.message});
            return Err(failure::in_stream(&error, &self.service).into());
        }
        let length = self.refusal.len() + text.len();
        self.take_text(kind, &event, text)?;
        if let Some(item) = &event.item {
            self.note_tool(item);
        }
        let has_text = self.refusal.len() + text.len() > length;
        let response = event.response.unwrap_or_default();
        self.take_response(response, has_text, text)?;
        if matches!(kind, "response.completed" | "response.incomplete") {
            self.ending.mark();
        }
        Ok(())
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(self: Box<Self>, text: String) -> Result<Answer, CallError> {
        let reply = Reply {
            finish: self.finish_of(&text),
            finish_reason: Some(self.reason().to_owned()).filter(|reason| !reason.is_empty()),
            usage: self.usage(),
            served_model: code_commit_llm::json::word(&self.served_model),
            response_id: code_commit_llm::json::word(&self.id),
            raw: self.raw()?,
            text,
            attempts: 1,
        };
        Ok(Answer {
            reply,
            continuation: None,
        })
    }
}

/// [`Response`], for serialization.
#[derive(Serialize)]
struct Merged<'a> {
    #[serde(skip_serializing_if = "Value::is_null")]
    id: &'a Value,
    object: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    created_at: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    model: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    service_tier: &'a Value,
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    incomplete_details: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    usage: &'a Value,
    output: [MergedItem<'a>; 1],
}

#[derive(Serialize)]
struct MergedItem<'a> {
    r#type: &'static str,
    role: &'static str,
    content: Vec<MergedPart<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MergedPart<'a> {
    Refusal { refusal: &'a str },
    OutputText { text: &'a str },
}

#[cfg(test)]
mod tests;
