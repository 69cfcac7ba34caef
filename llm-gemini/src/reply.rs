//! Reads what the service sends.

use code_commit_llm::json::Aside;
use code_commit_llm::{
    Answer, CallError, Ending, Finish, Raw, Reply, Secret, Stream, Text, ToolCall, Unread, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{failure, finish};

/// `GenerateContentResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Message<'a> {
    /// We request only one.
    #[serde(borrow, deserialize_with = "code_commit_llm::json::first")]
    candidates: Option<Candidate<'a>>,
    prompt_feedback: Aside,
    usage_metadata: Aside,
    model_version: Aside,
    response_id: Aside,
    #[serde(deserialize_with = "code_commit_llm::json::error")]
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Aside,
    finish_message: Aside,
    continuation_token: Aside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Aside,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

/// `CountTokensResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Count {
    total_tokens: Aside,
}

/// Reads the answer to `countTokens`.
pub(crate) fn read_count(body: &[u8]) -> Result<u64, CallError> {
    let count: Count = code_commit_llm::json::whole(body)?;
    count
        .total_tokens
        .as_u64()
        .ok_or_else(|| CallError::BadReply {
            detail: "no totalTokens".into(),
        })
}

/// An answer, assembled from one or more messages.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    model: String,
    key: Secret,
    thoughts: Text,
    called_tool: bool,
    ending: Ending,
    finish_message: Aside,
    continuation: Option<String>,
    feedback: Aside,
    usage: Aside,
    model_version: Aside,
    response_id: Aside,
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
        if !message.error.is_null() {
            return Err(failure::in_stream(&message.error, &self.model, &self.key));
        }
        // The last of each counts: usage comes with every message and grows.
        code_commit_llm::json::replace(&mut self.usage, message.usage_metadata);
        code_commit_llm::json::replace(&mut self.feedback, message.prompt_feedback);
        code_commit_llm::json::replace(&mut self.model_version, message.model_version);
        let (length, candidate) = (text.len(), message.candidates.unwrap_or_default());
        if let Some(token) = candidate.continuation_token.as_str() {
            self.continuation = Some(token.to_owned());
        }
        code_commit_llm::json::replace(&mut self.finish_message, candidate.finish_message);
        if let Some(parts) = candidate.content.and_then(|content| content.parts) {
            code_commit_llm::json::each(parts, |part| self.take_part(&part, text))?;
        }
        let blocked = self
            .feedback
            .get("blockReason")
            .cloned()
            .unwrap_or_default();
        let is_stated = candidate.finish_reason.is_string();
        let reason = if is_stated {
            candidate.finish_reason.0
        } else {
            blocked
        };
        self.ending
            .take(&message.response_id, &reason, text.len() > length);
        code_commit_llm::json::replace(&mut self.response_id, message.response_id);
        Ok(())
    }

    /// Thoughts are summaries for the reader, never part of the answer.
    fn take_part(&mut self, part: &Part<'_>, text: &mut Text) -> Result<(), CallError> {
        self.called_tool |= part.function_call.is_some();
        let Some(raw) = part.text else { return Ok(()) };
        let target = if *part.thought == true {
            &mut self.thoughts
        } else {
            text
        };
        code_commit_llm::json::append(Some(raw), target)
    }

    fn block_reason(&self) -> Option<&str> {
        self.feedback.get("blockReason").and_then(Value::as_str)
    }

    fn finish_of(&self, text: &str) -> Finish {
        if self.ending.is_mixed() {
            return Finish::Malformed;
        }
        let reason = self.ending.reason().unwrap_or_default();
        match (finish::of(reason), self.block_reason()) {
            (_, Some(block)) if reason == block => Finish::Blocked {
                filter: finish::filter(block),
            },
            (Finish::Complete, _) if self.called_tool => Finish::ToolCall(ToolCall::Unexpected),
            (Finish::Complete, _) if text.is_empty() => Finish::Empty,
            (finish, _) => finish,
        }
    }

    /// The service leaves out counts of zero: if it reports any usage, a missing count is zero.
    fn usage(&self) -> Usage {
        let count = |name: &str| self.usage.get(name).and_then(Value::as_u64);
        let zero = count("promptTokenCount").map(|_| 0);
        let sum = |a: Option<u64>, b: Option<u64>| Some(a.or(zero)?.saturating_add(b.unwrap_or(0)));
        let thoughts = count("thoughtsTokenCount");
        Usage {
            input_tokens: sum(count("promptTokenCount"), count("toolUsePromptTokenCount")),
            cache_read_tokens: count("cachedContentTokenCount"),
            cache_write_tokens: None,
            output_tokens: sum(count("candidatesTokenCount"), thoughts),
            reasoning_tokens: thoughts,
            tier: None,
        }
        .with_total(count("totalTokenCount"))
    }

    /// The merged message as the service would have sent it in one piece, with the text last.
    fn raw(&self) -> Result<Raw, CallError> {
        let thought = Some(&*self.thoughts).filter(|t| !t.is_empty());
        let merged = Merged {
            prompt_feedback: &self.feedback,
            usage_metadata: &self.usage,
            model_version: &self.model_version,
            response_id: &self.response_id,
            candidates: [MergedCandidate {
                index: 0,
                finish_reason: self
                    .ending
                    .reason()
                    .filter(|_| self.block_reason().is_none()),
                finish_message: &self.finish_message,
                content: MergedContent {
                    role: "model",
                    parts: thought
                        .map(|text| MergedPart {
                            thought: true,
                            text,
                        })
                        .into_iter()
                        .chain([MergedPart {
                            thought: false,
                            text: "",
                        }])
                        .collect(),
                },
            }],
        };
        Raw::merged(&merged, "}]}}]}")
    }
}

impl Stream for Merge {
    fn event(&mut self, data: &str, text: &mut Text) -> Result<(), Unread> {
        Ok(self.take_message(code_commit_llm::json::message(data)?, text)?)
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(self: Box<Self>, text: String) -> Result<Answer, CallError> {
        let finish = self.finish_of(&text);
        let reply = Reply {
            usage: self.usage(),
            served_model: self.model_version.as_str().map(str::to_owned),
            response_id: self.response_id.as_str().map(str::to_owned),
            finish_reason: self.ending.reason().map(str::to_owned),
            raw: self.raw()?,
            finish,
            text,
            attempts: 1,
        };
        let continuation = self
            .continuation
            .filter(|_| reply.finish == Finish::Endless);
        Ok(Answer {
            reply,
            continuation,
        })
    }
}

/// [`Message`], for serialization.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Merged<'a> {
    #[serde(skip_serializing_if = "Value::is_null")]
    prompt_feedback: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    usage_metadata: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    model_version: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    response_id: &'a Value,
    candidates: [MergedCandidate<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MergedCandidate<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    finish_message: &'a Value,
    content: MergedContent<'a>,
}

#[derive(Serialize)]
struct MergedContent<'a> {
    role: &'static str,
    parts: Vec<MergedPart<'a>>,
}

#[derive(Serialize)]
struct MergedPart<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    text: &'a str,
}

#[cfg(test)]
mod tests;
