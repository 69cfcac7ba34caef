//! Listeners of TCP, with TLS if there is a certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// A client that takes longer to begin is gone.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A certificate with its key.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads both from files in PEM. The certificate comes first in its file, those between it and its authority follow.
    pub(crate) fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.with_context(|| format!("{} cannot be read", certificate.display()))?;
        let secret = PrivateKeyDer::from_pem_file(key)
            .with_context(|| format!("{} cannot be read", key.display()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, secret);
        let both = || {
            format!(
                "{} and {} cannot be used",
                certificate.display(),
                key.display()
            )
        };
        Ok(Self(Arc::new(config.with_context(both)?)))
    }
}

/// A connection of either kind.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

/// Takes connections, and shakes hands with all of them at once: one that is slow keeps nobody waiting.
pub(crate) struct Doors {
    listener: TcpListener,
    tls: Option<Tls>,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl Doors {
    pub(crate) fn new(listener: TcpListener, tls: Option<Tls>) -> Self {
        Self {
            listener,
            tls,
            handshakes: JoinSet::new(),
        }
    }
}

impl Listener for Doors {
    type Io = Box<dyn Connection>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                (stream, from) = Listener::accept(&mut self.listener) => {
                    // Else the end of an answer waits 40 ms for the client to confirm what came before.
                    let _ = stream.set_nodelay(true);
                    let Some(Tls(config)) = &self.tls else { return (Box::new(stream), from) };
                    let handshake = TlsAcceptor::from(Arc::clone(config)).accept(stream);
                    // Whoever speaks another protocol, or does not trust us, is told by TLS itself.
                    self.handshakes.spawn(async move {
                        Some((timeout(HANDSHAKE, handshake).await.ok()?.ok()?, from))
                    });
                }
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Some((stream, from))) = done {
                        return (Box::new(stream), from);
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
