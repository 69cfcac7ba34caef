//! The body of an answer: a stream of events or a message in one piece, and what proves that it is whole.

use std::time::Duration;

use crate::collect::Collect;
use crate::dialect::Dialect;
use crate::http::{Exchange, Stopwatch};
use crate::retry::{Answer, Try};
use crate::sse::Frames;
use crate::{CallError, Finish, Progress, Raw, Reply, Request, Usage, Watch};

/// Reads an answer by its own form: gateways label events as text, and JSON as events. It is an answer whatever happens
/// to the connection after its end mark.
pub fn read(
    exchange: &mut Exchange,
    dialect: &dyn Dialect,
    request: &Request<'_>,
    next: Try<'_>,
    watch: &mut dyn Watch,
) -> Result<Answer, CallError> {
    let limit = dialect.limit(request);
    let read = if Form::of(exchange, watch)? == Form::Events {
        let mut stream = Streamed {
            collect: Collect::new(dialect, next.text),
            ended: None,
        };
        stream
            .read(exchange, watch)
            .map(|()| stream.collect.answer())
    } else {
        let body = exchange.read_to_end(u64::MAX, watch)?;
        in_one_piece(body, limit, dialect, next.continuation)
    };
    let mut answer = read.map_err(|error| cut_after(error, exchange.received()))?;
    let Reply {
        finish,
        text,
        usage,
        ..
    } = &mut answer.reply;
    // Its end was seen, so a word of next year takes nothing from it, unless it may mean the limit.
    let is_at_limit = usage.output_tokens.is_some() && !is_counted(usage, limit);
    if !text.is_empty() && !is_at_limit && matches!(finish, Finish::Unknown { .. }) {
        *finish = Finish::Complete;
    }
    Ok(answer)
}

/// Adds how many bytes had arrived to the error of an answer that breaks off.
pub(crate) fn cut_after(error: CallError, received: u64) -> CallError {
    if matches!(error, CallError::StreamCut { .. }) {
        return CallError::StreamCut { received };
    }
    error
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
    pub(crate) fn of(exchange: &mut Exchange, watch: &mut dyn Watch) -> Result<Self, CallError> {
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
    dialect: &dyn Dialect,
    continuation: Option<&str>,
) -> Result<Answer, CallError> {
    let mut collect = Collect::new(dialect, "");
    collect.message(&body)?;
    let (has_end, has_text) = (collect.reason().is_some(), !collect.text.is_empty());
    let mut answer = collect.answer();
    if !has_end && (!has_text || !is_counted(&answer.reply.usage, limit)) {
        return Err(CallError::BadReply {
            detail: "it does not say how it ended".into(),
        });
    }
    // The text of a continuation is only the last part.
    if continuation.is_none() {
        answer.reply.raw = Raw::Received(body);
    }
    Ok(answer)
}

/// A streamed answer so far, including the part from before.
struct Streamed<'d> {
    collect: Collect<'d>,
    /// How long to wait for more after the end mark, the length of the text, and since when.
    ended: Option<(Duration, usize, Stopwatch)>,
}

impl Streamed<'_> {
    /// Reads to the end of the answer. What has arrived before is reported first, so that observers see the complete reply,
    /// however often it broke off.
    fn read(&mut self, exchange: &mut Exchange, watch: &mut dyn Watch) -> Result<(), CallError> {
        if !self.collect.text.is_empty() {
            watch.progress(Progress::Text(&self.collect.text));
        }
        let mut frames = Frames::default();
        while let Some(bytes) = self.next(exchange, watch)? {
            frames.push(&bytes, |data| self.event(data, watch))?;
        }
        let whole = self.collect.is_over().then(|| self.collect.text.len());
        match (frames.finish(|data| self.event(data, watch)), whole) {
            // What is cut off after the end mark takes nothing from the answer.
            (Err(CallError::StreamCut { .. } | CallError::BadReply { .. }), Some(length)) => {
                self.collect.text.truncate(length);
            }
            (ended, _) => ended?,
        }
        let is_whole_at_end = || {
            let is_framed = exchange.head.is_framed();
            exchange.has_ended() && self.collect.ending.is_whole_at_end(is_framed)
        };
        if self.collect.is_over() || is_whole_at_end() {
            Ok(())
        } else {
            Err(CallError::StreamCut { received: 0 })
        }
    }

    /// The next bytes; `None` if there are no more, or none are worth the wait. Behind the end mark, only more text or another
    /// mark begins the wait anew: comments and empty events keep a connection open for ever. It does not matter then what the
    /// connection does, or that the time is up.
    fn next(
        &mut self,
        exchange: &mut Exchange,
        watch: &mut dyn Watch,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let length = self.collect.text.len();
        let now = self.collect.ending.over().map(|linger| (linger, length));
        if self.ended.map(|(linger, length, _)| (linger, length)) != now {
            self.ended = now.map(|(linger, length)| (linger, length, Stopwatch::start()));
        }
        let left = self
            .ended
            .map(|(linger, _, since)| linger.saturating_sub(since.elapsed()));
        if left == Some(Duration::ZERO) {
            return Ok(None);
        }
        match exchange.next(left, watch) {
            Err(
                CallError::Idle { .. } | CallError::Timeout { .. } | CallError::StreamCut { .. },
            ) if now.is_some() => Ok(None),
            next => next,
        }
    }

    fn event(&mut self, data: &[u8], watch: &mut dyn Watch) -> Result<(), CallError> {
        let shown = self.collect.text.len();
        let read = self.collect.event(data);
        read.inspect_err(|_| watch.progress(Progress::Body(data)))?;
        if let Some(delta) = self
            .collect
            .text
            .get(shown..)
            .filter(|delta| !delta.is_empty())
        {
            watch.progress(Progress::Text(delta));
        }
        Ok(())
    }
}
