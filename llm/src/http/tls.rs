//! TLS: which certificates of servers are accepted, and why another one is not.

use std::sync::Arc;

use rustls::CertificateError;
use rustls::crypto::ring;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::CallError;

/// Trusts the authorities that are named, as PEM, else those of the system, else the built-in ones.
pub(super) fn config(named: Option<&[u8]>) -> TlsConfig {
    let roots = match named.map_or_else(of_system, in_pem) {
        none if none.is_empty() && named.is_none() => RootCerts::WebPki,
        trusted => RootCerts::Specific(Arc::new(trusted)),
    };
    TlsConfig::builder()
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build()
}

fn in_pem(pem: &[u8]) -> Vec<Certificate<'static>> {
    let certificate = |item| {
        if let PemItem::Certificate(certificate) = item {
            Some(certificate)
        } else {
            None
        }
    };
    parse_pem(pem).flatten().filter_map(certificate).collect()
}

fn of_system() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    let certificates = found.iter().map(|der| Certificate::from_der(der));
    certificates.map(|one| one.to_owned()).collect()
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
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "not our enum; what is new in it is a reason like the others"
)]
fn complaint(error: &rustls::Error) -> Option<(String, &'static str)> {
    use CertificateError as Why;
    let rustls::Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        // Another authority may have the name of one: then the signature does not fit its key.
        Why::UnknownIssuer
        | Why::BadSignature
        | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => (
            "no trusted authority has signed the certificate".to_owned(),
            "behind a TLS proxy, or with a certificate of your own, set SSL_CERT_FILE to a PEM file with the authority's \
             certificate",
        ),
        Why::NotValidForName | Why::NotValidForNameContext { .. } => (
            why.to_string(),
            "use a name that the certificate has; one of your own needs -addext subjectAltName=DNS:HOST or IP:ADDRESS \
             in openssl req -x509, because its common name does not count",
        ),
        Why::Expired
        | Why::ExpiredContext { .. }
        | Why::NotValidYet
        | Why::NotValidYetContext { .. } => (
            why.to_string(),
            "renew the certificate, or set the clock of this machine",
        ),
        Why::Other(other) if other.to_string() == "CaUsedAsEndEntity" => (
            "it is the certificate of an authority, not of a server".to_owned(),
            MAKE_ONE,
        ),
        _ => (format!("the certificate cannot be used: {why}"), MAKE_ONE),
    })
}

const MAKE_ONE: &str = "make one that is accepted if SSL_CERT_FILE names it: openssl req -x509 -addext subjectAltName=DNS:HOST \
     -addext basicConstraints=critical,CA:FALSE";
