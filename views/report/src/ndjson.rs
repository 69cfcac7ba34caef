//! A run for other programs: one JSON object per line.

use code_commit_engine::{Event, Observer};
use serde_json::{Value, json};

use crate::output::Output;

/// Writes every event except the model's progress, which is for people.
#[derive(Debug)]
pub struct Ndjson {
    output: Output,
}

impl Ndjson {
    /// On standard output.
    pub fn new(output: Output) -> Self {
        Self { output }
    }
}

impl Observer for Ndjson {
    fn see(&mut self, event: &Event<'_>) {
        if let Some(object) = object(event) {
            self.output.object(&object);
        }
    }
}

fn object(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::AskBegins {
            round,
            prompt_bytes,
            model,
        } => {
            json!({ "event": "ask-begins", "round": round, "prompt_bytes": prompt_bytes, "model": model })
        }
        Event::Waiting {
            round,
            wait,
            reason,
        } => {
            json!({ "event": "waiting", "round": round, "wait_ms": wait.as_millis(), "reason": reason })
        }
        Event::Said { round, text } => json!({ "event": "said", "round": round, "text": text }),
        Event::BuildBegins { round } => json!({ "event": "build-begins", "round": round }),
        Event::BuildPrints { bytes } => {
            json!({ "event": "build-prints", "text": String::from_utf8_lossy(bytes) })
        }
        Event::Warning(problem) => json!({ "event": "warning", "problem": problem }),
        Event::Line { json, .. } => json!({ "event": "fact", "fact": json }),
        Event::Receiving { .. } | Event::CountingDown { .. } | Event::Spent { .. } => return None,
    })
}
