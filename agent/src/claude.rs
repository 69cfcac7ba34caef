//! Claude Code's `stream-json` events.
//!
//! There is one `assistant` line per content block. Its usage is not final, so tokens are taken
//! from the final event alone.

use code_commit_model::{ModelUsage, Usage};
use serde_json::Value;

use crate::collected::{
    Collected, Last, main_argument, number, one_line, owned, result_line, text,
};
use crate::{Denial, Event};

/// The model name of messages that the CLI itself creates for errors.
const SYNTHETIC: &str = "<synthetic>";

/// In seconds since 1970: the largest number with ten digits. Larger values are not renewal times.
const LATEST_RENEWAL: u64 = 9_999_999_999;

pub(crate) fn take(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    match text(event, "/type") {
        Some("system") => system(told, event, see),
        Some("assistant") => assistant(told, event, see),
        Some("user") => blocks(event).for_each(|block| tool_result(block, see)),
        Some("result") => result(told, event),
        Some("rate_limit_event") if text(event, "/rate_limit_info/status") == Some("rejected") => {
            told.resets_unix =
                number(event, "/rate_limit_info/resetsAt").filter(|when| *when <= LATEST_RENEWAL);
        }
        Some(_) => see(Event::Ping),
        None => {}
    }
}

fn system(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    match text(event, "/subtype") {
        Some("init") => {
            let said = |pointer| text(event, pointer).map(str::to_owned);
            (told.model, told.session) = (said("/model"), said("/session_id"));
            see(Event::System {
                model: told.model.clone(),
                session: told.session.clone(),
            });
        }
        Some("api_retry") => {
            let status = number(event, "/error_status")
                .map(|status| format!("{status} "))
                .unwrap_or_default();
            see(Event::Retry {
                attempt: number(event, "/attempt"),
                // Jittered, so not always an integer.
                wait_ms: event
                    .get("retry_delay_ms")
                    .and_then(Value::as_f64)
                    .map(whole),
                reason: format!("{status}{}", owned(event, "/error")),
            });
        }
        Some(_) | None => see(Event::Ping),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and a part of a millisecond is nothing"
)]
fn whole(ms: f64) -> u64 {
    ms as u64
}

fn blocks(event: &Value) -> impl Iterator<Item = &Value> {
    event
        .pointer("/message/content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn assistant(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    let synthetic = text(event, "/message/model") == Some(SYNTHETIC);
    // A subagent: its text is not the agent's reply.
    let is_inner = text(event, "/parent_tool_use_id").is_some();
    for block in blocks(event) {
        match text(block, "/type") {
            Some("text") if synthetic => see(Event::Note(owned(block, "/text"))),
            Some("text") if !is_inner => {
                told.say(text(block, "/text").unwrap_or_default());
                see(Event::Text(owned(block, "/text")));
            }
            Some("tool_use") => {
                if !is_inner {
                    told.answer.clear();
                }
                see(Event::ToolCall {
                    id: owned(block, "/id"),
                    name: owned(block, "/name"),
                    argument: block.get("input").and_then(main_argument),
                    input: block.get("input").cloned().unwrap_or_default(),
                });
            }
            Some(_) => see(Event::Ping),
            None => {}
        }
    }
}

fn tool_result(block: &Value, see: &mut dyn FnMut(Event)) {
    if text(block, "/type") != Some("tool_result") {
        return;
    }
    let failed = block.get("is_error") == Some(&Value::Bool(true));
    let parts = block
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let parts: Vec<&str> = parts.filter_map(|part| text(part, "/text")).collect();
    let output = text(block, "/content").map_or_else(|| parts.join("\n"), str::to_owned);
    let message = result_line(&output);
    see(Event::ToolResult {
        id: owned(block, "/tool_use_id"),
        ok: !failed,
        message,
        output,
    });
}

fn result(told: &mut Collected, event: &Value) {
    let is_error = event.get("is_error") != Some(&Value::Bool(false));
    let errors = event
        .get("errors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let said: Vec<&str> = text(event, "/result")
        .into_iter()
        .chain(errors.filter_map(Value::as_str))
        .collect();
    // An empty result does not replace what was said before.
    if !is_error
        && let Some(answer) = text(event, "/result").filter(|answer| !answer.trim().is_empty())
    {
        answer.clone_into(&mut told.answer);
    }
    told.session = text(event, "/session_id")
        .map(str::to_owned)
        .or_else(|| told.session.take());
    told.cost_usd = event.get("total_cost_usd").and_then(Value::as_f64);
    told.usage = usage(told, event);
    told.denials = denials(event);
    told.last = Some(Last {
        is_error,
        kind: text(event, "/subtype").map(str::to_owned),
        status: number(event, "/api_error_status").and_then(|status| status.try_into().ok()),
        stop_reason: text(event, "/stop_reason").map(str::to_owned),
        message: one_line(&said.join("; ")),
    });
}

/// By model. If the CLI does not distinguish models, everything counts for the one named at the
/// start.
fn usage(told: &Collected, event: &Value) -> Vec<ModelUsage> {
    if let Some(models) = event.get("modelUsage").and_then(Value::as_object)
        && !models.is_empty()
    {
        let names = [
            "inputTokens",
            "cacheReadInputTokens",
            "cacheCreationInputTokens",
            "outputTokens",
        ];
        let each = models.iter().map(|(model, of)| ModelUsage {
            cost_usd: of.get("costUSD").and_then(Value::as_f64),
            ..counted(model, of, names)
        });
        return each.collect();
    }
    let names = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ];
    let model = told.model.as_deref().unwrap_or_default();
    event
        .get("usage")
        .map(|usage| vec![counted(model, usage, names)])
        .unwrap_or_default()
}

/// The service does not include cached input in the rest of the input.
fn counted(model: &str, of: &Value, [fresh, read, write, out]: [&str; 4]) -> ModelUsage {
    let count = |name: &str| of.get(name).and_then(Value::as_u64);
    let (read, write) = (count(read), count(write));
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let input = count(fresh).map(|fresh| fresh.saturating_add(cached));
    ModelUsage {
        model: model.to_owned(),
        usage: Usage {
            input_tokens: input,
            cache_read_tokens: read,
            cache_write_tokens: write,
            output_tokens: count(out),
            ..Usage::default()
        },
        cost_usd: None,
    }
}

fn denials(event: &Value) -> Vec<Denial> {
    let list = event
        .get("permission_denials")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.map(|denied| Denial {
        tool: owned(denied, "/tool_name"),
        argument: denied.get("tool_input").and_then(main_argument),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_no_service_has_are_no_sum_that_overflows() {
        let of = serde_json::json!({"in": 7, "read": u64::MAX, "write": 1});
        let counted = counted("m", &of, ["in", "read", "write", "out"]);
        assert_eq!(
            (counted.usage.input_tokens, counted.usage.output_tokens),
            (Some(u64::MAX), None)
        );
    }
}
