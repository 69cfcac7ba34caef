//! Real TLS and a real proxy, on loopback.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{CallError, Client, Gemini, Model, Reply, Request, Retry, Secret};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A folder of certificates, all of them with one key.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/");
const ANSWER: &str =
    r#"{"candidates":[{"content":{"parts":[{"text":"secure"}]},"finishReason":"STOP"}]}"#;

fn call(base: &str, env: &[(&str, &str)]) -> Result<Reply, CallError> {
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    let network = Network::from_env(|name| env.get(name).copied()).expect("a network");
    let agent = Arc::new(Agent::new(network, Limits::default()));
    let id = "gemini-x".parse().expect("a name");
    let model = Client::new(
        agent,
        Gemini::new(
            base.parse().expect("an address"),
            id,
            Secret::new("AIza-test-key"),
        ),
    );
    let once = Retry {
        max_tries: 1,
        ..Retry::default()
    };
    model.with_retry(once).call(
        &Request {
            prompt: "hi",
            ..Request::default()
        },
        &mut Notes::default(),
    )
}

/// Reads a request up to its last header.
fn read_head(stream: &mut impl Read) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A server with a certificate that answers one connection. Returns its port.
fn secure_server(certificate: &str) -> (u16, JoinHandle<std::io::Result<()>>) {
    let certificate =
        CertificateDer::from_pem_file(format!("{TLS}{certificate}")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(format!("{TLS}localhost-key.pem")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a configuration");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let connection =
            rustls::ServerConnection::new(Arc::new(config)).map_err(std::io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(connection, listener.accept()?.0);
        read_head(&mut stream)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            ANSWER.len()
        );
        stream.write_all(format!("{head}{ANSWER}").as_bytes())?;
        stream.flush()
    });
    (port, thread)
}

#[test]
fn a_certificate_counts_by_its_chain() {
    for (certificate, trusted, host) in [
        ("localhost.pem", "localhost.pem", "localhost"),
        ("signed.pem", "authority.pem", "localhost"),
    ] {
        let (port, thread) = secure_server(certificate);
        let reply = call(
            &format!("https://{host}:{port}"),
            &[("SSL_CERT_FILE", &format!("{TLS}{trusted}"))],
        );
        assert_eq!(
            reply.unwrap().text,
            "secure",
            "{certificate}, {trusted}, {host}"
        );
        thread.join().expect("no panic").expect("served");
    }
}

#[test]
fn a_certificate_that_is_refused_is_explained_and_the_key_is_not_sent() {
    let mut shown = String::new();
    for (certificate, trusted, host) in [
        ("self-signed.pem", None, "localhost"),
        ("localhost.pem", None, "localhost"),
        ("self-signed.pem", Some("self-signed.pem"), "localhost"),
        ("signed.pem", Some("localhost.pem"), "localhost"),
        ("signed.pem", Some("signed.pem"), "localhost"),
        ("localhost.pem", Some("localhost.pem"), "127.0.0.1"),
        ("common-name.pem", Some("common-name.pem"), "localhost"),
        ("expired.pem", Some("expired.pem"), "localhost"),
    ] {
        let (port, thread) = secure_server(certificate);
        let trusted = trusted.map(|trusted| format!("{TLS}{trusted}"));
        let env: Vec<_> = trusted
            .iter()
            .map(|trusted| ("SSL_CERT_FILE", &**trusted))
            .collect();
        let error = call(&format!("https://{host}:{port}"), &env).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("no secure connection to https://{host}:{port}")
        );
        assert!(error.code() == "tls" && !error.is_retryable());
        assert!(
            thread.join().expect("no panic").is_err(),
            "the request never arrived"
        );
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        // The times follow.
        let reason = reason
            .split(": verification time")
            .next()
            .unwrap_or_default();
        shown.push_str(&format!("{certificate}: {reason}\n  {}\n", error.hint()));
    }
    insta::assert_snapshot!(shown, @r#"
    self-signed.pem: it is the certificate of an authority, not of a server
      make one that is accepted if SSL_CERT_FILE names it: openssl req -x509 -addext subjectAltName=DNS:HOST -addext basicConstraints=critical,CA:FALSE
    localhost.pem: no trusted authority has signed the certificate
      behind a TLS proxy, or with a certificate of your own, set SSL_CERT_FILE to a PEM file with the authority's certificate
    self-signed.pem: it is the certificate of an authority, not of a server
      make one that is accepted if SSL_CERT_FILE names it: openssl req -x509 -addext subjectAltName=DNS:HOST -addext basicConstraints=critical,CA:FALSE
    signed.pem: no trusted authority has signed the certificate
      behind a TLS proxy, or with a certificate of your own, set SSL_CERT_FILE to a PEM file with the authority's certificate
    signed.pem: no trusted authority has signed the certificate
      behind a TLS proxy, or with a certificate of your own, set SSL_CERT_FILE to a PEM file with the authority's certificate
    localhost.pem: certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("localhost")
      use a name that the certificate has; one of your own needs -addext subjectAltName=DNS:HOST or IP:ADDRESS in openssl req -x509, because its common name does not count
    common-name.pem: certificate not valid for name "localhost"; certificate is not valid for any names (according to its subjectAltName extension)
      use a name that the certificate has; one of your own needs -addext subjectAltName=DNS:HOST or IP:ADDRESS in openssl req -x509, because its common name does not count
    expired.pem: certificate expired
      renew the certificate, or set the clock of this machine
    "#);
}

#[test]
fn https_goes_through_the_proxy_to_a_server_whose_certificate_is_checked() {
    for (host, text) in [("models.invalid", Some("secure")), ("other.invalid", None)] {
        let (port, server) = secure_server("elsewhere.pem");
        let (address, proxy) = proxy(200, format!("127.0.0.1:{port}"));
        let trusted = format!("{TLS}elsewhere.pem");
        let env = [
            ("HTTPS_PROXY", &*address),
            ("SSL_CERT_FILE", &trusted),
            ("NO_PROXY", "models.example"),
        ];
        let reply = call(&format!("https://{host}"), &env);
        assert_eq!(
            reply.ok().as_ref().map(|reply| &*reply.text),
            text,
            "{host}"
        );
        let asked = proxy.join().expect("no panic").expect("served");
        assert!(
            asked.starts_with(&format!("CONNECT {host}:443 HTTP/1.1")),
            "{asked}"
        );
        assert_eq!(
            server.join().expect("no panic").is_ok(),
            text.is_some(),
            "{host}"
        );
    }
}

#[test]
fn plain_speech_on_a_secure_port_is_a_tls_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
        // Wait until the client closes, so that a reset does not discard the answer.
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    let error = call(&format!("https://localhost:{port}"), &[]).unwrap_err();
    assert_eq!(error.code(), "tls");
    thread.join().expect("no panic").expect("served");
}

/// A proxy for one connection that answers CONNECT with `status` and, if that is 200, connects to
/// `target` whatever the request says. Returns its address and, when joined, the request.
fn proxy(status: u16, target: String) -> (String, JoinHandle<std::io::Result<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let thread = std::thread::spawn(move || {
        let mut client = listener.accept()?.0;
        let head = read_head(&mut client)?;
        client.write_all(format!("HTTP/1.1 {status} Proxy\r\n\r\n").as_bytes())?;
        if status == 200 {
            let mut service = TcpStream::connect(target.trim_start_matches("http://"))?;
            let (mut from_client, mut to_service) = (client.try_clone()?, service.try_clone()?);
            std::thread::spawn(move || {
                std::io::copy(&mut from_client, &mut to_service)?;
                to_service.shutdown(std::net::Shutdown::Write)
            });
            // Ends when the service closes its connection, which it does when the agent does.
            let _ = std::io::copy(&mut service, &mut client);
        }
        Ok(head)
    });
    (address, thread)
}

#[test]
fn a_service_is_reached_through_the_proxy() {
    let server = Server::start(Script::new([Step::text("by proxy")])).unwrap();
    let (address, thread) = proxy(200, server.origin().to_owned());
    let env = [("HTTP_PROXY", format!("http://user:pass@{address}"))];
    let env: Vec<_> = env.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(
        call("http://models.invalid", &env).unwrap().text,
        "by proxy"
    );
    drop(server);
    let asked = thread.join().expect("no panic").expect("served");
    assert!(
        asked.starts_with("CONNECT models.invalid:80 HTTP/1.1"),
        "{asked}"
    );
    assert!(
        asked
            .to_ascii_lowercase()
            .contains("proxy-authorization: basic dxnlcjpwyxnz"),
        "{asked}"
    );
    assert!(!asked.contains("AIza"), "{asked}");
}

#[test]
fn a_proxy_that_is_not_there_is_named_and_the_service_is_not_blamed() {
    let closed = TcpListener::bind(("127.0.0.1", 0))
        .expect("a port")
        .local_addr()
        .expect("an address");
    for service in ["http://models.invalid", "https://models.invalid"] {
        let error = call(
            service,
            &[("ALL_PROXY", &format!("http://user:pass@{closed}"))],
        )
        .unwrap_err();
        assert_eq!(error.code(), "proxy-unreachable");
        assert_eq!(
            error.to_string(),
            format!("cannot connect to the proxy {closed}")
        );
        assert!(error.hint().contains("ALL_PROXY") && error.is_retryable());
    }
    let error = call(
        "http://models.invalid",
        &[("HTTP_PROXY", "http://proxy.invalid:3128")],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot connect to the proxy proxy.invalid:3128"
    );
}

#[test]
fn a_proxy_that_refuses_is_an_error_of_its_own() {
    let (address, thread) = proxy(407, String::new());
    let error = call("http://models.invalid", &[("HTTP_PROXY", &address)]).unwrap_err();
    assert_eq!(error.code(), "proxy");
    insta::assert_snapshot!(error, @"the proxy refused to connect to http://models.invalid");
    thread.join().expect("no panic").expect("served");
}
