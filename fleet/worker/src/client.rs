//! Requests to the gateway.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use code_commit_fleet_wire::{Ask, Finish, Held, Lease, Lost, Stored};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Beyond what the gateway was asked to wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the gateway is.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// On this machine.
    Unix(PathBuf),
    /// On another one.
    Tcp {
        /// Host and port.
        address: String,
        /// Its token.
        token: String,
    },
}

/// The gateway's answer to a request with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    Held,
    Gone,
    /// It does not take such a request, and never will: the request is too large, or of another version.
    Refused(StatusCode),
}

#[derive(Debug)]
pub(crate) struct Client {
    endpoint: Endpoint,
}

impl Client {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The next order, if one comes in the time that `ask` gives.
    pub(crate) async fn lease(&self, ask: &Ask) -> anyhow::Result<Option<Lease>> {
        let patience = PATIENCE + Duration::from_millis(ask.wait_ms);
        let (status, body) = self.send(Method::POST, "/v1/lease", json(ask)?, patience).await?;
        match status {
            StatusCode::OK => Ok(Some(serde_json::from_slice(&body).context("an order cannot be read")?)),
            StatusCode::NO_CONTENT => Ok(None),
            _ => bail!("the gateway says {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    pub(crate) async fn beat(&self, held: Held) -> anyhow::Result<Fence> {
        self.tell("/v1/beat", &held).await
    }

    pub(crate) async fn finish(&self, finish: &Finish) -> anyhow::Result<Fence> {
        self.tell("/v1/finish", finish).await
    }

    pub(crate) async fn lost(&self, lost: &Lost) -> anyhow::Result<Fence> {
        self.tell("/v1/lost", lost).await
    }

    /// Stores bytes; their SHA-256 if they were taken.
    pub(crate) async fn store(&self, held: Held, content: Vec<u8>) -> anyhow::Result<Result<String, Fence>> {
        let path = format!("/v1/artifact/{}", held.token);
        let (status, body) = self.send(Method::PUT, &path, content, PATIENCE * 6).await?;
        if status == StatusCode::OK {
            return Ok(Ok(serde_json::from_slice::<Stored>(&body)?.sha256));
        }
        fence(status, &body).map(Err)
    }

    async fn tell(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Fence> {
        let (status, body) = self.send(Method::POST, path, json(body)?, PATIENCE).await?;
        fence(status, &body)
    }

    /// A gateway that is stopped takes connections and says nothing, so there is a limit for the whole.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        patience: Duration,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "gateway")
            .header(header::CONTENT_TYPE, "application/json");
        if let Endpoint::Tcp { token, .. } = &self.endpoint {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(parent) = code_commit_fleet_traces::carry(&tracing::Span::current()) {
            request = request.header(code_commit_fleet_traces::TRACEPARENT, parent);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let exchange = async {
            match &self.endpoint {
                Endpoint::Unix(path) => exchange(UnixStream::connect(path).await?, request).await,
                Endpoint::Tcp { address, .. } => exchange(TcpStream::connect(address).await?, request).await,
            }
        };
        tokio::time::timeout(patience, exchange).await.context("the gateway does not answer")?
    }
}

/// An error means that the same request may be taken later.
fn fence(status: StatusCode, body: &Bytes) -> anyhow::Result<Fence> {
    match status {
        StatusCode::NO_CONTENT => Ok(Fence::Held),
        StatusCode::GONE => Ok(Fence::Gone),
        _ if status.is_client_error() => Ok(Fence::Refused(status)),
        _ => bail!("the gateway says {status}: {}", String::from_utf8_lossy(body)),
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the sender, and says what is wrong through it.
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((status, body))
}

fn json(body: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec(body)?)
}
