//! Reads what the service sends.

use code_commit_llm::json::{self, Aside};
use code_commit_llm::{CallError, Event, Fragment};
use serde::Deserialize;
use serde_json::Value;

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    id: Aside,
    model: Aside,
    #[serde(deserialize_with = "json::each")]
    content: Block,
    stop_reason: Aside,
    stop_details: Aside,
    usage: Aside,
    #[serde(deserialize_with = "json::error")]
    error: Value,
}

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Streamed {
    r#type: Aside,
    message: Option<Message>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: Aside,
    #[serde(deserialize_with = "json::error")]
    error: Value,
}

/// A block of content: text, a thought, a tool call. A thought may be kept from us: such a block has neither
/// text nor thinking.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    text: Fragment,
    thinking: Fragment,
}

/// More of a block, or of the message itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    text: Fragment,
    thinking: Fragment,
    stop_reason: Aside,
    stop_details: Aside,
}

impl Extend<Block> for Block {
    fn extend<I: IntoIterator<Item = Block>>(&mut self, blocks: I) {
        for block in blocks {
            self.text.extend(block.text);
            self.thinking.extend(block.thinking);
        }
    }
}

/// Reads an answer in one piece.
pub(crate) fn message(json: &[u8]) -> Result<Event, CallError> {
    Ok(json::object::<Message>(json)?.into_event())
}

/// Reads an event of a stream. `message_stop` is an end only after a reason, as for all dialects: proxies close a stream
/// that was cut.
pub(crate) fn event(json: &[u8]) -> Result<Event, CallError> {
    let streamed: Streamed = json::object(json)?;
    let mut message = streamed.message.unwrap_or_default();
    message.content.extend(streamed.content_block);
    if let Some(delta) = streamed.delta {
        let Delta { text, thinking, .. } = delta;
        message.content.extend([Block { text, thinking }]);
        (message.stop_reason, message.stop_details) = (delta.stop_reason, delta.stop_details);
    }
    if !streamed.usage.is_null() {
        message.usage = streamed.usage;
    }
    message.error = streamed.error;
    Ok(Event {
        is_part: true,
        is_end: *streamed.r#type == "message_stop",
        ..message.into_event()
    })
}

impl Message {
    fn into_event(self) -> Event {
        let why = self.stop_details.get("explanation").and_then(Value::as_str);
        let refusal = why.unwrap_or("no explanation").into();
        let is_refused = *self.stop_reason == "refusal";
        Event {
            refusal: if is_refused {
                refusal
            } else {
                Fragment::default()
            },
            fields: vec![
                ("id", self.id),
                ("model", self.model),
                ("stop_details", self.stop_details),
                ("usage", self.usage),
            ],
            reason: self.stop_reason,
            text: self.content.text,
            thought: self.content.thinking,
            error: self.error,
            ..Event::default()
        }
    }
}
