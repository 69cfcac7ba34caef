//! A worker's requests to the gateway.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_llm::http::{Agent, BaseUrl, Limits, Network, Post, Stopwatch};
use code_commit_llm::{Blind, Secret};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::environment;
use crate::relay::{LARGEST, SILENCE};
use crate::wire::ORDER_TOKEN;

/// A gateway that is restarted, or whose database is, comes back within this time.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// One request may wait for a database that does not answer.
const WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_secs(1);

/// Where the gateway is, and who asks.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) agent: Agent,
    pub(crate) base: BaseUrl,
    worker: Secret,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The token is not the order's newest one.
    #[error("a newer attempt has begun this order")]
    Void,
    /// Asking again changes nothing.
    #[error("the gateway refused: {0}")]
    Never(String),
    /// It could not be reached for a while.
    #[error("the gateway cannot be reached: {0}")]
    Lost(String),
}

impl Client {
    /// Trusts the authorities in `SSL_CERT_FILE` if that is set, else the system's.
    pub(crate) fn new(gateway: &str, worker: &str) -> anyhow::Result<Self> {
        let authority = environment::variable("SSL_CERT_FILE");
        let network =
            Network::from_env(|name| authority.as_deref().filter(|_| name == "SSL_CERT_FILE"))?;
        let limits = Limits {
            body: LARGEST,
            // The gateway gives up first.
            silence: SILENCE + WITHIN,
            ..Limits::default()
        };
        Ok(Self {
            agent: Agent::new(network, limits),
            base: gateway
                .parse()
                .context("the gateway's address is not a URL")?,
            worker: Secret::new(worker),
        })
    }

    /// Sends a request until it is answered, for as long as the gateway may be away. `token` is that of an attempt.
    pub(crate) async fn send<T: DeserializeOwned + Send + 'static>(
        self: &Arc<Self>,
        path: &str,
        token: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::Never(error.to_string()))?;
        self.send_bytes(path, token, "application/json", body).await
    }

    /// The same with a body of any kind.
    pub(crate) async fn send_bytes<T: DeserializeOwned + Send + 'static>(
        self: &Arc<Self>,
        path: &str,
        token: Option<&str>,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<T, Failure> {
        let mut headers = vec![("content-type", content_type.to_owned())];
        headers.extend(token.map(|token| (ORDER_TOKEN, token.to_owned())));
        let post = Post {
            url: self.base.join(path),
            headers,
            key: Some(("authorization", bearer(&self.worker))),
            body,
        };

        let clock = Stopwatch::start();
        loop {
            let (client, post) = (Arc::clone(self), post.clone());
            let asked = tokio::task::spawn_blocking(move || client.once(post)).await;
            match asked.unwrap_or_else(|error| Err(Failure::Lost(error.to_string()))) {
                Err(Failure::Lost(_)) if clock.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                answer => {
                    let answer = answer?;
                    return serde_json::from_slice(&answer)
                        .map_err(|error| Failure::Never(error.to_string()));
                }
            }
        }
    }

    fn once(&self, post: Post) -> Result<Vec<u8>, Failure> {
        let lost = |error: code_commit_llm::CallError| Failure::Lost(error.to_string());
        let mut exchange = self
            .agent
            .send(post, Some(WITHIN), &mut Blind)
            .map_err(lost)?;
        let status = exchange.head.status;
        let body = exchange.read_to_end(LARGEST, &mut Blind).map_err(lost)?;
        match status {
            200 => Ok(body),
            410 => Err(Failure::Void),
            408 | 425 | 429 => Err(Failure::Lost(message(&body))),
            400..=499 => Err(Failure::Never(message(&body))),
            _ => Err(Failure::Lost(message(&body))),
        }
    }
}

/// As the value of `authorization`.
pub(crate) fn bearer(token: &Secret) -> Secret {
    Secret::new(&format!("Bearer {}", token.expose()))
}

fn message(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let message = json
        .pointer("/error/message")
        .and_then(serde_json::Value::as_str);
    message.map_or_else(
        || String::from_utf8_lossy(body).chars().take(200).collect(),
        str::to_owned,
    )
}
