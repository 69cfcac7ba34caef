//! Real TLS and a real proxy, on loopback.

use std::collections::BTreeMap;
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

/// A self-signed certificate for `localhost`.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/localhost-key.pem");
const ANSWER: &str = r#"{"candidates":[{"content":{"parts":[{"text":"secure"}]},"finishReason":"STOP"}]}"#;

fn call(base: &str, env: &[(&str, &str)]) -> Result<Reply, CallError> {
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    let network = Network::from_env(|name| env.get(name).copied()).expect("a network");
    let agent = Arc::new(Agent::new(network, Limits::default()));
    let id = "gemini-x".parse().expect("a name");
    let model =
        Client::new(agent, Gemini::new(base.parse().expect("an address"), id, Secret::new("AIza-test-key")));
    let once = Retry { max_tries: 1, ..Retry::default() };
    model.with_retry(once).call(&Request { prompt: "hi", ..Request::default() }, &mut Notes::default())
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

/// A server with that certificate that answers one connection. Returns its port.
fn secure_server() -> (u16, JoinHandle<std::io::Result<()>>) {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(KEY).expect("a key");
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
        let connection = rustls::ServerConnection::new(Arc::new(config)).map_err(std::io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(connection, listener.accept()?.0);
        read_head(&mut stream)?;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", ANSWER.len());
        stream.write_all(format!("{head}{ANSWER}").as_bytes())?;
        stream.flush()
    });
    (port, thread)
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (port, thread) = secure_server();
    let error = call(&format!("https://localhost:{port}"), &[]).unwrap_err();
    assert_eq!(error.to_string(), format!("no secure connection to https://localhost:{port}"));
    assert_eq!(error.code(), "tls");
    assert!(error.hint().contains("SSL_CERT_FILE"));
    assert!(!error.is_retryable());
    assert!(thread.join().expect("no panic").is_err(), "the request, and the key in it, never arrived");
}

#[test]
fn the_file_of_ssl_cert_file_vouches_for_a_server() {
    let (port, thread) = secure_server();
    let env = [("SSL_CERT_FILE", CERTIFICATE)];
    assert_eq!(call(&format!("https://localhost:{port}"), &env).unwrap().text, "secure");
    thread.join().expect("no panic").expect("served");
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
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_service));
            // Ends when the agent closes its connection.
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
    assert_eq!(call("http://models.invalid", &env).unwrap().text, "by proxy");
    drop(server);
    let asked = thread.join().expect("no panic").expect("served");
    assert!(asked.starts_with("CONNECT models.invalid:80 HTTP/1.1"), "{asked}");
    assert!(asked.to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz"), "{asked}");
    assert!(!asked.contains("AIza"), "{asked}");
}

#[test]
fn a_proxy_that_is_not_there_is_named_and_the_service_is_not_blamed() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address");
    for service in ["http://models.invalid", "https://models.invalid"] {
        let error = call(service, &[("ALL_PROXY", &format!("http://user:pass@{closed}"))]).unwrap_err();
        assert_eq!(error.code(), "proxy-unreachable");
        assert_eq!(error.to_string(), format!("cannot connect to the proxy {closed}"));
        assert!(error.hint().contains("ALL_PROXY") && error.is_retryable());
    }
    let error = call("http://models.invalid", &[("HTTP_PROXY", "http://proxy.invalid:3128")]).unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to the proxy proxy.invalid:3128");
}

#[test]
fn a_proxy_that_refuses_is_an_error_of_its_own() {
    let (address, thread) = proxy(407, String::new());
    let error = call("http://models.invalid", &[("HTTP_PROXY", &address)]).unwrap_err();
    assert_eq!(error.code(), "proxy");
    insta::assert_snapshot!(error, @"the proxy refused the way to http://models.invalid");
    thread.join().expect("no panic").expect("served");
}
