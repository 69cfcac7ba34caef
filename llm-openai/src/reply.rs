//! Reads what the server sends.

use code_commit_llm::json::Aside;
use code_commit_llm::{
    Answer, CallError, Ending, Finish, Raw, Reply, Stream, Text, Tier, Unread, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Service, failure};

/// A completion, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    /// We request only one.
    #[serde(borrow, deserialize_with = "code_commit_llm::json::first")]
    choices: Option<Choice<'a>>,
    usage: Aside,
    model: Aside,
    id: Aside,
    created: Aside,
    service_tier: Aside,
    #[serde(deserialize_with = "code_commit_llm::json::error")]
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    delta: Option<Said<'a>>,
    finish_reason: Aside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

/// An element of `content`, which some servers send as a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Models<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listed {
    id: Aside,
}

/// Looks for a model in the list of all.
pub(crate) fn find_model(body: &[u8], service: &Service) -> Result<(), CallError> {
    const SHOWN: usize = 10;
    let list: Models<'_> = code_commit_llm::json::whole(body)?;
    let (mut found, mut some) = (false, Vec::new());
    if let Some(data) = list.data {
        code_commit_llm::json::each(data, |listed: Listed| {
            if let Some(id) = listed.id.as_str() {
                found |= id == service.model();
                some.extend((some.len() < SHOWN).then(|| id.to_owned()));
            }
            Ok(())
        })?;
    }
    let message = || {
        code_commit_llm::clean_message(&format!("the server has {}", some.join(", ")), &service.key)
    };
    if found {
        Ok(())
    } else {
        Err(CallError::NotFound {
            model: service.model().to_owned(),
            message: message(),
        })
    }
}

/// An answer, assembled from one or more messages.
#[derive(Debug)]
pub(crate) struct Merge {
    service: Service,
    refusal: Text,
    ending: Ending,
    usage: Aside,
    served_model: Aside,
    id: Aside,
    created: Aside,
    service_tier: Aside,
}

impl Merge {
    pub(crate) fn new(service: Service) -> Self {
        Self {
            service,
            refusal: Text::default(),
            ending: Ending::default(),
            usage: Aside::default(),
            served_model: Aside::default(),
            id: Aside::default(),
            created: Aside::default(),
            service_tier: Aside::default(),
        }
    }

    fn take_message(&mut self, message: Message<'_>, text: &mut Text) -> Result<(), CallError> {
        if !message.error.is_null() {
            return Err(failure::in_stream(&message.error, &self.service));
        }
        code_commit_llm::json::replace(&mut self.usage, message.usage);
        code_commit_llm::json::replace(&mut self.served_model, message.model);
        code_commit_llm::json::replace(&mut self.created, message.created);
        code_commit_llm::json::replace(&mut self.service_tier, message.service_tier);
        let Some(choice) = message.choices else {
            code_commit_llm::json::replace(&mut self.id, message.id);
            return Ok(());
        };
        let length = self.refusal.len() + text.len();
        if let Some(said) = choice.delta.or(choice.message) {
            append(said.refusal, &mut self.refusal)?;
            append(said.content, text)?;
        }
        let has_text = self.refusal.len() + text.len() > length;
        // `[DONE]` alone is no end: some proxies add it to a truncated stream.
        self.ending
            .take(&message.id, &choice.finish_reason, has_text);
        code_commit_llm::json::replace(&mut self.id, message.id);
        Ok(())
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
        let finish = Finish::of_word(self.ending.reason().unwrap_or_default());
        let is_empty = text.is_empty() && finish == Finish::Complete;
        if is_empty { Finish::Empty } else { finish }
    }

    fn usage(&self) -> Usage {
        let count = |path: &str| self.usage.pointer(path).and_then(Value::as_u64);
        Usage {
            input_tokens: count("/prompt_tokens"),
            cache_read_tokens: count("/prompt_tokens_details/cached_tokens"),
            cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens"),
            output_tokens: count("/completion_tokens"),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
            tier: self.service_tier.as_str().and_then(Tier::of_word),
        }
        .with_total(count("/total_tokens"))
    }

    /// The merged message as the service would have sent it in one piece, with the text last.
    fn raw(&self) -> Result<Raw, CallError> {
        let message = MergedMessage {
            role: "assistant",
            refusal: Some(&*self.refusal).filter(|r| !r.is_empty()),
            content: "",
        };
        let merged = Merged {
            id: &self.id,
            object: "chat.completion",
            created: &self.created,
            model: &self.served_model,
            service_tier: &self.service_tier,
            usage: &self.usage,
            choices: [MergedChoice {
                index: 0,
                finish_reason: self.ending.reason(),
                message,
            }],
        };
        Raw::merged(&merged, "}}]}")
    }
}

/// Appends a string or a list of parts; nothing for null.
pub(crate) fn append(raw: Option<&RawValue>, text: &mut Text) -> Result<(), CallError> {
    match raw.filter(|raw| raw.get().starts_with('[')) {
        Some(parts) => code_commit_llm::json::each(parts, |part: Part<'_>| {
            code_commit_llm::json::append(part.text, text)
        }),
        None => code_commit_llm::json::append(raw, text),
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
    object: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    created: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    model: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    service_tier: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    usage: &'a Value,
    choices: [MergedChoice<'a>; 1],
}

#[derive(Serialize)]
struct MergedChoice<'a> {
    index: u32,
    finish_reason: Option<&'a str>,
    message: MergedMessage<'a>,
}

#[derive(Serialize)]
struct MergedMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    content: &'a str,
}

#[cfg(test)]
mod tests;
