//! Certificates, as the program finds them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use code_commit_fixtures::server::Script;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::scenes::commit::Scene;

/// The folder of the self-signed certificate for `localhost` and its key.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../llm-gemini/tests/tls/");
/// Its name in a folder of certificates: `openssl x509 -hash`.
const HASHED: &str = "ce275665.0";

/// Answers `{}` on one connection.
fn serve(listener: &TcpListener) -> std::io::Result<()> {
    let certificate = CertificateDer::from_pem_file(format!("{TLS}localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(format!("{TLS}localhost-key.pem")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ));
    let config = config
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let connection = rustls::ServerConnection::new(config).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, listener.accept()?.0);
    stream.read_exact(&mut [0; 16])?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")?;
    stream.flush()?;
    // Closed by the client: what it has sent is not cut off by a reset.
    stream.sock.shutdown(std::net::Shutdown::Write)?;
    std::io::copy(&mut stream.sock, &mut std::io::sink()).map(drop)
}

#[test]
fn the_certificates_of_the_system_count_and_the_file_that_is_named_takes_their_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(format!("{TLS}localhost.pem"), folder.path().join(HASHED)).unwrap();
    let folder = folder.path().to_str().unwrap();
    let (own, other) = (format!("{TLS}localhost.pem"), format!("{TLS}authority.pem"));
    let scene = Scene::new(Script::new([]));
    for (environment, is_trusted) in [
        (&[][..], false),
        (&[("SSL_CERT_DIR", folder)], true),
        (&[("SSL_CERT_FILE", &*own)], true),
        (
            &[("SSL_CERT_DIR", folder), ("SSL_CERT_FILE", &*other)],
            false,
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!(
            "https://localhost:{}",
            listener.local_addr().unwrap().port()
        );
        let server = std::thread::spawn(move || serve(&listener));
        let args = [
            "doctor",
            "--online",
            "--sandbox",
            "off",
            "--base-url",
            &base,
        ];
        let ran = scene.run_with(
            &args,
            &[&[("GEMINI_API_KEY", "AIza-of-no-use-at-all")], environment].concat(),
        );
        assert_eq!(
            server.join().unwrap().is_ok(),
            is_trusted,
            "{environment:?}: {ran}"
        );
        assert_eq!(
            ran.out.contains("key and model work"),
            is_trusted,
            "{environment:?}: {ran}"
        );
        let why = "no trusted authority has signed the certificate";
        assert_eq!(ran.out.contains(why), !is_trusted, "{environment:?}: {ran}");
    }
}
