//! An answer.

use std::fmt;
use std::io::{self, Write};

use serde_json::Value;

use crate::{Finish, Usage};

/// An answer, complete or not: check [`Reply::finish`] first.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer's text, without thoughts.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// The service's own term for how it ended.
    pub finish_reason: Option<String>,
    /// What the whole call used, over all attempts that reported it.
    pub usage: Usage,
    /// The model that answered, as the service names it. Prices and logs refer to this one.
    pub served_model: Option<String>,
    /// The service's id of the answer.
    pub response_id: Option<String>,
    /// HTTP attempts made, including failed ones.
    pub attempts: u32,
    /// The answer as the log keeps it; written by [`Reply::write_raw`].
    pub raw: Raw,
}

/// The answer as one JSON object, without a second copy of a text that may be large.
#[derive(Clone, PartialEq, Eq)]
pub enum Raw {
    /// The bytes as they were received.
    Received(Vec<u8>),
    /// A merged answer: the object's bytes before and after the JSON string that is [`Reply::text`].
    Around {
        /// Up to the text's opening quote.
        head: Vec<u8>,
        /// Everything after its closing quote.
        tail: Vec<u8>,
    },
}

impl Reply {
    /// An answer that did not come from a service.
    pub fn of_text(text: String) -> Self {
        Self {
            finish: if text.is_empty() {
                Finish::Empty
            } else {
                Finish::Complete
            },
            text,
            finish_reason: None,
            usage: Usage::default(),
            served_model: None,
            response_id: None,
            attempts: 1,
            raw: Raw::Around {
                head: b"{\"text\":".to_vec(),
                tail: b"}".to_vec(),
            },
        }
    }

    /// Writes the answer as one JSON object.
    pub fn write_raw(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.raw {
            Raw::Received(bytes) => out.write_all(bytes),
            Raw::Around { head, tail } => {
                out.write_all(head)?;
                serde_json::to_writer(&mut *out, &self.text).map_err(io::Error::from)?;
                out.write_all(tail)
            }
        }
    }
}

impl Raw {
    /// Stands for the text in an answer to [merge](Self::merged).
    pub const TEXT: &str = "\0the text of the answer\0";

    /// A merged answer, in which [`Raw::TEXT`] is the text.
    pub fn merged(answer: &Value) -> Self {
        let (answer, text) = (answer.to_string(), Value::from(Self::TEXT).to_string());
        let (head, tail) = answer.split_once(&text).unwrap_or((&answer, ""));
        Self::Around {
            head: head.into(),
            tail: tail.into(),
        }
    }
}

impl fmt::Debug for Raw {
    /// Shows only sizes, since there may be many bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Received(bytes) => write!(f, "Received({} bytes)", bytes.len()),
            Self::Around { head, tail } => write!(f, "Around({} bytes)", head.len() + tail.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merged_answer_is_one_json_object() {
        let mut reply = Reply::of_text("a \"quoted\"\nline".into());
        reply.raw = Raw::merged(&json!({"id": "x", "parts": [{"text": Raw::TEXT}]}));
        let mut raw = Vec::new();
        reply.write_raw(&mut raw).unwrap();
        insta::assert_snapshot!(String::from_utf8(raw).unwrap(), @r#"{"id":"x","parts":[{"text":"a \"quoted\"\nline"}]}"#);
    }
}
