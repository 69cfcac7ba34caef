//! Every example of the service's answers is parsed correctly.

use std::sync::Arc;

use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{Client, Gemini, Model, Request, Secret};

/// Serves `body` and returns how the client reads it.
fn check(status: u16, body: &str) -> String {
    let content_type = body
        .starts_with("data:")
        .then(|| "text/event-stream".to_owned());
    let step = Step {
        status: Some(status),
        content_type,
        ..Step::body(body)
    };
    let server = Server::start(Script::new([step])).expect("a server");
    let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
    let base = server.origin().parse().expect("an origin");
    let model = Client::new(
        agent,
        Gemini::new(
            base,
            "gemini-3.8-flash".parse().expect("a name"),
            Secret::new("k"),
        ),
    );
    // No retries: only the first answer matters.
    let mut notes = Notes {
        broke: true,
        ..Notes::default()
    };
    match model.call(
        &Request {
            prompt: "hi",
            stream: true,
            ..Request::default()
        },
        &mut notes,
    ) {
        Ok(reply) => format!(
            "{:?} {:?} {:?} {}\nmodel {:?} id {:?}",
            reply.finish,
            reply.finish_reason,
            reply.text,
            serde_json::to_string(&reply.usage).expect("JSON"),
            reply.served_model,
            reply.response_id
        ),
        Err(error) => format!(
            "{} retry after {:?}: {error}",
            error.code(),
            error.retry_after()
        ),
    }
}

#[test]
fn thought_text_and_cache_hit() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-thought.json")), @r#"
    Complete Some("STOP") "Hello." {"input_tokens":14,"cache_read_tokens":8,"cache_write_tokens":null,"output_tokens":4,"reasoning_tokens":3}
    model Some("gemini-3.8-flash") id Some("fakeresp1")
    "#);
}

#[test]
fn truncated() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-truncated.json")), @r#"
    Truncated Some("MAX_TOKENS") "cut of" {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":1,"reasoning_tokens":null}
    model Some("gemini-3.8-flash") id Some("fakeresp2")
    "#);
}

#[test]
fn blocked_prompt() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-blocked-prompt.json")), @r#"
    Blocked { filter: Prohibited } Some("PROHIBITED_CONTENT") "" {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":0,"reasoning_tokens":null}
    model Some("gemini-3.8-flash") id Some("fakeresp3")
    "#);
}

#[test]
fn candidate_without_content() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-no-content.json")), @r#"
    Filtered { filter: Safety } Some("SAFETY") "" {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":1,"reasoning_tokens":null}
    model Some("gemini-3.8-flash") id Some("fakeresp4")
    "#);
}

#[test]
fn quota_of_a_minute() {
    insta::assert_snapshot!(check(429, include_str!("../../../fixtures/wire/gemini-429-per-minute.json")), @"rate-limited retry after Some(2s): rate limit: You exceeded your current quota, please check your plan and billing details. Please retry in 2s.");
}

#[test]
fn bad_key() {
    insta::assert_snapshot!(check(400, include_str!("../../../fixtures/wire/gemini-400-bad-key.json")), @"bad-key retry after None: the key is not valid: API key not valid. Please pass a valid API key.");
}

#[test]
fn stream() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-stream.sse")), @r#"
    Complete Some("STOP") "streamed text here" {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":4,"reasoning_tokens":null}
    model Some("gemini-3.8-flash") id Some("fakeresp7")
    "#);
}

#[test]
fn what_only_the_total_shows_counts_as_output() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":115}}"#;
    insta::assert_snapshot!(check(200, body), @r#"
    Complete Some("STOP") "a" {"input_tokens":10,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":105,"reasoning_tokens":100}
    model None id None
    "#);
}
