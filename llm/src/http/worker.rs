//! The thread that reads and writes for calls.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ureq::http::{HeaderValue, Request, Response, Uri};
use ureq::{AsSendBody, Body, Proxy};

use super::{Agent, Head, Post};
use crate::CallError;

/// The read size, and the size of the pieces that are handed out.
const PIECE: usize = 16 << 10;
/// How many pieces are read ahead of the caller.
const AHEAD: usize = 16;

/// What the thread reports.
#[derive(Debug)]
pub(super) enum Piece {
    Head(Head),
    Bytes(Vec<u8>),
    End,
    Failed(ureq::Error),
}

/// A thread that makes one call after another. When dropped, it ends after its current call.
#[derive(Debug)]
pub(super) struct Worker {
    agent: ureq::Agent,
    jobs: Sender<Job>,
    pieces: Receiver<Piece>,
}

impl Worker {
    /// Starts an idle thread that calls through `agent`.
    pub(super) fn start(agent: ureq::Agent) -> Result<Self, CallError> {
        let (jobs, calls) = channel::<Job>();
        let (out, pieces) = sync_channel(AHEAD);
        std::thread::Builder::new()
            .name("llm-http".into())
            .spawn(move || calls.into_iter().for_each(|job| job.run(&out)))
            .map_err(|e| CallError::Setup { source: e.into() })?;
        Ok(Self {
            agent,
            jobs,
            pieces,
        })
    }

    /// Begins a call. It accepts no other until [`Piece::End`] or [`Piece::Failed`].
    pub(super) fn give(&self, job: Job) {
        // If the thread has died, its pieces show it.
        let _ = self.jobs.send(job);
    }

    /// Closes its connections, even the one in use, and ends it.
    pub(super) fn abort(self) {
        self.agent.shutdown();
    }

    pub(super) fn piece(&self, patience: Duration) -> Result<Piece, RecvTimeoutError> {
        self.pieces.recv_timeout(patience)
    }
}

/// What the thread needs for a call.
#[derive(Debug)]
pub(super) struct Job {
    agent: ureq::Agent,
    proxy: Option<Proxy>,
    request: Request<()>,
    body: Arc<Vec<u8>>,
}

impl Job {
    /// `post` over the connections of `worker`. Sends nothing yet.
    pub(super) fn new(agent: &Agent, worker: &Worker, post: &Post) -> Result<Self, CallError> {
        let setup = |e: ureq::http::Error| CallError::Setup { source: e.into() };
        let uri: Uri = post
            .url
            .parse()
            .map_err(|e: ureq::http::uri::InvalidUri| setup(e.into()))?;
        let method = if post.body.is_empty() { "GET" } else { "POST" };
        let mut builder = Request::builder().method(method).uri(uri);
        for (name, value) in &post.headers {
            builder = builder.header(*name, value);
        }
        if let Some((name, key)) = &post.key {
            let mut value = HeaderValue::from_str(key.expose()).map_err(|e| setup(e.into()))?;
            value.set_sensitive(true);
            builder = builder.header(*name, value);
        }
        let proxy = agent.network.proxy(&post.url).cloned();
        let request = builder.body(()).map_err(setup)?;
        Ok(Self {
            agent: worker.agent.clone(),
            proxy,
            request,
            body: post.body.clone(),
        })
    }

    /// Delivers the response piece by piece. It is not an error if the caller is gone: nobody is
    /// left to tell.
    fn run(self, out: &SyncSender<Piece>) {
        let last = match self.pass_on(out) {
            Ok(()) => Piece::End,
            Err(error) => Piece::Failed(error),
        };
        let _ = out.send(last);
    }

    fn pass_on(self, out: &SyncSender<Piece>) -> Result<(), ureq::Error> {
        let response = self.ask()?;
        let head = head_of(&response);
        let label = head.header("content-encoding").unwrap_or_default();
        let label = label.trim().to_ascii_lowercase();
        if out.send(Piece::Head(head)).is_err() {
            return Ok(());
        }
        let body = response
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader();
        let mut body = decoded(body, &label)?;
        let mut buffer = vec![0; PIECE];
        loop {
            let count = body.read(&mut buffer)?;
            let piece = buffer.get(..count).unwrap_or_default();
            if piece.is_empty() || out.send(Piece::Bytes(piece.to_vec())).is_err() {
                return Ok(());
            }
        }
    }

    fn ask(self) -> Result<Response<Body>, ureq::Error> {
        let Self {
            agent,
            proxy,
            request,
            body,
        } = self;
        if body.is_empty() {
            return agent.run(through(&agent, proxy, request));
        }
        agent.run(through(&agent, proxy, request.map(|()| body.as_slice())))
    }
}

/// The body without its compression, which is told by how it begins: gateways add labels to plain bodies and forget them at
/// compressed ones.
fn decoded(mut body: impl Read + 'static, label: &str) -> io::Result<Box<dyn Read>> {
    let mut begins = Vec::new();
    body.by_ref().take(2).read_to_end(&mut begins)?;
    let kind: [u8; 2] = begins.as_slice().try_into().unwrap_or_default();
    let body = io::Cursor::new(begins).chain(body);
    // RFC 1950: the first byte is the method, and both together are a multiple of 31.
    let is_zlib = kind[0] & 15 == 8 && u16::from_be_bytes(kind).is_multiple_of(31);
    let is_plain = kind
        .iter()
        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    Ok(match (kind, label) {
        ([0x1f, 0x8b], _) => Box::new(MultiGzDecoder::new(body)),
        ([0x28, 0xb5], _) => return Err(encoded("zstd")),
        _ if is_plain => Box::new(body),
        (_, "deflate") if is_zlib => Box::new(ZlibDecoder::new(body)),
        (_, "deflate") => Box::new(DeflateDecoder::new(body)),
        (_, "br" | "zstd" | "compress") => return Err(encoded(label)),
        _ => Box::new(body),
    })
}

/// Recognized by its kind, which no connection gives.
fn encoded(label: &str) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, format!("compressed with {label}"))
}

/// Sends the request through the proxy, if there is one.
fn through<S: AsSendBody>(
    agent: &ureq::Agent,
    proxy: Option<Proxy>,
    request: Request<S>,
) -> Request<S> {
    match proxy {
        Some(proxy) => agent.configure_request(request).proxy(Some(proxy)).build(),
        None => request,
    }
}

fn head_of(response: &Response<Body>) -> Head {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let headers = response
        .headers()
        .iter()
        .filter_map(|(n, v)| Some((n.as_str().to_owned(), text(v)?)));
    Head {
        status: response.status().as_u16(),
        headers: headers.collect(),
        after: Duration::ZERO,
    }
}
