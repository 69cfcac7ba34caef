//! A run for other programs: one JSON object per line.

use code_commit_engine::{Observer, Progress};
use serde_json::json;

use crate::output::Output;

/// Writes every event except the model's progress, which is for people, on standard output.
#[derive(Debug)]
pub struct Ndjson(pub Output);

impl Observer for Ndjson {
    fn see(&mut self, progress: &Progress<'_>) {
        let object = match progress {
            Progress::AskBegins {
                round,
                prompt_bytes,
                model,
            } => {
                json!({ "event": "ask-begins", "round": round, "prompt_bytes": prompt_bytes, "model": model })
            }
            Progress::Waiting {
                round,
                wait,
                reason,
            } => {
                json!({ "event": "waiting", "round": round, "wait_ms": wait.as_millis(), "reason": reason })
            }
            Progress::Said { round, text } => {
                json!({ "event": "said", "round": round, "text": text })
            }
            Progress::BuildBegins { round } => json!({ "event": "build-begins", "round": round }),
            Progress::BuildPrints { bytes } => {
                json!({ "event": "build-prints", "text": String::from_utf8_lossy(bytes) })
            }
            Progress::Warning(problem) => json!({ "event": "warning", "problem": problem }),
            Progress::Recorded { json, .. } => json!({ "event": "fact", "fact": json }),
            Progress::Receiving { .. } | Progress::CountingDown { .. } | Progress::Spent { .. } => {
                return;
            }
        };
        self.0.object(&object);
    }
}
