//! What a CLI has reported so far: the sum of its events.

use serde_json::Value;

use code_commit_model::ModelUsage;

use crate::Denial;

/// The sum of a stream of events.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Collected {
    pub(crate) session: Option<String>,
    pub(crate) model: Option<String>,
    /// What the model said since its last tool call, or the answer that the CLI itself reports.
    pub(crate) answer: String,
    pub(crate) usage: Vec<ModelUsage>,
    /// The cost as calculated by the CLI.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) denials: Vec<Denial>,
    /// The last error that did not itself end the turn.
    pub(crate) error: Option<String>,
    /// Why the CLI's last model call failed, while nothing has come since.
    pub(crate) retried: Option<String>,
    /// When the quota is renewed.
    pub(crate) resets_unix: Option<u64>,
    /// The final event.
    pub(crate) last: Option<Last>,
}

/// The final event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Last {
    /// Whether the CLI calls it an error.
    pub(crate) is_error: bool,
    /// The CLI's name for how it ended.
    pub(crate) kind: Option<String>,
    /// The HTTP status, if the CLI reports it.
    pub(crate) status: Option<u16>,
    /// Why the model stopped.
    pub(crate) stop_reason: Option<String>,
    /// What the CLI says about it.
    pub(crate) message: String,
}

/// The maximum length of an answer: a CLI that never stops must not fill the memory.
const LONGEST_ANSWER: usize = 16 << 20;

impl Collected {
    pub(crate) fn say(&mut self, words: &str) {
        let room = LONGEST_ANSWER.saturating_sub(self.answer.len());
        self.answer.push_str(
            words
                .get(..words.floor_char_boundary(room))
                .unwrap_or_default(),
        );
    }
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// The text at `pointer` as a `String`; empty if there is none.
pub(crate) fn owned(value: &Value, pointer: &str) -> String {
    text(value, pointer).unwrap_or_default().to_owned()
}

pub(crate) fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// The most informative arguments of a tool call, the best first.
const TELLING: [&str; 13] = [
    "file_path",
    "absolute_path",
    "path",
    "dir_path",
    "notebook_path",
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "skill",
    "description",
    "prompt",
];

/// This many characters of an argument are shown.
const SHOWN: usize = 200;

/// The most informative argument of a tool call, in one line.
pub(crate) fn main_argument(arguments: &Value) -> Option<String> {
    let named = TELLING
        .iter()
        .find_map(|name| arguments.get(name)?.as_str());
    let any = || arguments.as_object()?.values().find_map(Value::as_str);
    named.or_else(any).map(one_line)
}

/// The result of a tool, in one line; `None` if it is empty.
pub(crate) fn result_line(text: &str) -> Option<String> {
    Some(one_line(text)).filter(|line| !line.is_empty())
}

/// The first line, shortened.
pub(crate) fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let shown: String = first.chars().take(SHOWN).collect();
    let is_whole = shown.len() == first.len() && lines.next().is_none();
    if is_whole { shown } else { shown + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Kind};
    use serde_json::json;

    #[test]
    fn the_argument_that_says_most_is_one_short_line() {
        let check = |value: Value| main_argument(&value);
        assert_eq!(
            check(json!({"content": "x", "file_path": "a.rs"})).as_deref(),
            Some("a.rs")
        );
        assert_eq!(
            check(json!({"command": "one\ntwo"})).as_deref(),
            Some("one…")
        );
        assert_eq!(check(json!({"odd": 1, "other": "o"})).as_deref(), Some("o"));
        assert_eq!(
            check(json!({"query": "é".repeat(300)})).map(|text| text.chars().count()),
            Some(201)
        );
        assert_eq!(check(json!(7)), None);
    }

    #[test]
    fn an_answer_without_end_is_kept_up_to_its_bound() {
        let mut told = Collected::default();
        let event = format!(
            r#"{{"type":"message","role":"assistant","content":"{}"}}"#,
            "é".repeat(1 << 20)
        );
        (0..20).for_each(|_| told.line(Kind::Gemini, event.as_bytes(), &mut |_| ()));
        assert_eq!(told.answer.len(), LONGEST_ANSWER);
    }

    #[test]
    fn what_is_no_event_is_kept_as_a_note() {
        let mut seen = Vec::new();
        for line in [&b"warning: old node"[..], b"", b"[1]", b"\xff\xfe"] {
            Collected::default().line(Kind::Gemini, line, &mut |event| seen.push(event));
        }
        let note = |text: &str| Event::Note(text.to_owned());
        assert_eq!(
            seen,
            [
                note("warning: old node"),
                note("[1]"),
                note("\u{fffd}\u{fffd}")
            ]
        );
    }
}
