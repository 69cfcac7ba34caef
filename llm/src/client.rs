//! What all clients have in common: send, read, journal, retry. A [`Dialect`] only translates.

use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::body::{self, Form};
use crate::ending::Ending;
use crate::http::{Agent, Exchange, Head, Post};
use crate::retry::{Answer, Tried, Try, with_retry};
use crate::{
    Attempt, CallError, ErrorBody, Model, ModelId, Progress, Reply, Request, Retry, Secret, Spend,
    Text, Unread, Watch,
};

/// The maximum that is read of an error's body, or of a page in place of a reply; the important
/// part is at the beginning.
const LONGEST_ERROR: usize = 64 << 10;

/// A model of a service: its dialect over HTTP.
#[derive(Debug)]
pub struct Client<D> {
    agent: Arc<Agent>,
    retry: Retry,
    dialect: D,
    /// The service has refused a schema or a system instruction: later calls do without from the beginning.
    is_plain: AtomicBool,
}

/// One model of a service, in its wire format. Pure: bytes in, bytes out. This is all that a new service needs.
pub trait Dialect: Send + Sync {
    /// The model.
    fn id(&self) -> &ModelId;

    /// The HTTP request for `request`.
    fn post(&self, request: &Request<'_>, continuation: Option<&str>) -> Result<Post, CallError>;

    /// The complete reply to `request` in one piece. A continuation of `continuation` has a
    /// [`Raw::Around`](crate::Raw::Around), because its text is only the last part. The reader of a stream reads it.
    fn read(
        &self,
        body: Vec<u8>,
        request: &Request<'_>,
        continuation: Option<&str>,
    ) -> Result<Answer, Unread> {
        body::in_one_piece(body, request.max_output_tokens, self.stream(), continuation)
    }

    /// A reader for a streamed answer.
    fn stream(&self) -> Box<dyn Stream>;

    /// What a status that is no success means. The body may be anything.
    fn failure(&self, head: &Head, body: &[u8]) -> CallError;

    /// The request that counts the tokens of `request`, if the service can do that without billing.
    fn count(&self, _request: &Request<'_>) -> Result<Option<Post>, CallError> {
        Ok(None)
    }

    /// The number of tokens in the reply to [`Dialect::count`].
    fn read_count(&self, _body: &[u8]) -> Result<u64, CallError> {
        Err(CallError::BadReply {
            detail: "no count".into(),
        })
    }

    /// The cheapest request that shows whether key and model work, if there is one.
    fn describe(&self) -> Option<Post> {
        None
    }

    /// Whether the reply to [`Dialect::describe`] has the model.
    fn read_description(&self, _body: &[u8]) -> Result<(), CallError> {
        Ok(())
    }
}

/// Assembles a streamed answer.
pub trait Stream {
    /// Processes the data of one event and appends its text to `text`.
    fn event(&mut self, data: &str, text: &mut Text) -> Result<(), Unread>;

    /// Processes the data of one event. Only objects are events: `[DONE]` ends most streams of the OpenAI dialect, some gateways
    /// add it to all streams, and some send pings as data.
    fn take(&mut self, data: &str, text: &mut Text) -> Result<(), Unread> {
        let data = data.trim();
        if data == "[DONE]" {
            self.ending().mark();
        }
        if data.starts_with('{') {
            self.event(data, text)?;
        }
        Ok(())
    }

    /// Processes a reply that came in one piece: one event, unless the service has another form for it.
    fn message(&mut self, json: &str, text: &mut Text) -> Result<(), Unread> {
        self.event(json, text)
    }

    /// What the reply has said about its end so far.
    fn ending(&mut self) -> &mut Ending;

    /// The reply. Called only after the end mark, or if the caller had enough.
    fn finish(self: Box<Self>, text: String) -> Result<Answer, CallError>;
}

impl<D: Dialect> Client<D> {
    /// A client with the usual retry rules.
    pub fn new(agent: Arc<Agent>, dialect: D) -> Self {
        Self {
            agent,
            retry: Retry::default(),
            dialect,
            is_plain: AtomicBool::new(false),
        }
    }

    /// Replaces the retry rules.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }
}

impl<D: Dialect> Model for Client<D> {
    fn id(&self) -> &ModelId {
        self.dialect.id()
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        call(
            &self.agent,
            &self.dialect,
            &self.retry,
            &self.is_plain,
            request,
            watch,
        )
    }

    fn count_tokens(
        &self,
        request: &Request<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Option<u64>, CallError> {
        let Some(post) = self.dialect.count(request)? else {
            return Ok(None);
        };
        self.dialect
            .read_count(&fetch(&self.agent, &self.dialect, &post, watch)?)
            .map(Some)
    }

    fn check(&self, watch: &mut dyn Watch) -> Result<(), CallError> {
        let Some(post) = self.dialect.describe() else {
            return Ok(());
        };
        self.dialect
            .read_description(&fetch(&self.agent, &self.dialect, &post, watch)?)
    }
}

/// Makes a call in `dialect`, with retries. A service that refuses the request may only refuse its schema or its system
/// instruction. The prompt describes the reply, too, so the request is made once more without the one, and with the other
/// at the beginning of the prompt.
fn call(
    agent: &Agent,
    dialect: &dyn Dialect,
    retry: &Retry,
    is_plain: &AtomicBool,
    request: &Request<'_>,
    watch: &mut dyn Watch,
) -> Result<Reply, CallError> {
    let system = request.system.unwrap_or_default();
    let whole = LazyCell::new(|| [system, request.prompt].concat());
    let plain = || match request.system {
        None => Request {
            schema: None,
            ..*request
        },
        Some(_) => {
            let stable = request.stable + system.len();
            Request {
                schema: None,
                system: None,
                prompt: &whole,
                stable,
                ..*request
            }
        }
    };
    let mut request = if is_plain.load(Ordering::Relaxed) {
        plain()
    } else {
        *request
    };
    let mut first = dialect.post(&request, None)?;
    with_retry(retry, request.time_left, watch, |next, watch| {
        let post = match next.continuation {
            None => Ok(first.clone()),
            token => dialect.post(&request, token),
        };
        let tried = attempt(agent, dialect, &request, post, next, watch);
        let is_refused = matches!(tried.outcome, Err(CallError::BadRequest { .. }));
        if !is_refused || (request.schema, request.system) == (None, None) {
            return tried;
        }
        let Ok(post) = dialect.post(&plain(), None) else {
            return tried;
        };
        (request, first) = (plain(), post);
        is_plain.store(true, Ordering::Relaxed);
        Tried {
            is_simplified: true,
            ..tried
        }
    })
}

/// One attempt and its row in the journal.
fn attempt(
    agent: &Agent,
    dialect: &dyn Dialect,
    request: &Request<'_>,
    post: Result<Post, CallError>,
    next: Try<'_>,
    watch: &mut dyn Watch,
) -> Tried {
    let clock = crate::http::Stopwatch::start();
    let mut row = Attempt::default();
    let outcome = post.and_then(|post| {
        let mut exchange = agent.send(&post, next.time_left, watch)?;
        row.http_status = Some(exchange.head.status);
        row.first_byte_ms = Some(millis(exchange.head.after));
        turn_down_failures(&mut exchange, dialect, &post, watch)?;
        watch.progress(Progress::Connected);
        body::read(&mut exchange, dialect, request, next, watch)
    });
    row.duration_ms = millis(clock.elapsed());
    match &outcome {
        Ok(answer) if answer.continuation.is_some() => row.note_part(&answer.reply),
        Ok(answer) => row.note_reply(&answer.reply),
        Err(error) => row.note_error(error),
    }
    if outcome.is_err()
        && row
            .http_status
            .is_some_and(|status| (200..300).contains(&status))
    {
        // The model did work, whatever the result.
        row.spend = Spend::Unknown;
    }
    Tried {
        outcome,
        attempt: row,
        is_simplified: false,
    }
}

/// Returns an error if the response is not a reply of the service but an error or, most likely from
/// a proxy, a page.
fn turn_down_failures(
    exchange: &mut Exchange<'_>,
    dialect: &dyn Dialect,
    post: &Post,
    watch: &mut dyn Watch,
) -> Result<(), CallError> {
    let is_well = (200..300).contains(&exchange.head.status);
    if is_well && Form::of(exchange, watch)? != Form::Page {
        return Ok(());
    }
    let body = exchange.read_beginning(LONGEST_ERROR, watch)?;
    if is_well {
        return Err(CallError::BadReply {
            detail: ErrorBody::read(&body, &key_of(post)).message,
        });
    }
    Err(dialect.failure(&exchange.head, &body))
}

/// The key itself: its header may hold `Bearer` before it.
fn key_of(post: &Post) -> Secret {
    let value = post
        .key
        .as_ref()
        .map(|(_, value)| value.expose())
        .unwrap_or_default();
    Secret::new(value.rsplit(' ').next().unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One request without retries that is answered by a small document: counting tokens, describing a model. No model thinks
/// about it, so the limit of silence is that of the whole.
fn fetch(
    agent: &Agent,
    dialect: &dyn Dialect,
    post: &Post,
    watch: &mut dyn Watch,
) -> Result<Vec<u8>, CallError> {
    const LONGEST: u64 = 16 << 20;
    let mut exchange = agent.send(post, Some(agent.limits().silence), watch)?;
    turn_down_failures(&mut exchange, dialect, post, watch)?;
    exchange.read_to_end(LONGEST, watch)
}
