//! Answers the queries of a command for names: no name exists. Nothing is resolved, because a query could carry data out.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

use super::request::{Request, authority};
use super::{HOST_NAME, PipeReader, Refusal, Rules, is_ready};

/// Longer queries do not come without an extension of the protocol that announces them.
const MOST_BYTES: usize = 512;
/// The header of a message (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// Types of records: addresses of both kinds.
const ADDRESSES: [u16; 2] = [1, 28];
/// Names below these never lead to a host (RFC 6761).
const NO_HOSTS: [&str; 3] = ["localhost", "invalid", HOST_NAME];

/// Lists each host before it is answered that there is none, until the proxy ends.
pub(super) fn serve(socket: &UdpSocket, end: &PipeReader, rules: &Rules) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let mut bytes = [0; MOST_BYTES];
    while is_ready(socket.as_fd(), end) {
        let Ok((count, client)) = socket.recv_from(&mut bytes) else {
            continue;
        };
        let Some(query) = bytes.get(..count).and_then(Query::parse) else {
            continue;
        };
        if let Some(host) = query.host() {
            rules.look_up(host);
        }
        // A client that is gone needs no answer.
        let _ = socket.send_to(&query.no_such_name(), client);
    }
    Ok(())
}

/// A question, which the command has chosen.
struct Query<'q> {
    header: &'q [u8],
    question: &'q [u8],
    name: String,
    kind: u16,
}

impl<'q> Query<'q> {
    fn parse(bytes: &'q [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(HEADER)?;
        let (mut rest, mut name) = (body, String::new());
        loop {
            let (length, behind) = rest.split_first()?;
            let (label, behind) = behind.split_at_checked((*length).into())?;
            rest = behind;
            if label.is_empty() {
                break;
            }
            name.push_str(&String::from_utf8_lossy(label));
            name.push('.');
        }
        let (kind, rest) = rest.split_first_chunk()?;
        let (_class, rest) = rest.split_first_chunk::<2>()?;
        Some(Self {
            header,
            question: body.get(..body.len() - rest.len())?,
            name,
            kind: u16::from_be_bytes(*kind),
        })
    }

    /// In lower case; `None` if the query is not for the addresses of a host.
    fn host(&self) -> Option<String> {
        let (host, port) = authority(&self.name)?;
        let is_host = port.is_none() && ADDRESSES.contains(&self.kind);
        let top = host.rsplit('.').next().unwrap_or_default();
        (is_host && !NO_HOSTS.contains(&top)).then_some(host)
    }

    /// The answer, with the identifier and the question of the query.
    fn no_such_name(&self) -> Vec<u8> {
        // A response of a recursive server, NXDOMAIN; one question, and no records.
        let head = [0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
        let id = self.header.iter().take(2).copied();
        id.chain(head)
            .chain(self.question.iter().copied())
            .collect()
    }
}

impl Rules {
    /// A command that asks for an allowed host ignores the proxy, and to allow it once more would not help.
    fn look_up(&self, host: String) {
        if !self.hosts.iter().any(|allowed| allowed.name == host) {
            let request = Request {
                host,
                port: 443,
                forward: None,
            };
            self.note(&request, Refusal::NotAllowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8], kind: u8) -> Vec<u8> {
        let mut bytes = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split(|byte| *byte == b'.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label);
        }
        bytes.extend([0, 0, kind, 0, 1]);
        bytes
    }

    #[test]
    fn only_a_query_for_the_addresses_of_a_host_names_one() {
        let host = |name: &[u8], kind| Query::parse(&query(name, kind)).unwrap().host();
        assert_eq!(host(b"A.example", 1).as_deref(), Some("a.example"));
        assert_eq!(host(b"nexus", 28).as_deref(), Some("nexus"));
        for (name, kind) in [
            (&b"a.example"[..], 33),
            (b"4.3.2.1.in-addr.arpa", 12),
            (b"localhost", 1),
            (b"a.localhost", 28),
            (b"code-commit", 1),
            (b"no.invalid", 1),
            (b"a.example;rm -rf ~", 1),
            (b"a.example:80", 1),
            (b"a\n.example", 1),
            (b"\xff.example", 1),
        ] {
            assert_eq!(host(name, kind), None, "{name:?}");
        }
    }

    #[test]
    fn the_answer_is_for_this_question_and_says_that_there_is_no_such_name() {
        let asked = query(b"a.example", 1);
        // What follows the question is an extension, which the answer does not use.
        let with_more = [&asked[..], &[0, 0, 41]].concat();
        let answer = Query::parse(&with_more).unwrap().no_such_name();
        assert_eq!(answer[..12], [7, 8, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer[12..], asked[12..]);
    }

    #[test]
    fn a_query_that_is_cut_off_is_none() {
        let whole = query(b"a.example", 1);
        for end in 0..whole.len() {
            assert!(Query::parse(&whole[..end]).is_none(), "{end}");
        }
        assert!(Query::parse(&[255; MOST_BYTES]).is_none());
    }
}
