use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::*;
use crate::Blind;
use crate::http::Network;

/// Takes the next call and answers it with the first half of a body of eight bytes.
fn half_an_answer(listener: &TcpListener) -> TcpStream {
    let mut stream = listener.accept().unwrap().0;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf")
        .unwrap();
    stream
}

#[test]
fn an_answer_that_breaks_off_leaves_other_calls_their_connections() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let post = Post {
        url,
        headers: Vec::new(),
        key: None,
        body: Arc::default(),
    };
    let server = std::thread::spawn(move || {
        let first = half_an_answer(&listener);
        drop(half_an_answer(&listener));
        first
    });
    let agent = Agent::new(Network::default(), Limits::default());
    let mut first = agent.send(&post, None, &mut Blind).unwrap();
    let mut second = agent.send(&post, None, &mut Blind).unwrap();
    let cut = second.read_to_end(100, &mut Blind).unwrap_err();
    assert!(
        matches!(cut, CallError::StreamCut { received: 4 }),
        "{cut:?}"
    );
    drop(second);
    server.join().unwrap().write_all(b"rest").unwrap();
    assert_eq!(first.read_to_end(100, &mut Blind).unwrap(), b"halfrest");
}
