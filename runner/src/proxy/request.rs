//! The head of a request to a proxy (RFC 9112).

use std::io::{self, Read as _};
use std::net::TcpStream;

/// A longer head is refused.
const MOST_BYTES: usize = 1 << 16;
/// So is one with more lines.
const MOST_HEADERS: usize = 128;

/// What a client asks of a proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// In lower case, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The head for the server; `None` for a tunnel (`CONNECT`).
    pub(super) forward: Option<Vec<u8>>,
}

/// Reads to the end of the head; gives the head, and what came behind it.
pub(super) fn head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    while bytes.len() < MOST_BYTES {
        let count = client.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let searched = bytes.len().saturating_sub(END.len());
        bytes.extend(piece.iter().take(count));
        let found = bytes
            .windows(END.len())
            .skip(searched)
            .position(|part| part == END);
        if let Some(end) = found {
            let rest = bytes.split_off(searched + end + END.len());
            return Ok((bytes, rest));
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

const END: &[u8] = b"\r\n\r\n";

impl Request {
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        // The parser takes a bare LF for the end of a line, other servers do not: a host could hide behind it.
        let has_bare_lf = head
            .iter()
            .zip([&0].into_iter().chain(head))
            .any(|pair| pair.0 == &b'\n' && pair.1 != &b'\r');
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let end = parsed.parse(head).ok()?;
        if has_bare_lf || end != httparse::Status::Complete(head.len()) {
            return None;
        }
        let (method, target) = (parsed.method?, parsed.path?);
        if method == "CONNECT" {
            let (host, port) = authority(target)?;
            return Some(Self {
                host,
                port: port?,
                forward: None,
            });
        }
        let rest = target.strip_prefix("http://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at_checked(end)?;
        let (host, port) = authority(place)?;
        let port = port.unwrap_or(80);
        let (slash, minor) = (
            if path.starts_with('/') { "" } else { "/" },
            parsed.version?,
        );
        // The server is asked for the host that was checked, and once: a second request could name another.
        let line = format!(
            "{method} {slash}{path} HTTP/1.{minor}\r\nHost: {place}\r\nConnection: close\r\n"
        );
        let mut forward = line.into_bytes();
        for header in parsed
            .headers
            .iter()
            .filter(|header| !is_of_proxy(header.name))
        {
            forward.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
        }
        forward.extend(b"\r\n");
        Some(Self {
            host,
            port,
            forward: Some(forward),
        })
    }

    /// As the user writes it.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

fn is_of_proxy(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "host" | "connection" | "keep-alive") || name.starts_with("proxy-")
}

/// `HOST:PORT`, `[ADDRESS]:PORT`, or the same without a port. Names of users are refused.
pub(super) fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => inner
            .split_once(']')
            .map(|(host, rest)| (host, rest.strip_prefix(':')))?,
        None => text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || ".-_:".contains(letter);
    (!host.is_empty() && host.chars().all(is_name)).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> String {
        let Some(request) = Request::parse(head.as_bytes()) else {
            return "refused".to_owned();
        };
        let forward = request
            .forward
            .as_ref()
            .map(|head| String::from_utf8_lossy(head).replace("\r\n", "|"));
        format!(
            "{} {}",
            request.place(),
            forward.unwrap_or_else(|| "tunnel".to_owned())
        )
    }

    #[test]
    fn a_tunnel_and_a_plain_request_name_their_host_once() {
        assert_eq!(
            parsed("CONNECT Example.org.:443 HTTP/1.1\r\n\r\n"),
            "example.org:443 tunnel"
        );
        assert_eq!(parsed("CONNECT [::1]:80 HTTP/1.1\r\n\r\n"), "::1:80 tunnel");
        let head = "GET http://a.b/c?d HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\nAccept: *\r\n\r\n";
        assert_eq!(
            parsed(head),
            "a.b:80 GET /c?d HTTP/1.1|Host: a.b|Connection: close|Accept: *||"
        );
        assert_eq!(
            parsed("GET http://a:8080?q HTTP/1.0\r\n\r\n"),
            "a:8080 GET /?q HTTP/1.0|Host: a:8080|Connection: close||"
        );
    }

    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a/ HTTP/1.1\r\n\r\n",
            "CONNECT a HTTP/1.1\r\n\r\n",
            "CONNECT a:99999 HTTP/1.1\r\n\r\n",
            "CONNECT user@a:443 HTTP/1.1\r\n\r\n",
            "GET http://user@a/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://a/ HTTP/1.1 more\r\n\r\n",
            "GET http://a/ HTTP/2\r\n\r\n",
            // Each would name a second host to some server.
            "GET http://a/ HTTP/1.1\r\nAccept: x\nHost: other\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nAccept: x\rHost: other\r\n\r\n",
            "GET http://a/ HTTP/1.1\nHost: other\n\nGET / HTTP/1.1\r\nHost: other\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost : other\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nAccept: x\r\n Host: other\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n Host: other\r\n\r\n",
            "GET http://a/\tb HTTP/1.1\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost : other\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(parsed(head), "refused", "{head}");
        }
    }
}
