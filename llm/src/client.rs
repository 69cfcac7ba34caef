//! What all clients have in common: send, read, journal, retry. A [`Dialect`] only translates.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::body::{self, Form};
use crate::dialect::Dialect;
use crate::http::{Agent, Exchange, Post, Stopwatch};
use crate::json::{self, Aside};
use crate::retry::{Tried, Try, with_retry};
use crate::{
    Attempt, CallError, ErrorBody, Model, ModelId, Progress, Reply, Request, Retry, Spend, Watch,
    failure,
};

/// The maximum that is read of an error's body, or of a page in place of a reply; the important
/// part is at the beginning.
const LONGEST_ERROR: usize = 64 << 10;

/// A model of a service: its dialect over HTTP.
#[derive(Debug)]
pub struct Client {
    agent: Arc<Agent>,
    retry: Retry,
    dialect: Box<dyn Dialect>,
    /// The service has refused a schema or a system instruction: later calls do without from the beginning.
    is_plain: AtomicBool,
}

impl Client {
    /// A client with the usual retry rules.
    pub fn new(agent: Arc<Agent>, dialect: impl Dialect + 'static) -> Self {
        Self {
            agent,
            retry: Retry::default(),
            dialect: Box::new(dialect),
            is_plain: AtomicBool::new(false),
        }
    }

    /// Replaces the retry rules.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// One attempt and its row in the journal.
    fn attempt(&self, request: &Request<'_>, next: Try<'_>, watch: &mut dyn Watch) -> Tried {
        let clock = Stopwatch::start();
        let mut row = Attempt::default();
        let post = self.dialect.post(request, next.continuation);
        let outcome = post.and_then(|post| {
            let mut exchange = self.agent.send(post, next.time_left, watch)?;
            row.http_status = Some(exchange.head.status);
            row.first_byte_ms = Some(millis(exchange.head.after));
            self.turn_down_failures(&mut exchange, watch)?;
            watch.progress(Progress::Connected);
            body::read(&mut exchange, &*self.dialect, request, next, watch)
        });
        row.duration_ms = millis(clock.elapsed());
        match &outcome {
            Ok(answer) if answer.continuation.is_some() => row.note_part(&answer.reply),
            Ok(answer) => row.note_reply(&answer.reply),
            Err(error) => {
                row.note_error(error);
                if row.http_status.is_some_and(is_well) {
                    // The model did work, whatever the result.
                    row.spend = Spend::Unknown;
                }
            }
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
        &self,
        exchange: &mut Exchange,
        watch: &mut dyn Watch,
    ) -> Result<(), CallError> {
        let is_well = is_well(exchange.head.status);
        if is_well && Form::of(exchange, watch)? != Form::Page {
            return Ok(());
        }
        let (body, service) = (
            exchange.read_beginning(LONGEST_ERROR, watch)?,
            self.dialect.service(),
        );
        if is_well {
            let detail = ErrorBody::read(&body, &service.key).message;
            return Err(CallError::BadReply { detail });
        }
        Err(failure::of(&exchange.head, &body, service))
    }

    /// One request without retries that is answered by a small document: counting tokens, describing a model. No model thinks
    /// about it, so the limit of silence is that of the whole.
    fn fetch<T>(
        &self,
        post: Post,
        watch: &mut dyn Watch,
        read: impl FnOnce(&[u8]) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        const LONGEST: u64 = 16 << 20;
        let within = Some(self.agent.limits().silence);
        let mut exchange = self.agent.send(post, within, watch)?;
        self.turn_down_failures(&mut exchange, watch)?;
        let body = exchange.read_to_end(LONGEST, watch)?;
        read(&body).map_err(|error| body::cut_after(error, exchange.received()))
    }
}

impl Model for Client {
    fn id(&self) -> &ModelId {
        &self.dialect.service().id
    }

    /// A service that refuses the request may only refuse its schema or its system instruction. The prompt describes the
    /// reply, too, so the request is made once more without the one, and with the other at the beginning of the prompt.
    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        let system = request.system.unwrap_or_default();
        let whole = LazyCell::new(|| [system, request.prompt].concat());
        let plain = || Request {
            schema: None,
            system: None,
            prompt: &whole,
            stable: request.stable + system.len(),
            ..*request
        };
        let mut asked = if self.is_plain.load(Ordering::Relaxed) {
            plain()
        } else {
            *request
        };
        with_retry(&self.retry, request.time_left, watch, |next, watch| {
            let tried = self.attempt(&asked, next, watch);
            let is_refused = matches!(tried.outcome, Err(CallError::BadRequest { .. }));
            let is_simplified = is_refused && (asked.schema, asked.system) != (None, None);
            if is_simplified {
                asked = plain();
                self.is_plain.store(true, Ordering::Relaxed);
            }
            Tried {
                is_simplified,
                ..tried
            }
        })
    }

    fn count_tokens(
        &self,
        request: &Request<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Option<u64>, CallError> {
        let Some((post, name)) = self.dialect.count(request)? else {
            return Ok(None);
        };
        let read = |body: &[u8]| {
            let counted: BTreeMap<String, Aside> = json::object(body)?;
            let count = counted.get(name).and_then(|count| count.as_u64());
            count.ok_or_else(|| CallError::BadReply {
                detail: format!("no {name}"),
            })
        };
        self.fetch(post, watch, read).map(Some)
    }

    fn check(&self, watch: &mut dyn Watch) -> Result<(), CallError> {
        let Some(post) = self.dialect.describe() else {
            return Ok(());
        };
        self.fetch(post, watch, |body| self.dialect.read_description(body))
    }
}

fn is_well(status: u16) -> bool {
    (200..300).contains(&status)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
