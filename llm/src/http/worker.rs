//! The thread that reads and writes for calls.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

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
    jobs: Sender<Job>,
    pieces: Receiver<Piece>,
}

impl Worker {
    /// Starts an idle thread.
    pub(super) fn start() -> Result<Self, CallError> {
        let (jobs, calls) = channel::<Job>();
        let (out, pieces) = sync_channel(AHEAD);
        std::thread::Builder::new()
            .name("llm-http".into())
            .spawn(move || calls.into_iter().for_each(|job| job.run(&out)))
            .map_err(|e| CallError::Setup { source: e.into() })?;
        Ok(Self { jobs, pieces })
    }

    /// Begins a call. It accepts no other until [`Piece::End`] or [`Piece::Failed`].
    pub(super) fn give(&self, job: Job) {
        // If the thread has died, its pieces show it.
        let _ = self.jobs.send(job);
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
    /// `post` over the agent's current connections. Sends nothing yet.
    pub(super) fn new(agent: &Agent, post: &Post) -> Result<Self, CallError> {
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
            agent: agent.live(),
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
        if out.send(Piece::Head(head_of(&response))).is_err() {
            return Ok(());
        }
        let mut body = response
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader();
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
