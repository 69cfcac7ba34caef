//! Gemini CLI's `stream-json` events, and the single object of versions that do not support
//! `stream-json`.

mod object;

use serde_json::Value;

pub(crate) use object::Object;

use crate::collected::{Collected, Last, main_argument, number, owned, result_line, text};
use crate::{Event, ModelUsage};

/// Processes one line; `event` is the object in it.
pub(crate) fn line(told: &mut Collected, line: &str, event: Option<&Value>, see: &mut dyn FnMut(Event)) {
    if told.keep(line, event, see) {
        return;
    }
    match event {
        Some(event) => take(told, event, see),
        None => see(Event::Note(line.trim_end().to_owned())),
    }
}

fn take(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    match text(event, "/type") {
        Some("init") => {
            let said = |pointer| text(event, pointer).map(str::to_owned);
            (told.model, told.session) = (said("/model"), said("/session_id"));
            see(Event::System { model: told.model.clone(), session: told.session.clone() });
        }
        Some("message") if text(event, "/role") == Some("assistant") => {
            told.say(text(event, "/content").unwrap_or_default());
            see(Event::Text(owned(event, "/content")));
        }
        Some("tool_use") => see(Event::ToolCall {
            id: owned(event, "/tool_id"),
            name: owned(event, "/tool_name"),
            argument: event.get("parameters").and_then(main_argument),
        }),
        Some("tool_result") => {
            // The reply is the text after the last tool call.
            told.answer.clear();
            see(Event::ToolResult {
                id: owned(event, "/tool_id"),
                ok: text(event, "/status") == Some("success"),
                message: text(event, "/error/message").or(text(event, "/output")).and_then(result_line),
            });
        }
        Some("error") => {
            let message = owned(event, "/message");
            if text(event, "/severity") == Some("error") {
                told.error = Some(message.clone());
            }
            see(Event::Note(message));
        }
        Some("result") => result(told, event),
        Some(_) => see(Event::Ping),
        None => {}
    }
}

fn take_object(told: &mut Collected, object: &Value, see: &mut dyn FnMut(Event)) {
    told.session = text(object, "/session_id").map(str::to_owned).or_else(|| told.session.take());
    see(Event::System { model: None, session: told.session.clone() });
    if let Some(response) = text(object, "/response").filter(|response| !response.is_empty()) {
        told.say(response);
        see(Event::Text(response.to_owned()));
    }
    told.usage = models(object);
    let error = object.get("error").filter(|error| !error.is_null());
    told.last = Some(Last {
        is_error: error.is_some(),
        kind: text(object, "/error/type").map(str::to_owned),
        // It may also be the exit code.
        status: number(object, "/error/code")
            .filter(|code| *code >= 400)
            .and_then(|code| code.try_into().ok()),
        stop_reason: None,
        message: text(object, "/error/message").or(text(object, "/error")).unwrap_or_default().to_owned(),
    });
}

fn result(told: &mut Collected, event: &Value) {
    told.usage = models(event);
    told.last = Some(Last {
        is_error: text(event, "/status") != Some("success"),
        kind: text(event, "/error/type").map(str::to_owned),
        status: None,
        stop_reason: None,
        message: owned(event, "/error/message"),
    });
}

fn models(of: &Value) -> Vec<ModelUsage> {
    let models = of.pointer("/stats/models").and_then(Value::as_object).into_iter().flatten();
    models
        .map(|(model, of)| match of.get("tokens") {
            Some(tokens) => usage_of_object(model, tokens),
            None => usage(model, of),
        })
        .collect()
}

/// The object reports thoughts separately; `candidates` does not include them.
fn usage_of_object(model: &str, tokens: &Value) -> ModelUsage {
    let count = |name: &str| number(tokens, &format!("/{name}"));
    let (shown, thoughts) = (count("candidates"), count("thoughts"));
    ModelUsage {
        model: model.to_owned(),
        input_tokens: count("prompt"),
        cache_read_tokens: count("cached"),
        cache_write_tokens: None,
        output_tokens: shown.map(|shown| shown.saturating_add(thoughts.unwrap_or(0))),
        reasoning_tokens: thoughts,
        cost_usd: None,
    }
}

/// Thoughts are only included in the total.
fn usage(model: &str, of: &Value) -> ModelUsage {
    let count = |name: &str| number(of, &format!("/{name}"));
    let (input, total) = (count("input_tokens"), count("total_tokens"));
    let shown = count("output_tokens");
    let output = total.zip(input).map(|(total, input)| total.saturating_sub(input)).or(shown);
    ModelUsage {
        model: model.to_owned(),
        input_tokens: input,
        cache_read_tokens: count("cached"),
        cache_write_tokens: None,
        output_tokens: output,
        reasoning_tokens: output.zip(shown).map(|(output, shown)| output.saturating_sub(shown)),
        cost_usd: None,
    }
}
