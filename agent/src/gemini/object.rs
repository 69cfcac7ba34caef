//! The output of Gemini CLI with `--output-format json`: one object at the end, over several lines.
//! Versions without `stream-json` may print this whatever format was requested.

use std::mem::take;

use serde_json::Value;

use crate::collected::{Collected, text};
use crate::lines::LONGEST;
use crate::{Event, gemini};

const EVENTS: [&str; 6] = ["init", "message", "tool_use", "tool_result", "error", "result"];

/// The state of recognizing that object.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Object {
    /// No line looked like its beginning.
    #[default]
    Awaited,
    /// The lines since its possible beginning, to be parsed at the end of the output.
    Begun(String),
    /// The output is a stream, or too long to keep.
    RuledOut,
}

impl Collected {
    /// Keeps this line if it may be part of the object; returns whether it did.
    pub(super) fn keep(&mut self, line: &str, event: Option<&Value>, see: &mut dyn FnMut(Event)) -> bool {
        if event.and_then(|event| text(event, "/type")).is_some_and(|kind| EVENTS.contains(&kind)) {
            self.rule_out(see);
        }
        match &mut self.object {
            Object::Awaited if line.starts_with('{') => self.object = Object::Begun(line.to_owned()),
            Object::Begun(lines) if lines.len() + line.len() < LONGEST => {
                lines.push('\n');
                lines.push_str(line);
            }
            Object::Begun(_) => {
                self.rule_out(see);
                return false;
            }
            Object::Awaited | Object::RuledOut => return false,
        }
        true
    }

    /// After the last line: uses the object as the result, if there is one. Earlier lines, such as
    /// warnings, may begin with a brace, too.
    pub(crate) fn read_object(&mut self, see: &mut dyn FnMut(Event)) {
        let Object::Begun(lines) = take(&mut self.object) else { return };
        match starts(&lines).find_map(result) {
            Some(object) => gemini::take_object(self, &object, see),
            None => note(&lines, see),
        }
    }

    /// If the CLI failed without printing a stream, the object is on standard error, after other
    /// text.
    pub(crate) fn read_error(&mut self, stderr: &str) {
        if self.last.is_none() && self.object == Object::Awaited {
            let error = starts(stderr).filter_map(result).find(|object| object.get("error").is_some());
            error.into_iter().for_each(|object| gemini::take_object(self, &object, &mut |_| ()));
        }
    }

    fn rule_out(&mut self, see: &mut dyn FnMut(Event)) {
        if let Object::Begun(lines) = std::mem::replace(&mut self.object, Object::RuledOut) {
            note(&lines, see);
        }
    }
}

/// The rest of the text from each line that begins with a brace.
fn starts(text: &str) -> impl Iterator<Item = &str> {
    let later = text.match_indices("\n{").map(|(at, _)| at + 1);
    [0].into_iter().chain(later).filter_map(|at| text.get(at..))
}

/// The object at the start of `text`, if it is a result.
fn result(text: &str) -> Option<Value> {
    let object = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    let says = |name: &str| object.get(name).is_some();
    (object.is_object() && ["response", "stats", "error"].into_iter().any(says)).then_some(object)
}

fn note(lines: &str, see: &mut dyn FnMut(Event)) {
    lines.lines().for_each(|line| see(Event::Note(line.trim_end().to_owned())));
}
