//! The thread that reads and writes for one call.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ureq::http::{HeaderValue, Request, Response};
use ureq::{AsSendBody, Body, Proxy};

use super::{Head, Post};
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

/// A call under way.
#[derive(Debug)]
pub(super) struct Call {
    agent: ureq::Agent,
    pub(super) pieces: Receiver<Piece>,
}

impl Call {
    /// Sends `post` through `agent`, on a thread of its own.
    pub(super) fn start(
        agent: ureq::Agent,
        post: Post,
        proxy: Option<Proxy>,
    ) -> Result<Self, CallError> {
        let request = request(&post).map_err(|e| CallError::Setup { source: e.into() })?;
        let (out, pieces) = sync_channel(AHEAD);
        let caller = agent.clone();
        std::thread::Builder::new()
            .name("llm-http".into())
            .spawn(move || {
                let last = match deliver(&caller, request, &post.body, proxy, &out) {
                    Ok(()) => Piece::End,
                    Err(error) => Piece::Failed(error),
                };
                // If the caller is gone, nobody is left to tell.
                let _ = out.send(last);
            })
            .map_err(|e| CallError::Setup { source: e.into() })?;
        Ok(Self { agent, pieces })
    }
}

impl Drop for Call {
    /// Closes the connection, so that the service stops writing.
    fn drop(&mut self) {
        self.agent.clone().shutdown();
    }
}

fn request(post: &Post) -> Result<Request<()>, ureq::http::Error> {
    let method = if post.body.is_empty() { "GET" } else { "POST" };
    let mut builder = Request::builder().method(method).uri(&post.url);
    for (name, value) in &post.headers {
        builder = builder.header(*name, value);
    }
    if let Some((name, key)) = &post.key {
        let mut value = HeaderValue::from_str(key.expose())?;
        value.set_sensitive(true);
        builder = builder.header(*name, value);
    }
    builder.body(())
}

/// Delivers the response piece by piece, as long as the caller takes them.
fn deliver(
    agent: &ureq::Agent,
    request: Request<()>,
    body: &[u8],
    proxy: Option<Proxy>,
    out: &SyncSender<Piece>,
) -> Result<(), ureq::Error> {
    let response = if body.is_empty() {
        agent.run(through(agent, proxy, request))
    } else {
        agent.run(through(agent, proxy, request.map(|()| body)))
    }?;
    let head = head_of(&response);
    let label = head.header("content-encoding").unwrap_or_default();
    let label = label.trim().to_ascii_lowercase();
    if out.send(Piece::Head(head)).is_err() {
        return Ok(());
    }
    let body = response.into_body().into_with_config().limit(u64::MAX);
    let mut body = decoded(body.reader(), &label)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let count = body.read(&mut buffer)?;
        let piece = buffer.get(..count).unwrap_or_default();
        if piece.is_empty() || out.send(Piece::Bytes(piece.to_vec())).is_err() {
            return Ok(());
        }
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
