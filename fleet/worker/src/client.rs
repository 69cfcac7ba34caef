//! Requests to the gateway.

use std::path::{Path, PathBuf};
use std::sync::Arc;
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
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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

/// A way to the gateway.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    /// Of an [`Endpoint::Tcp`].
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    /// A client that trusts the certificates of `authority`, a file in PEM, and no others; without it nothing is encrypted.
    pub fn new(endpoint: Endpoint, authority: Option<&Path>) -> anyhow::Result<Self> {
        let trusting =
            |file: &Path| trust(file).with_context(|| format!("{} cannot be used", file.display()));
        Ok(Self {
            endpoint,
            tls: authority.map(trusting).transpose()?,
        })
    }

    /// Asks for something as people and programs do; what the gateway answers, or why it does not.
    pub async fn ask(&self, request: &impl Serialize) -> anyhow::Result<Vec<u8>> {
        let (status, body) = self
            .send(Method::POST, "/v1/fleet", json(request)?, PATIENCE * 6)
            .await?;
        if status == StatusCode::OK {
            return Ok(body.into());
        }
        bail!(
            "the gateway says {status}: {}",
            String::from_utf8_lossy(&body).trim()
        )
    }

    /// The exported run of an order; `None` if there is none, or none any more.
    pub async fn bundle(&self, order: i64) -> anyhow::Result<Option<Vec<u8>>> {
        let path = format!("/v1/bundle/{order}");
        let (status, body) = self
            .send(Method::GET, &path, Vec::new(), PATIENCE * 6)
            .await?;
        match status {
            StatusCode::OK => Ok(Some(body.into())),
            StatusCode::NOT_FOUND => Ok(None),
            _ => bail!(
                "the gateway says {status}: {}",
                String::from_utf8_lossy(&body).trim()
            ),
        }
    }

    /// The next order, if one comes in the time that `ask` gives.
    pub(crate) async fn lease(&self, ask: &Ask) -> anyhow::Result<Option<Lease>> {
        let patience = PATIENCE + Duration::from_millis(ask.wait_ms);
        let (status, body) = self
            .send(Method::POST, "/v1/lease", json(ask)?, patience)
            .await?;
        match status {
            StatusCode::OK => Ok(Some(
                serde_json::from_slice(&body).context("an order cannot be read")?,
            )),
            StatusCode::NO_CONTENT => Ok(None),
            _ => bail!(
                "the gateway says {status}: {}",
                String::from_utf8_lossy(&body)
            ),
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
    pub(crate) async fn store(
        &self,
        held: Held,
        content: Vec<u8>,
    ) -> anyhow::Result<Result<String, Fence>> {
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
                Endpoint::Tcp { address, .. } => {
                    let stream = TcpStream::connect(address).await?;
                    let Some(tls) = &self.tls else {
                        return exchange(stream, request).await;
                    };
                    let tls = TlsConnector::from(Arc::clone(tls));
                    exchange(tls.connect(name_of(address)?, stream).await?, request).await
                }
            }
        };
        tokio::time::timeout(patience, exchange)
            .await
            .context("the gateway does not answer")?
    }
}

fn trust(authority: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    anyhow::ensure!(!roots.is_empty(), "it holds no certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The name that the certificate of `HOST:PORT` must have.
fn name_of(address: &str) -> anyhow::Result<ServerName<'static>> {
    let host = address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_matches(['[', ']']);
    ServerName::try_from(host.to_owned()).with_context(|| format!("{host} is not a name of a host"))
}

/// An error means that the same request may be taken later.
fn fence(status: StatusCode, body: &Bytes) -> anyhow::Result<Fence> {
    match status {
        StatusCode::NO_CONTENT => Ok(Fence::Held),
        StatusCode::GONE => Ok(Fence::Gone),
        _ if status.is_client_error() => Ok(Fence::Refused(status)),
        _ => bail!(
            "the gateway says {status}: {}",
            String::from_utf8_lossy(body)
        ),
    }
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)>
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    /// See the README there.
    const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../llm-gemini/tests/tls/");

    /// A gateway with a certificate for `localhost` that answers one request with 204. Returns its port.
    async fn gateway() -> u16 {
        let file = |name: &str| format!("{FILES}{name}");
        let chain = vec![CertificateDer::from_pem_file(file("signed.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(file("localhost-key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else {
                return;
            };
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream
                .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .await
                .unwrap();
            stream.shutdown().await.unwrap();
        });
        port
    }

    async fn beat(host: &str, authority: Option<&str>) -> anyhow::Result<Fence> {
        let address = format!("{host}:{}", gateway().await);
        let authority = authority.map(|name| Path::new(FILES).join(name));
        let client = Client::new(
            Endpoint::Tcp {
                address,
                token: "token".into(),
            },
            authority.as_deref(),
        )
        .unwrap();
        let token = "00000000-0000-4000-8000-000000000000".parse().unwrap();
        client.beat(Held { token }).await
    }

    #[tokio::test]
    async fn only_a_gateway_whose_authority_and_name_fit_is_told_anything() {
        assert_eq!(
            beat("localhost", Some("authority.pem")).await.unwrap(),
            Fence::Held
        );
        for (host, authority) in [
            ("localhost", Some("self-signed.pem")),
            ("127.0.0.1", Some("authority.pem")),
            ("localhost", None),
        ] {
            assert!(
                beat(host, authority).await.is_err(),
                "{host}, {authority:?}"
            );
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused_at_the_start() {
        let endpoint = || Endpoint::Unix("socket".into());
        for name in ["nowhere.pem", "README.md"] {
            let error = Client::new(endpoint(), Some(&Path::new(FILES).join(name))).unwrap_err();
            assert!(error.to_string().ends_with("cannot be used"), "{error:#}");
        }
    }
}
