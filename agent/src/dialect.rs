//! The output of each CLI is read by its own module, line by line.

use serde_json::Value;

use crate::collected::Collected;
use crate::{Event, Kind, claude, codex, gemini};

impl Collected {
    /// Processes one line of the CLI's standard output and reports its events.
    pub(crate) fn line(&mut self, kind: Kind, line: &[u8], see: &mut dyn FnMut(Event)) {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            return;
        }
        let event = serde_json::from_str::<Value>(&text)
            .ok()
            .filter(Value::is_object);
        let mut retried = self.retried.take();
        let see = &mut |event: Event| {
            match &event {
                Event::Retry { reason, .. } => retried = Some(reason.clone()),
                Event::Text(_) | Event::ToolCall { .. } | Event::ToolResult { .. } => {
                    retried = None;
                }
                Event::System { .. } | Event::Ping | Event::Note(_) => {}
            }
            see(event);
        };
        match (kind, &event) {
            (_, None) => see(Event::Note(text.trim_end().to_owned())),
            (Kind::Gemini, Some(event)) => gemini::take(self, event, see),
            (Kind::Claude, Some(event)) => claude::take(self, event, see),
            (Kind::Codex, Some(event)) => codex::take(self, event, see),
        }
        self.retried = retried;
    }
}
