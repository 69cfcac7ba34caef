//! Codex's `exec --json` events.

use code_commit_model::{ModelUsage, Usage};
use serde_json::Value;

use crate::Event;
use crate::collected::{
    Collected, Last, main_argument, number, one_line, owned, result_line, text,
};

pub(crate) fn take(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    match text(event, "/type") {
        Some("thread.started") => {
            told.session = text(event, "/thread_id").map(str::to_owned);
            see(Event::System {
                model: None,
                session: told.session.clone(),
            });
        }
        Some("item.started") => item_started(told, event, see),
        Some("item.completed") => item_completed(told, event, see),
        Some("error") => see(Event::Retry {
            attempt: None,
            wait_ms: None,
            reason: owned(event, "/message"),
        }),
        Some("turn.completed") => {
            told.usage = event
                .get("usage")
                .map(|of| vec![usage(told, of)])
                .unwrap_or_default();
            told.last = Some(Last::default());
        }
        Some("turn.failed") => {
            let message = owned(event, "/error/message");
            told.last = Some(Last {
                is_error: true,
                status: status(&message),
                message,
                ..Last::default()
            });
        }
        Some(_) => see(Event::Ping),
        None => {}
    }
}

fn is_tool(kind: &str) -> bool {
    !matches!(kind, "agent_message" | "reasoning" | "error" | "todo_list")
}

fn item_started(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    let Some(item) = event.get("item") else {
        return;
    };
    let kind = text(item, "/type").unwrap_or_default();
    if !is_tool(kind) {
        return see(Event::Ping);
    }
    told.answer.clear();
    let (id, name, input) = (owned(item, "/id"), kind.to_owned(), item.clone());
    see(Event::ToolCall {
        id,
        name,
        argument: argument(item),
        input,
    });
}

fn argument(item: &Value) -> Option<String> {
    let path = text(item, "/changes/0/path").map(one_line);
    path.or_else(|| main_argument(item))
}

fn item_completed(told: &mut Collected, event: &Value, see: &mut dyn FnMut(Event)) {
    let Some(item) = event.get("item") else {
        return;
    };
    match text(item, "/type").unwrap_or_default() {
        "agent_message" => {
            text(item, "/text")
                .unwrap_or_default()
                .clone_into(&mut told.answer);
            see(Event::Text(told.answer.clone()));
        }
        "error" => see(Event::Note(owned(item, "/message"))),
        kind if is_tool(kind) => {
            let code = item.get("exit_code").and_then(Value::as_i64);
            let ok = text(item, "/status") == Some("completed") && code.unwrap_or(0) == 0;
            let failure = code.map(|code| format!("exit code {code}")).filter(|_| !ok);
            let output = result(item);
            let parts: Vec<String> = failure
                .into_iter()
                .chain(output.and_then(result_line))
                .collect();
            let message = Some(parts.join(": ")).filter(|_| !parts.is_empty());
            let output = output.unwrap_or_default().to_owned();
            see(Event::ToolResult {
                id: owned(item, "/id"),
                ok,
                message,
                output,
            });
        }
        _ => see(Event::Ping),
    }
}

/// The output of a command, or the result of a server's tool.
fn result(item: &Value) -> Option<&str> {
    let places = [
        "/aggregated_output",
        "/error/message",
        "/result/content/0/text",
    ];
    places
        .iter()
        .find_map(|at| text(item, at).filter(|text| !text.trim().is_empty()))
}

/// Over the whole session.
fn usage(told: &Collected, of: &Value) -> ModelUsage {
    ModelUsage {
        model: told.model.clone().unwrap_or_default(),
        usage: Usage {
            input_tokens: number(of, "/input_tokens"),
            cache_read_tokens: number(of, "/cached_input_tokens"),
            cache_write_tokens: number(of, "/cache_write_input_tokens"),
            output_tokens: number(of, "/output_tokens"),
            reasoning_tokens: number(of, "/reasoning_output_tokens"),
            tier: None,
        },
        cost_usd: None,
    }
}

/// Codex reports the status only in `unexpected status 401 Unauthorized: …` and in `exceeded retry limit, last status: 429 Too
/// Many Requests`.
fn status(message: &str) -> Option<u16> {
    let rest = ["unexpected status ", "last status: "]
        .iter()
        .find_map(|words| message.split_once(words))?
        .1;
    rest.split([' ', ',']).next()?.parse().ok()
}
