//! A gateway with a certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::scene::{Remote, after, answers, scene};
use crate::work::{carries_out, work};

/// See the README there.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../llm-gemini/tests/tls");

#[test]
fn workers_and_their_programs_reach_a_gateway_whose_authority_they_know() {
    let (certificate, key) = (
        format!("{FILES}/signed.pem"),
        format!("{FILES}/localhost-key.pem"),
    );
    let flags = format!("--tls-certificate {certificate} --tls-key {key}");
    let scene = scene!(answers(1, &after(0)), &flags);
    let remote = Remote::new();
    let address = scene.url.replace("https://localhost", "127.0.0.1");
    // Those that never begin to speak keep nobody waiting.
    let silent: Vec<_> = (0..32)
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    let mut worker = work(&scene, &remote, &remote.order(0));
    worker
        .env("SSL_CERT_FILE", format!("{FILES}/authority.pem"))
        .env_remove("SSL_CERT_DIR");
    carries_out(&scene, &mut worker);
    drop(silent);
    // It does not speak TLS, so it is turned away at once.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    plain
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: gateway\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}
