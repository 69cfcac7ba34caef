//! How many threads calls take. A separate binary, because the threads of other tests would count
//! too.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_openai::http::{Agent, Limits, Network};
use code_commit_llm_openai::{Client, Model, OpenAi, Request, Secret};

/// The ids of the threads that make calls.
fn callers() -> Vec<String> {
    let name = |thread: &Path| std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
    let threads = std::fs::read_dir("/proc/self/task")
        .expect("a list")
        .flatten();
    let callers = threads.filter(|thread| name(&thread.path()).trim() == "llm-http");
    callers
        .map(|thread| thread.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn calls_one_after_another_take_one_thread_and_one_connection() {
    let server = Server::start(Script::new([Step::text("x").times(3)])).expect("a server");
    let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
    let base = format!("{}/v1", server.origin())
        .parse()
        .expect("an address");
    let model = Client::new(
        agent,
        OpenAi::new(
            base,
            "openai/m".parse().expect("a name"),
            Secret::new("sk-test-key-01234"),
        ),
    );
    assert_eq!(callers(), [""; 0], "none before the first call");
    let mut seen = Vec::new();
    for stream in [false, true, false] {
        model
            .call(
                &Request {
                    stream,
                    ..Request::default()
                },
                &mut Notes::default(),
            )
            .expect("a reply");
        seen.extend(callers());
    }
    seen.dedup();
    assert_eq!((seen.len(), server.connections()), (1, 1));
}
