//! Consecutive and simultaneous calls, and how they affect each other.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use code_commit_fixtures::server::{Hang, Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_openai::http::{Agent, Limits, Network};
use code_commit_llm_openai::{Client, Model, OpenAi, Request, Secret, Waited, Watch};

fn model(origin: &str) -> Client {
    let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
    let base = format!("{origin}/v1").parse().expect("an address");
    Client::new(
        agent,
        OpenAi::new(
            base,
            "openai/m".parse().expect("a name"),
            Secret::new("sk-test-key-0123456789"),
        ),
    )
}

fn text(model: &Client) -> String {
    let request = Request {
        prompt: "hi",
        ..Request::default()
    };
    model
        .call(&request, &mut Notes::default())
        .map_or_else(|e| e.code().to_owned(), |reply| reply.text)
}

/// Reads one request.
fn read_request(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])
}

/// Reads one request and answers it.
fn answer(stream: &TcpStream) -> std::io::Result<()> {
    read_request(stream)?;
    let body = r#"{"choices":[{"message":{"content":"next"},"finish_reason":"stop"}]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    write!(&mut &*stream, "{head}\r\n\r\n{body}")
}

#[test]
fn a_call_whose_request_nobody_reads_can_be_given_up_and_does_not_hold_up_the_next() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let model = model(&format!(
        "http://{}",
        listener.local_addr().expect("an address")
    ));
    let prompt = "more than any socket takes ".repeat(1 << 20);
    let request = Request {
        prompt: &prompt,
        ..Request::default()
    };
    let is_accepted = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let service = scope.spawn(|| {
            let deaf = listener.accept()?;
            is_accepted.store(true, Ordering::Relaxed);
            let (next, _) = listener.accept()?;
            answer(&next)?;
            drop(deaf);
            std::io::Result::Ok(())
        });
        let error = model.call(&request, &mut Until(&is_accepted)).unwrap_err();
        assert_eq!(error.code(), "cancelled");
        assert_eq!(text(&model), "next");
        service.join().expect("no panic").expect("a service");
    });
}

#[test]
fn comments_after_the_end_of_an_answer_do_not_keep_the_call_waiting() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let model = model(&format!(
        "http://{}",
        listener.local_addr().expect("an address")
    ));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept()?;
            read_request(&stream)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
            let chunk = r#"{"choices":[{"delta":{"content":"done"},"finish_reason":"stop"}]}"#;
            stream.write_all(format!("data: {chunk}\n\ndata: [DONE]\n\n").as_bytes())?;
            // Until the client closes the connection.
            loop {
                stream.write_all(b": still here\n\ndata:\n\n")?;
            }
            #[expect(unreachable_code, reason = "names the type of the errors")]
            std::io::Result::Ok(())
        });
        let request = Request {
            prompt: "hi",
            stream: true,
            ..Request::default()
        };
        let reply = model
            .call(&request, &mut Notes::default())
            .expect("an answer");
        assert_eq!((reply.text.as_str(), reply.attempts), ("done", 1));
    });
}

#[test]
fn a_call_that_waits_does_not_hold_up_another() {
    let waiting = Step::text("never").hang(Hang::BeforeHead);
    let server =
        Server::start(Script::new([Step::text("other")]).rule("long", waiting)).expect("a server");
    let model = model(server.origin());
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let request = Request {
                prompt: "long",
                ..Request::default()
            };
            model
                .call(&request, &mut Until(&enough))
                .map(|reply| reply.text)
        });
        server.wait_for_requests(1);
        assert_eq!(text(&model), "other");
        enough.store(true, Ordering::Relaxed);
        assert_eq!(
            long.join().expect("no panic").unwrap_err().code(),
            "cancelled"
        );
    });
}

/// Cancels once the flag is set.
struct Until<'s>(&'s AtomicBool);

impl Watch for Until<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&mut self, _duration: Duration) -> Waited {
        Waited::Cancelled
    }
}
