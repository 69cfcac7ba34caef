//! One request and its answer.

use std::io::ErrorKind;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::call::{Call, Piece};
use super::{Agent, Limits, Post, origin_of};
use crate::{CallError, Cause, Progress, Watch};

/// How often we check whether the caller still wants the reply.
const GLANCE: Duration = Duration::from_millis(50);

/// An answer that has begun. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct Exchange {
    /// Status and headers.
    pub head: Head,
    call: Call,
    /// The end of the answer has come.
    has_ended: bool,
    limits: Limits,
    /// For the whole attempt; `None` if only silence ends it.
    within: Option<Duration>,
    origin: String,
    /// Host and port of the proxy, if one is used.
    proxy: Option<String>,
    started: Stopwatch,
    last: Stopwatch,
    received: u64,
    /// Bytes of the body that were looked at and not yet taken.
    ahead: Vec<u8>,
}

/// Status and headers of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case; values that are not text are left out.
    pub headers: Vec<(String, String)>,
    /// Time since the start of the attempt.
    pub after: Duration,
}

impl Head {
    /// The first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the end of the body is told from a broken connection.
    pub fn is_framed(&self) -> bool {
        ["content-length", "transfer-encoding"]
            .iter()
            .any(|name| self.header(name).is_some())
    }

    /// Is the body of this media type?
    pub fn is(&self, media_type: &str) -> bool {
        let value = self.header("content-type").unwrap_or_default();
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case(media_type)
    }
}

impl Exchange {
    pub(super) fn open(
        agent: &Agent,
        post: Post,
        within: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Self, CallError> {
        if watch.cancelled() {
            return Err(CallError::Cancelled);
        }
        let (origin, proxy) = (origin_of(&post.url), agent.network.proxy(&post.url));
        let call = Call::start(agent.connect(&post.url), post, proxy.cloned())?;
        let started = Stopwatch::start();
        let mut exchange = Self {
            head: Head::default(),
            call,
            has_ended: false,
            limits: agent.limits,
            within,
            origin,
            proxy: proxy.map(|proxy| format!("{}:{}", proxy.host(), proxy.port())),
            started,
            last: started,
            received: 0,
            ahead: Vec::new(),
        };
        exchange.head = exchange.wait_for_head(watch)?;
        Ok(exchange)
    }

    fn wait_for_head(&mut self, watch: &mut dyn Watch) -> Result<Head, CallError> {
        match self.receive(None, watch)? {
            Some(Piece::Head(mut head)) => {
                head.after = self.elapsed();
                Ok(head)
            }
            Some(Piece::Failed(error)) => Err(self.failed_before_head(error)),
            Some(Piece::Bytes(_) | Piece::End) | None => Err(self.cut()),
        }
    }

    /// The next bytes; `None` at the end, and after `patience`, which limits the wait if the caller could do without more.
    pub fn next(
        &mut self,
        patience: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Vec<u8>>, CallError> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        if self.has_ended {
            return Ok(None);
        }
        let Some(piece) = self.receive(patience, watch)? else {
            return Ok(None);
        };
        match piece {
            Piece::Bytes(bytes) => {
                self.received += bytes.len() as u64;
                if self.received > self.limits.body {
                    let limit = self.limits.body;
                    return Err(CallError::BodyTooLarge { limit });
                }
                watch.bytes(&bytes);
                watch.progress(Progress::Bytes(self.received));
                Ok(Some(bytes))
            }
            Piece::End => {
                self.has_ended = true;
                Ok(None)
            }
            Piece::Failed(ureq::Error::Io(io)) if io.kind() == ErrorKind::Unsupported => {
                let detail = io.to_string();
                Err(CallError::BadReply { detail })
            }
            Piece::Failed(_) | Piece::Head(_) => Err(self.cut()),
        }
    }

    /// Whether the end of the body has come.
    pub fn has_ended(&self) -> bool {
        self.has_ended && self.ahead.is_empty()
    }

    /// How the body begins, without white space: at least `count` bytes unless it is shorter. They
    /// are still to be read.
    pub fn beginning(&mut self, count: usize, watch: &mut dyn Watch) -> Result<&[u8], CallError> {
        let mut ahead = std::mem::take(&mut self.ahead);
        let mut blank = 0;
        loop {
            let begins = ahead.get(blank..).unwrap_or_default().trim_ascii_start();
            blank = ahead.len() - begins.len();
            if begins.len() >= count {
                break;
            }
            let Some(bytes) = self.next(None, watch)? else {
                break;
            };
            ahead.extend_from_slice(&bytes);
        }
        self.ahead = ahead;
        Ok(self.ahead.get(blank..).unwrap_or_default())
    }

    /// The whole body; an error if it is longer than `limit`.
    pub fn read_to_end(&mut self, limit: u64, watch: &mut dyn Watch) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next(None, watch)? {
            watch.progress(Progress::Body(&bytes));
            body.extend_from_slice(&bytes);
            if body.len() as u64 > limit {
                return Err(CallError::BodyTooLarge { limit });
            }
        }
        Ok(body)
    }

    /// At most the first `limit` bytes of the body. This is used to explain an error, so it is not
    /// another error if the connection breaks or stalls. Fails only if the caller cancels.
    pub fn read_beginning(
        &mut self,
        limit: usize,
        watch: &mut dyn Watch,
    ) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while body.len() < limit {
            match self.next(Some(self.limits.silence), watch) {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Err(CallError::Cancelled) => return Err(CallError::Cancelled),
                Ok(None) | Err(_) => break,
            }
        }
        body.truncate(limit);
        Ok(body)
    }

    /// Time since the attempt began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Bytes of the body so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Waits for the next piece; `None` if `patience` runs out.
    fn receive(
        &mut self,
        patience: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Piece>, CallError> {
        let began = Stopwatch::start();
        loop {
            if watch.cancelled() {
                return Err(CallError::Cancelled);
            }
            let glance = patience.map_or(GLANCE, |p| p.min(GLANCE));
            match self.call.pieces.recv_timeout(glance.min(self.left()?)) {
                Ok(piece) => {
                    self.last = Stopwatch::start();
                    return Ok(Some(piece));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.cut()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if patience.is_some_and(|p| began.elapsed() >= p) {
                return Ok(None);
            }
        }
    }

    /// Time until the nearer of the two limits; an error if it has passed.
    fn left(&self) -> Result<Duration, CallError> {
        // Measured in this order, so that silence is named where both limits pass at once.
        let call = self
            .within
            .map(|within| within.saturating_sub(self.started.elapsed()));
        let silence = self.limits.silence.saturating_sub(self.last.elapsed());
        if silence.is_zero() {
            return Err(self.silent());
        }
        match (call, self.within) {
            (Some(Duration::ZERO), Some(after)) => Err(CallError::Timeout { after }),
            (call, _) => Ok(call.map_or(silence, |call| call.min(silence))),
        }
    }

    fn silent(&self) -> CallError {
        CallError::Idle {
            after: self.limits.silence,
        }
    }

    fn cut(&self) -> CallError {
        CallError::StreamCut {
            received: self.received,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "not our enum; what is new in it is a broken connection"
    )]
    fn failed_before_head(&self, error: ureq::Error) -> CallError {
        let origin = self.origin.clone();
        match error {
            ureq::Error::ConnectProxyFailed(message) => CallError::Proxy { origin, message },
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => CallError::Tls {
                origin,
                help: super::tls::CHECK_ADDRESS,
                source: error.into(),
            },
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                self.no_connection(error.into())
            }
            ureq::Error::Timeout(_) => self.silent(),
            ureq::Error::Io(io) => match io.kind() {
                // Errors of rustls about a certificate have this kind.
                ErrorKind::InvalidData => super::tls::failed(&io, origin),
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::NotConnected => CallError::Dropped {
                    origin,
                    source: io.into(),
                },
                _ => self.no_connection(io.into()),
            },
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                CallError::BadReply {
                    detail: error.to_string(),
                }
            }
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => CallError::Setup {
                source: error.into(),
            },
            other => CallError::Dropped {
                origin,
                source: other.into(),
            },
        }
    }

    /// Through a proxy, we connect only to the proxy, which connects to the service.
    fn no_connection(&self, source: Cause) -> CallError {
        match self.proxy.clone() {
            Some(proxy) => CallError::ProxyUnreachable { proxy, source },
            None => CallError::Connect {
                origin: self.origin.clone(),
                source,
            },
        }
    }
}

/// Measures one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "the clock of the model clients")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
