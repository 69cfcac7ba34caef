//! TLS: which certificates of servers are accepted, and why another one is not.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct};
use rustls::{RootCertStore, SignatureScheme, StreamOwned};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use crate::CallError;

/// Secures the connections of all agents of a run with one configuration, which is made for the first of them.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    /// The certificates to trust; if `None`, those of the system, or the built-in ones if it has none.
    trusted: Option<Vec<CertificateDer<'static>>>,
    config: Arc<OnceLock<Arc<ClientConfig>>>,
}

impl Tls {
    pub(super) fn new(trusted: Option<Vec<CertificateDer<'static>>>) -> Self {
        Self {
            trusted,
            config: Arc::default(),
        }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let trusted = self.trusted.clone();
        let trusted = trusted.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
        let verifier = Arc::new(Verifier::new(trusted)?);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            // The verifier only adds certificates that the user trusts as they are.
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }
}

impl<In: Transport> Connector<In> for Tls {
    type Out = Either<In, Secured>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details
            .uri
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ureq::Error::HostNotFound)?;
        let mut connection = ClientConnection::new(self.config()?, name)?;
        let mut socket =
            TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let sizes = (
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        let buffers = LazyBuffers::new(sizes.0, sizes.1);
        Ok(Some(Either::B(Secured {
            buffers,
            stream: StreamOwned::new(connection, socket),
        })))
    }
}

/// A connection after its handshake.
pub(super) struct Secured {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl std::fmt::Debug for Secured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secured").finish_non_exhaustive()
    }
}

impl Transport for Secured {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

/// Accepts a server's certificate by its chain to a trusted authority or, as OpenSSL does, because the very same
/// certificate is trusted: `openssl req -x509` makes servers authorities of their own, which no chain may end with.
#[derive(Debug)]
struct Verifier {
    chains: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(trusted: Vec<CertificateDer<'static>>) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        if trusted.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let provider = Arc::new(ring::default_provider());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let chains = chains.map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { chains, trusted })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict =
            self.chains
                .verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        match &verdict {
            // The period of validity has been checked before either, the name has not.
            Err(rustls::Error::InvalidCertificate(why))
                if lacks_chain(why) && self.trusted.iter().any(|trusted| trusted == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Whether nobody has signed the certificate but itself, or an authority that is not trusted. Another one may have its
/// name: then the signature does not fit its key.
fn lacks_chain(why: &CertificateError) -> bool {
    use CertificateError as Why;
    if let Why::Other(other) = why {
        return other.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity);
    }
    matches!(
        why,
        Why::UnknownIssuer
            | Why::BadSignature
            | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    )
}

/// What to do if it is not the certificate.
pub(super) const CHECK_ADDRESS: &str =
    "check the base URL: this may be a port without TLS, or a proxy that interferes";

/// The error of a handshake.
pub(super) fn failed(error: &std::io::Error, origin: String) -> CallError {
    let complaint = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref())
        .and_then(complaint);
    let (reason, help) = complaint.unwrap_or_else(|| (error.to_string(), CHECK_ADDRESS));
    CallError::Tls {
        origin,
        help,
        source: reason.into(),
    }
}

/// Why a certificate is not accepted, and what to do about it; `None` if it is something else that failed.
fn complaint(error: &rustls::Error) -> Option<(String, &'static str)> {
    use CertificateError as Why;
    let rustls::Error::InvalidCertificate(why) = error else {
        return None;
    };
    let reason = if lacks_chain(why) {
        "the certificate is neither trusted itself nor signed by a trusted authority".to_owned()
    } else if let Why::Other(other) = why {
        format!("the certificate cannot be used: {}", other.0)
    } else {
        why.to_string()
    };
    let help = if lacks_chain(why) {
        "behind a TLS proxy, or with a certificate of your own, set SSL_CERT_FILE \
         to a PEM file with the authority's certificate or the server's own"
    } else if matches!(
        why,
        Why::NotValidForName | Why::NotValidForNameContext { .. }
    ) {
        "use a name that the certificate has; one of your own needs -addext subjectAltName=DNS:HOST or IP:ADDRESS \
         in openssl req -x509, because its common name does not count"
    } else if matches!(
        why,
        Why::Expired | Why::ExpiredContext { .. } | Why::NotValidYet
    ) || matches!(why, Why::NotValidYetContext { .. })
    {
        "renew the certificate, or set the clock of this machine"
    } else {
        "make a new certificate: openssl req -x509 -addext subjectAltName=DNS:HOST makes one that is accepted"
    };
    Some((reason, help))
}
