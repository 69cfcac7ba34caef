//! An answer, assembled from one message or from the events of a stream, in the terms that all dialects share.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::ending::Ending;
use crate::http::Head;
use crate::json::{self, Aside};
use crate::retry::Answer;
use crate::text::{Fragment, Text};
use crate::{CallError, Finish, Raw, Reply, Tier, ToolCall, Usage, clean_message, failure};

/// What one event of a stream, or a whole message, adds to an answer.
#[derive(Debug, Default)]
pub struct Event {
    /// What is logged beside the text, by the service's names. If events repeat a value, the last one counts; null is none.
    pub fields: Vec<(&'static str, Aside)>,
    /// The service's word for how the answer ended.
    pub reason: Aside,
    /// More of the answer's text.
    pub text: Fragment,
    /// More of a summary for the reader, which is never part of the answer.
    pub thought: Fragment,
    /// More of the words in which the model, or its service, declined.
    pub refusal: Fragment,
    /// How much of the answer `text` repeats.
    pub span: Span,
    /// The model called a tool.
    pub called_tool: bool,
    /// It has no id of its own: that of an earlier event holds.
    pub is_part: bool,
    /// The stream has ended.
    pub is_end: bool,
    /// The token for requesting the rest of the answer.
    pub continuation: Aside,
    /// An error in place of more; null if there is none.
    pub error: Value,
}

/// How much of an answer the text of an event is. Streams repeat it: what came in smaller pieces is not taken again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// A new piece.
    #[default]
    Delta,
    /// One of its parts, after the pieces of that part.
    Part,
    /// All of it, after everything else.
    Whole,
}

/// Where a dialect reports what, as JSON pointers into the logged [`Event::fields`]; empty where it does not.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The field with the id of the answer.
    pub id: &'static str,
    /// The field with the model that answered.
    pub model: &'static str,
    /// The service tier.
    pub tier: &'static str,
    /// Tokens of input: their sum, if the first is known.
    pub input: &'static [&'static str],
    /// Tokens read from a cache.
    pub cache_read: &'static str,
    /// Tokens written to a cache.
    pub cache_write: &'static str,
    /// Tokens of output: their sum, if the first is known.
    pub output: &'static [&'static str],
    /// Tokens of reasoning.
    pub reasoning: &'static str,
    /// Input and output.
    pub total: &'static str,
    /// Counts of zero are left out: output that is missing beside input is zero.
    pub omits_zero: bool,
}

impl Names {
    /// A service that reports nothing.
    pub const NONE: Self = Self {
        id: "",
        model: "",
        tier: "/",
        input: &[],
        cache_read: "/",
        cache_write: "/",
        output: &[],
        reasoning: "/",
        total: "/",
        omits_zero: false,
    };
}

/// An answer so far.
pub struct Collect<'d> {
    dialect: &'d dyn Dialect,
    fields: Map<String, Value>,
    pub(crate) text: Text,
    thought: Text,
    refusal: Text,
    smallest: Option<Span>,
    called_tool: bool,
    pub(crate) ending: Ending,
    continuation: Option<String>,
    /// The length of the text that came before this part of a continued answer.
    before: usize,
}

impl<'d> Collect<'d> {
    /// An answer that continues `before`.
    pub fn new(dialect: &'d dyn Dialect, before: &str) -> Self {
        Self {
            dialect,
            fields: Map::new(),
            text: before.into(),
            thought: Text::default(),
            refusal: Text::default(),
            smallest: None,
            called_tool: false,
            ending: Ending::default(),
            continuation: None,
            before: before.len(),
        }
    }

    /// Takes the data of one event of a stream. Only objects are events: `[DONE]` ends most streams of the OpenAI dialect,
    /// some gateways add it to all streams, and some send pings as data.
    pub fn event(&mut self, data: &[u8]) -> Result<(), CallError> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.ending.mark();
        }
        if data.starts_with(b"{") {
            self.take(self.dialect.event(data)?)?;
        }
        Ok(())
    }

    /// Takes an answer that came in one piece.
    pub(crate) fn message(&mut self, body: &[u8]) -> Result<(), CallError> {
        let body = json::text(body)?;
        // It is logged as it is, so it has to be JSON throughout: serde reads strings as bytes less strictly.
        json::object::<IgnoredAny>(body)?;
        self.take(self.dialect.message(body)?)
    }

    fn take(&mut self, event: Event) -> Result<(), CallError> {
        if !event.error.is_null() {
            let head = Head {
                status: failure::status_of(&event.error),
                ..Head::default()
            };
            let body = event.error.to_string();
            return Err(failure::of(&head, body.as_bytes(), self.dialect.service()));
        }
        let id = self.dialect.names().id;
        let own = event.fields.iter().find(|(name, _)| *name == id);
        let mut own = own.map_or(Value::Null, |(_, id)| id.0.clone());
        for (name, Aside(value)) in event.fields {
            replace(self.fields.entry(name).or_insert(Value::Null), value);
        }
        if event.is_part && own.is_null() {
            own = self.field(id).clone();
        }
        let is_new = match event.span {
            Span::Whole => self.smallest.is_none(),
            Span::Part | Span::Delta => self.smallest.is_none_or(|smallest| event.span <= smallest),
        };
        let has_text = !event.text.is_empty() || !event.refusal.is_empty();
        if is_new && has_text {
            self.smallest = Some(event.span);
            self.text.push(event.text)?;
            self.refusal.push(event.refusal)?;
        }
        self.thought.push(event.thought)?;
        self.ending.take(&own, &event.reason, is_new && has_text);
        self.called_tool |= event.called_tool;
        if event.is_end {
            self.ending.mark();
        }
        if let Some(token) = event.continuation.as_str() {
            self.continuation = Some(token.to_owned());
        }
        Ok(())
    }

    /// A value that is logged; null if there is none.
    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// The service's last word for how the answer ended.
    pub fn reason(&self) -> Option<&str> {
        self.ending.reason()
    }

    /// Whether the answer is whole wherever its connection breaks.
    pub fn is_over(&self) -> bool {
        self.ending.over().is_some()
    }

    /// The thoughts, if there are any.
    pub fn thought(&self) -> Option<&str> {
        Some(&*self.thought).filter(|thought| !thought.is_empty())
    }

    /// The words of a refusal, if there are any.
    pub fn refusal(&self) -> Option<&str> {
        Some(&*self.refusal).filter(|refusal| !refusal.is_empty())
    }

    /// The answer, or this part of it.
    pub fn answer(mut self) -> Answer {
        self.text.end();
        let (finish, usage) = (self.finish(), self.usage());
        let names = self.dialect.names();
        let mut merged = self.dialect.merged(&self);
        if let Value::Object(merged) = &mut merged {
            let fields = self.fields.iter().filter(|(_, value)| !value.is_null());
            merged.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        }
        let reply = Reply {
            finish_reason: self.reason().map(str::to_owned),
            served_model: json::word(self.fields.get(names.model)),
            response_id: json::word(self.fields.get(names.id)),
            raw: Raw::merged(&merged),
            text: String::from(self.text).split_off(self.before),
            attempts: 1,
            finish,
            usage,
        };
        Answer {
            continuation: self
                .continuation
                .filter(|_| reply.finish == Finish::Endless),
            reply,
        }
    }

    fn finish(&self) -> Finish {
        if self.ending.is_mixed() {
            return Finish::Malformed;
        }
        if let Some(refusal) = self.refusal() {
            let message = clean_message(refusal, &self.dialect.service().key);
            return Finish::Refused { message };
        }
        let finish = self.dialect.finish(self.reason().unwrap_or_default(), self);
        if finish == Finish::Complete && self.called_tool {
            Finish::ToolCall(ToolCall::Unexpected)
        } else if finish == Finish::Complete && self.text.len() == self.before {
            Finish::Empty
        } else {
            finish
        }
    }

    fn usage(&self) -> Usage {
        let (names, fields) = (self.dialect.names(), Value::Object(self.fields.clone()));
        let count = |path: &str| fields.pointer(path).and_then(Value::as_u64);
        let sum = |paths: &[&str], missing: Option<u64>| {
            let mut counts = paths.iter().map(|path| count(path));
            let first = counts.next().flatten().or(missing)?;
            Some(counts.flatten().fold(first, u64::saturating_add))
        };
        let input = sum(names.input, None);
        let zero = input.filter(|_| names.omits_zero).map(|_| 0);
        let tier = fields.pointer(names.tier).and_then(Value::as_str);
        Usage {
            input_tokens: input,
            cache_read_tokens: count(names.cache_read),
            cache_write_tokens: count(names.cache_write),
            output_tokens: sum(names.output, zero),
            reasoning_tokens: count(names.reasoning),
            tier: tier.and_then(Tier::of_word),
        }
        .with_total(count(names.total))
    }
}

/// The last value counts. Of objects it does for each of their fields: not all counts are repeated at the end of a stream.
fn replace(old: &mut Value, new: Value) {
    match (old, new) {
        (_, Value::Null) => {}
        (Value::Object(old), Value::Object(new)) => {
            old.extend(new.into_iter().filter(|(_, value)| !value.is_null()));
        }
        (old, new) => *old = new,
    }
}
