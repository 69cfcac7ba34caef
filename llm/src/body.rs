//! The body of an answer: a stream of events or a message in one piece, and what proves that it is whole.

use std::time::Duration;

use crate::client::{Dialect, Stream};
use crate::http::{Exchange, Next, Stopwatch};
use crate::retry::{Answer, Try};
use crate::{CallError, Finish, Progress, Raw, Reply, Request, Text, Unread, Usage, Watch};

/// Reads an answer by its own form: gateways label events as text, and JSON as events. It is an answer whatever happens
/// to the connection after its end mark.
pub fn read(
    exchange: &mut Exchange<'_>,
    dialect: &dyn Dialect,
    request: &Request<'_>,
    next: Try<'_>,
    watch: &mut dyn Watch,
) -> Result<Answer, CallError> {
    let read = if Form::of(exchange, watch)? == Form::Events {
        read_stream(exchange, dialect.stream(), next.text, watch)
    } else {
        dialect.read(
            exchange.read_to_end(u64::MAX, watch)?,
            request,
            next.continuation,
        )
    };
    let mut answer = read.map_err(|unread| unread.after(exchange.received()))?;
    let Reply {
        finish,
        text,
        usage,
        ..
    } = &mut answer.reply;
    // Its end was seen, so a word of next year takes nothing from it, unless it may mean the limit.
    let is_at_limit =
        usage.output_tokens.is_some() && !is_counted(usage, request.max_output_tokens);
    if !text.is_empty() && !is_at_limit && matches!(finish, Finish::Unknown { .. }) {
        *finish = Finish::Complete;
    }
    Ok(answer)
}

/// Whether the service counted the answer to its end, below the limit of the request.
fn is_counted(usage: &Usage, limit: Option<u64>) -> bool {
    usage
        .output_tokens
        .is_some_and(|used| limit.is_none_or(|limit| used < limit))
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Server-sent events.
    Events,
    /// A message in one piece.
    Message,
    /// A page for people, most likely from a proxy.
    Page,
}

impl Form {
    /// Decided by how the body begins; its content type only if that says nothing.
    pub(crate) fn of(
        exchange: &mut Exchange<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Self, CallError> {
        let is = |kind| exchange.head.is(kind);
        let labelled = match (is("text/event-stream"), is("text/html")) {
            (true, _) => Self::Events,
            (_, true) => Self::Page,
            (false, false) => Self::Message,
        };
        let begins = exchange.beginning(BYTE_ORDER_MARK.len() + "event:".len(), watch)?;
        let begins = begins.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begins);
        let fields = [":", "data:", "event:", "id:", "retry:"];
        let is_field = fields
            .iter()
            .any(|field| begins.starts_with(field.as_bytes()));
        Ok(match begins.first() {
            Some(b'{') => Self::Message,
            Some(b'<') => Self::Page,
            _ if is_field => Self::Events,
            _ => labelled,
        })
    }
}

/// Reads an answer that came in one piece. `limit` is the number of tokens that the request allowed.
///
/// Gateways leave out how an answer ended. Its closing bracket proves that all of it has arrived, and its usage that the
/// service counted to its end, below the limit. Without both, or without text, as in the `{}` of overloaded services, it is
/// no answer.
pub fn in_one_piece(
    body: Vec<u8>,
    limit: Option<u64>,
    mut reader: Box<dyn Stream>,
    continuation: Option<&str>,
) -> Result<Answer, Unread> {
    let mut text = Text::default();
    reader.message(crate::json::text(&body)?, &mut text)?;
    let has_end = reader.ending().reason().is_some();
    let unstated = CallError::BadReply {
        detail: "it does not say how it ended".into(),
    };
    if !has_end && text.is_empty() {
        return Err(unstated.into());
    }
    let mut answer = reader.finish(text.end())?;
    let Reply {
        finish_reason,
        usage,
        ..
    } = &answer.reply;
    let is_whole = has_end || (finish_reason.is_none() && is_counted(usage, limit));
    if !is_whole {
        return Err(unstated.into());
    }
    // The text of a continuation is only the last part.
    if continuation.is_none() {
        answer.reply.raw = Raw::Received(body);
    }
    Ok(answer)
}

/// `before` is the part of the reply that has already arrived. It is reported first, so that
/// observers see the complete reply, however often it broke off.
fn read_stream(
    exchange: &mut Exchange<'_>,
    stream: Box<dyn Stream>,
    before: &str,
    watch: &mut dyn Watch,
) -> Result<Answer, Unread> {
    let mut frames = crate::sse::Frames::default();
    let mut merge = Merging {
        stream,
        text: before.to_owned().into(),
        ended: None,
    };
    if !before.is_empty() {
        watch.progress(Progress::Text(before));
    }
    let is_framed = exchange.head.is_framed();
    let is_whole = loop {
        let next = match merge.next(exchange, watch) {
            // The end marker has arrived, so it does not matter what the connection does after it,
            // or that the time is up.
            Err(
                CallError::Idle { .. } | CallError::Timeout { .. } | CallError::StreamCut { .. },
            ) if merge.stream.ending().over().is_some() => Next::Silence,
            next => next?,
        };
        match next {
            Next::Bytes(bytes) => frames.push(&bytes, |data| merge.event(data, watch))?,
            Next::End | Next::Silence => {
                let whole = merge.stream.ending().over().map(|_| merge.text.len());
                match (frames.finish(|data| merge.event(data, watch)), whole) {
                    // The same for anything cut off after the end marker.
                    (
                        Err(Unread::BrokenOff | Unread::Failed(CallError::BadReply { .. })),
                        Some(length),
                    ) => {
                        merge.text.truncate(length);
                    }
                    (ended, _) => ended?,
                }
                let ending = merge.stream.ending();
                break ending.over().is_some()
                    || (next == Next::End && ending.is_whole_at_end(is_framed));
            }
        }
    };
    if !is_whole {
        return Err(Unread::BrokenOff);
    }
    let text = merge.text.end().split_off(before.len());
    Ok(merge.stream.finish(text)?)
}

/// A streamed reply so far, including the part from before.
struct Merging {
    stream: Box<dyn Stream>,
    text: Text,
    /// How long to wait for more after the end mark, the length of the text, and since when.
    ended: Option<(Duration, usize, Stopwatch)>,
}

impl Merging {
    /// What comes next. Behind the end mark, only more text or another mark begins the wait anew: comments and empty
    /// events keep a connection open for ever.
    fn next(
        &mut self,
        exchange: &mut Exchange<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Next, CallError> {
        let length = self.text.len();
        let now = self.stream.ending().over().map(|linger| (linger, length));
        if self.ended.map(|(linger, length, _)| (linger, length)) != now {
            self.ended = now.map(|(linger, length)| (linger, length, Stopwatch::start()));
        }
        match self
            .ended
            .map(|(linger, _, since)| linger.saturating_sub(since.elapsed()))
        {
            Some(Duration::ZERO) => Ok(Next::Silence),
            left => exchange.next(left, watch),
        }
    }

    fn event(&mut self, data: &str, watch: &mut dyn Watch) -> Result<(), Unread> {
        let shown = self.text.len();
        let read = self.stream.take(data, &mut self.text);
        read.inspect_err(|_| watch.progress(Progress::Body(data.as_bytes())))?;
        if let Some(delta) = self.text.get(shown..).filter(|delta| !delta.is_empty()) {
            watch.progress(Progress::Text(delta));
        }
        Ok(())
    }
}
