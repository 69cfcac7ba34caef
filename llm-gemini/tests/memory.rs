//! A large answer takes at most three and a half times its size: as received, as it is decoded, and as text.
//!
//! `CODE_COMMIT_BIG_REPLY_MB` sets its size (default 20; the limit was set with 100). This test has
//! its own binary, because it measures the high-water mark of the process.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that looks at its own process"
)]

use std::io::Write;
use std::sync::Arc;

use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{Client, Finish, Gemini, Model, Request, Retry, Secret};

/// A field of `/proc/self/status` in bytes.
fn memory(field: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<usize>()
        .ok()
        .map(|kib| kib << 10)
}

/// How much the memory of the process rose, at most, while `work` ran.
fn peak_of(work: impl FnOnce()) -> Option<usize> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = memory("VmRSS:")?;
    work();
    Some(memory("VmHWM:")?.saturating_sub(before))
}

#[derive(Default)]
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn call(mb: usize, stream: bool) {
    let server = Server::start(Script::new([Step::huge(mb)])).expect("a server");
    let agent = Arc::new(Agent::new(
        Network::default(),
        Limits {
            body: 4 << 30,
            ..Limits::default()
        },
    ));
    let base = server.origin().parse().expect("an origin");
    let model = Client::new(
        agent,
        Gemini::new(base, "gemini-x".parse().expect("a name"), Secret::new("k")),
    );
    // Nothing but the client may copy the text.
    let mut watch = Silent(Notes::default());
    let reply = model
        .call(
            &Request {
                stream,
                ..Request::default()
            },
            &mut watch,
        )
        .expect("an answer");
    assert_eq!(reply.finish, Finish::Complete);
    assert_eq!(reply.text.len(), mb * 16 * 1024 * 63);
    let mut logged = Counter::default();
    reply
        .write_raw(&mut logged)
        .expect("a counter takes everything");
    assert!(logged.0 > reply.text.len());
}

struct Silent(Notes);

impl code_commit_llm_gemini::Watch for Silent {
    fn wait(&mut self, duration: std::time::Duration) -> code_commit_llm_gemini::Waited {
        self.0.wait(duration)
    }
}

#[test]
fn a_large_answer_is_held_at_most_three_and_a_half_times() {
    let mb = std::env::var("CODE_COMMIT_BIG_REPLY_MB")
        .ok()
        .and_then(|mb| mb.parse().ok())
        .unwrap_or(20);
    for stream in [false, true] {
        let Some(peak) = peak_of(|| call(mb, stream)) else {
            eprintln!("SKIPPED: the memory test because this system shows no high-water mark");
            return;
        };
        let size = mb << 20;
        #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
        let ratio = peak as f64 / size as f64;
        eprintln!("{mb} MB, stream {stream}: held {ratio:.2} times");
        // Whatever else the process needs does not depend on the size of the answer.
        assert!(
            peak < size / 10 * 35 + (6 << 20),
            "{mb} MB, stream {stream}: held {ratio:.2} times"
        );
    }
    check_many_small_things();
}

/// Called by the only test, since the high-water mark is that of the process.
fn check_many_small_things() {
    let json = |inside: &str| Step {
        body: Some(inside.replace("MANY", &"{},".repeat(2_000_000))),
        ..Step::default()
    };
    let steps = [
        json(r#"{"candidates":[MANY{}]}"#),
        json(r#"{"candidates":[{"content":{"parts":[MANY{}]},"finishReason":"STOP"}]}"#),
        json(r#"{"candidates":[],"usageMetadata":[MANY{}]}"#),
        json(r#"{"candidates":[],"error":[MANY{}]}"#),
    ];
    for step in steps {
        let size = step.body.as_deref().map_or(0, str::len);
        let server = Server::start(Script::new([step])).expect("a server");
        let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
        let base = server.origin().parse().expect("an origin");
        let model = Client::new(
            agent,
            Gemini::new(base, "gemini-x".parse().expect("a name"), Secret::new("k")),
        );
        let once = Retry {
            max_tries: 1,
            ..Retry::default()
        };
        let model = model.with_retry(once);
        let mut watch = Silent(Notes::default());
        let peak = peak_of(|| drop(model.call(&Request::default(), &mut watch)))
            .expect("a high-water mark");
        assert!(peak < size * 4 + (6 << 20), "{size} bytes held {peak}");
    }
}
