//! Reads what the service sends.

use code_commit_llm::json::Aside;
use code_commit_llm::{
    Answer, CallError, Ending, Finish, Raw, Reply, Secret, Stream, Text, Tier, Unread, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure;

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    id: Aside,
    model: Aside,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    stop_reason: Aside,
    stop_details: Aside,
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
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    usage: Aside,
    #[serde(deserialize_with = "code_commit_llm::json::error")]
    error: Value,
}

/// A block of content: text, a thought, a tool call. A thought may be kept from us: such a block has neither
/// text nor thinking.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

/// More of a block, or of the message itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    stop_reason: Aside,
    stop_details: Aside,
}

/// The answer to `count_tokens`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Count {
    input_tokens: Aside,
}

/// Reads the answer to `count_tokens`.
pub(crate) fn read_count(body: &[u8]) -> Result<u64, CallError> {
    let count: Count = code_commit_llm::json::whole(body)?;
    count
        .input_tokens
        .as_u64()
        .ok_or_else(|| CallError::BadReply {
            detail: "no input_tokens".into(),
        })
}

/// An answer, assembled from one or more events.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    model: String,
    key: Secret,
    thoughts: Text,
    ending: Ending,
    stop_details: Aside,
    usage: Aside,
    served_model: Aside,
    id: Aside,
}

impl Merge {
    pub(crate) fn new(model: String, key: Secret) -> Self {
        Self {
            model,
            key,
            ..Self::default()
        }
    }

    fn take_message(&mut self, message: Message<'_>, text: &mut Text) -> Result<(), CallError> {
        let length = text.len();
        code_commit_llm::json::replace(&mut self.served_model, message.model);
        self.take_usage(message.usage);
        if let Some(content) = message.content {
            code_commit_llm::json::each(content, |block: Block<'_>| self.append(&block, text))?;
        }
        self.ending
            .take(&message.id, &message.stop_reason, text.len() > length);
        code_commit_llm::json::replace(&mut self.id, message.id);
        code_commit_llm::json::replace(&mut self.stop_details, message.stop_details);
        Ok(())
    }

    fn append(&mut self, block: &Block<'_>, text: &mut Text) -> Result<(), CallError> {
        code_commit_llm::json::append(block.thinking, &mut self.thoughts)?;
        code_commit_llm::json::append(block.text, text)
    }

    /// The counts at the end of a stream are totals, but not all counts are repeated there.
    fn take_usage(&mut self, more: Aside) {
        match (&mut self.usage, more) {
            (Aside(Value::Object(usage)), Aside(Value::Object(more))) => {
                usage.extend(more.into_iter().filter(|(_, count)| !count.is_null()));
            }
            (usage, more) => code_commit_llm::json::replace(usage, more),
        }
    }

    fn finish_of(&self, text: &str) -> Finish {
        if self.ending.is_mixed() {
            return Finish::Malformed;
        }
        let reason = self.ending.reason().unwrap_or_default();
        if reason == "refusal" {
            let words = self.stop_details.get("explanation").and_then(Value::as_str);
            let message =
                code_commit_llm::clean_message(words.unwrap_or("no explanation"), &self.key);
            return Finish::Refused { message };
        }
        // A turn of the service's own tools, none of which was offered.
        let finish = if reason == "pause_turn" {
            Finish::Other
        } else {
            Finish::of_word(reason)
        };
        if text.is_empty() && finish == Finish::Complete {
            Finish::Empty
        } else {
            finish
        }
    }

    /// The service counts plain input, input read from the cache and input written to it apart.
    fn usage(&self) -> Usage {
        let count = |path: &str| self.usage.pointer(path).and_then(Value::as_u64);
        let (read, written) = (
            count("/cache_read_input_tokens"),
            count("/cache_creation_input_tokens"),
        );
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        Usage {
            input_tokens: count("/input_tokens").map(|plain| plain.saturating_add(cached)),
            cache_read_tokens: read,
            cache_write_tokens: written,
            output_tokens: count("/output_tokens"),
            reasoning_tokens: count("/output_tokens_details/thinking_tokens"),
            tier: self
                .usage
                .get("service_tier")
                .and_then(Value::as_str)
                .and_then(Tier::of_word),
        }
    }

    /// The merged message as the service would have sent it in one piece, with the text last.
    fn raw(&self) -> Result<Raw, CallError> {
        let thinking = Some(&*self.thoughts).filter(|thoughts| !thoughts.is_empty());
        let thinking = thinking.map(|thinking| MergedBlock::Thinking { thinking });
        let merged = Merged {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            model: &self.served_model,
            stop_reason: self.ending.reason(),
            stop_details: &self.stop_details,
            usage: &self.usage,
            content: thinking
                .into_iter()
                .chain([MergedBlock::Text { text: "" }])
                .collect(),
        };
        Raw::merged(&merged, "}]}")
    }
}

impl Stream for Merge {
    fn message(&mut self, json: &str, text: &mut Text) -> Result<(), Unread> {
        let message: Message<'_> = code_commit_llm::json::message(json)?;
        if !message.error.is_null() {
            return Err(failure::in_stream(&message.error, &self.model, &self.key).into());
        }
        Ok(self.take_message(message, text)?)
    }

    fn event(&mut self, data: &str, text: &mut Text) -> Result<(), Unread> {
        let event: Event<'_> = code_commit_llm::json::message(data)?;
        if !event.error.is_null() {
            return Err(failure::in_stream(&event.error, &self.model, &self.key).into());
        }
        if let Some(message) = event.message {
            self.take_message(message, text)?;
        }
        let (length, mut reason) = (text.len(), Value::Null);
        if let Some(block) = event.content_block {
            self.append(&block, text)?;
        }
        if let Some(delta) = event.delta {
            self.append(
                &Block {
                    text: delta.text,
                    thinking: delta.thinking,
                },
                text,
            )?;
            reason = delta.stop_reason.0;
            code_commit_llm::json::replace(&mut self.stop_details, delta.stop_details);
        }
        self.ending.take(&self.id, &reason, text.len() > length);
        self.take_usage(event.usage);
        // It is an end only with a reason, as for all dialects: proxies close a stream that was cut.
        if *event.kind == "message_stop" {
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
            finish_reason: self.ending.reason().map(str::to_owned),
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

/// [`Message`], for serialization.
#[derive(Serialize)]
struct Merged<'a> {
    #[serde(skip_serializing_if = "Value::is_null")]
    id: &'a Value,
    r#type: &'static str,
    role: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    model: &'a Value,
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    stop_details: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    usage: &'a Value,
    content: Vec<MergedBlock<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MergedBlock<'a> {
    Thinking { thinking: &'a str },
    Text { text: &'a str },
}

#[cfg(test)]
mod tests;
