//! Gemini CLI's `stream-json` events.

use code_commit_model::{ModelUsage, Usage};
use serde_json::Value;

use crate::Event;
use crate::collected::{Collected, Last, main_argument, number, owned, result_line, text};

pub(crate) fn take(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    match text(event, "/type") {
        Some("init") => {
            let said = |pointer| text(event, pointer).map(str::to_owned);
            (told.model, told.session) = (said("/model"), said("/session_id"));
            see(Event::System {
                model: told.model.clone(),
                session: told.session.clone(),
            });
        }
        Some("message") if text(event, "/role") == Some("assistant") => {
            told.say(text(event, "/content").unwrap_or_default());
            see(Event::Text(owned(event, "/content")));
        }
        Some("tool_use") => see(Event::ToolCall {
            id: owned(event, "/tool_id"),
            name: owned(event, "/tool_name"),
            argument: event.get("parameters").and_then(main_argument),
            input: event.get("parameters").cloned().unwrap_or_default(),
        }),
        Some("tool_result") => {
            // The reply is the text after the last tool call.
            told.answer.clear();
            see(Event::ToolResult {
                id: owned(event, "/tool_id"),
                ok: text(event, "/status") == Some("success"),
                message: text(event, "/error/message")
                    .or(text(event, "/output"))
                    .and_then(result_line),
                output: owned(event, "/output"),
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
    let models = of
        .pointer("/stats/models")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    models.map(|(model, of)| usage(model, of)).collect()
}

/// Thoughts are only included in the total.
fn usage(model: &str, of: &Value) -> ModelUsage {
    let count = |name: &str| number(of, &format!("/{name}"));
    let (input, total) = (count("input_tokens"), count("total_tokens"));
    let shown = count("output_tokens");
    let output = total
        .zip(input)
        .map(|(total, input)| total.saturating_sub(input))
        .or(shown);
    let thoughts = output.zip(shown);
    ModelUsage {
        model: model.to_owned(),
        usage: Usage {
            input_tokens: input,
            cache_read_tokens: count("cached"),
            output_tokens: output,
            reasoning_tokens: thoughts.map(|(output, shown)| output.saturating_sub(shown)),
            ..Usage::default()
        },
        cost_usd: None,
    }
}
