//! TLS to the database: with the authority in `PGSSLROOTCERT`, as libpq has it. Whether it is used says `sslmode` in the address.

use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::StoreError;

/// `None` without the variable. A certificate is always checked, also its name: `require` here is libpq's `verify-full`.
pub(crate) fn from_environment() -> Result<Option<MakeRustlsConnect>, StoreError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "part of the database's address, by libpq's convention"
    )]
    let Some(file) = std::env::var("PGSSLROOTCERT")
        .ok()
        .filter(|file| !file.is_empty())
    else {
        return Ok(None);
    };
    trusting(&file)
        .map(Some)
        .map_err(|why| StoreError::Authority { file, why })
}

fn trusting(file: &str) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(MakeRustlsConnect::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ))
}
