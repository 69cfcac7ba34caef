//! The output of each CLI is read by its own module: lines as they arrive, and what only the end explains.

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
        let event = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        match (kind, &event) {
            (Kind::Gemini, event) => gemini::line(self, &text, event.as_ref(), see),
            (Kind::Claude, Some(event)) => claude::take(self, event, see),
            (Kind::Codex, Some(event)) => codex::take(self, event, see),
            (Kind::Claude | Kind::Codex, None) => see(Event::Note(text.trim_end().to_owned())),
        }
    }

    /// Processes what can only be understood at the end of standard output.
    pub(crate) fn finish(&mut self, kind: Kind, see: &mut dyn FnMut(Event)) {
        match kind {
            Kind::Gemini => self.read_object(see),
            Kind::Claude | Kind::Codex => {}
        }
    }

    /// Processes what only standard error says.
    pub(crate) fn finish_with(&mut self, kind: Kind, stderr: &str) {
        match kind {
            Kind::Gemini => self.read_error(stderr),
            Kind::Claude | Kind::Codex => {}
        }
    }
}
