//! What a command sends first through a tunnel.
//!
//! One address may serve many hosts, and the first message of TLS names the one that is meant. It must be the one for
//! which the tunnel was asked.

use std::io::{self, Read};
use std::net::IpAddr;

use rustls::server::Acceptor;

use super::request::Request;

/// The first byte of a TLS handshake (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// What was read so far.
    Passes(Vec<u8>),
    /// TLS with another host, or with none.
    OtherHost,
    /// On a port of the web, where plain text could name any host.
    NoTls,
}

/// Reads the first message.
pub(super) fn begin(client: &mut impl Read, request: &Request) -> io::Result<Begun> {
    let (mut acceptor, mut read, mut piece) = (Acceptor::default(), Vec::new(), [0; 4096]);
    loop {
        let count = client.read(&mut piece)?;
        let mut new = piece.get(..count).unwrap_or_default();
        read.extend_from_slice(new);
        if count == 0 || read.first() != Some(&HANDSHAKE) {
            let is_web = matches!(request.port, 443 | 80) && !read.is_empty();
            return Ok(if is_web {
                Begun::NoTls
            } else {
                Begun::Passes(read)
            });
        }
        while !new.is_empty() {
            acceptor.read_tls(&mut new)?;
            match acceptor.accept() {
                Ok(Some(hello)) if names(hello.client_hello().server_name(), &request.host) => {
                    return Ok(Begun::Passes(read));
                }
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Ok(Begun::OtherHost),
            }
        }
    }
}

/// Clients send no address (RFC 6066 §3).
fn names(sent: Option<&str>, host: &str) -> bool {
    match sent {
        Some(sent) => sent.eq_ignore_ascii_case(host),
        None => host.parse::<IpAddr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::tests::client_hello;

    fn begun(sent: &[u8], host: &str, port: u16) -> Begun {
        let request = Request {
            host: host.to_owned(),
            port,
            forward: None,
        };
        // Byte by byte, as a network may deliver it.
        let pieces = sent
            .iter()
            .fold(Box::new(io::empty()) as Box<dyn Read>, |before, byte| {
                Box::new(before.chain(io::Cursor::new([*byte])))
            });
        let (mut whole, mut slow) = (sent, pieces);
        let first = begin(&mut whole, &request).unwrap();
        assert_eq!(begin(&mut slow, &request).unwrap(), first);
        first
    }

    #[test]
    fn tls_passes_only_for_the_host_that_was_asked_for() {
        let hello = client_hello("good.example");
        assert_eq!(
            begun(&hello, "good.example", 443),
            Begun::Passes(hello.clone())
        );
        assert_eq!(
            begun(&hello, "good.example", 8443),
            Begun::Passes(hello.clone())
        );
        assert_eq!(begun(&hello, "other.example", 443), Begun::OtherHost);
        assert_eq!(begun(&hello, "other.example", 8443), Begun::OtherHost);
        assert_eq!(begun(&hello, "192.0.2.1", 443), Begun::OtherHost);
        let nameless = client_hello("192.0.2.1");
        assert_eq!(
            begun(&nameless, "192.0.2.1", 443),
            Begun::Passes(nameless.clone())
        );
        assert_eq!(begun(&nameless, "good.example", 443), Begun::OtherHost);
    }

    #[test]
    fn on_ports_of_the_web_nothing_but_tls_passes() {
        let plain = b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n";
        for port in [80, 443] {
            assert_eq!(begun(plain, "good.example", port), Begun::NoTls);
            assert_eq!(
                begun(b"\x16garbage", "good.example", port),
                Begun::OtherHost
            );
        }
        // The user named the port.
        let request = Request {
            host: "good.example".to_owned(),
            port: 5432,
            forward: None,
        };
        assert_eq!(
            begin(&mut &plain[..], &request).unwrap(),
            Begun::Passes(plain.to_vec())
        );
    }
}
