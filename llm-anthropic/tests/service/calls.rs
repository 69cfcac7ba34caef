//! What is sent, and the examples of the dialect's answers.

use std::sync::Arc;

use code_commit_fixtures::server::{Script, Seen, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_anthropic::http::{Agent, Limits, Network};
use code_commit_llm_anthropic::{Anthropic, Client, Model, Request, Secret};
use serde_json::{Value, json};

fn server(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::start(Script::new(steps)).expect("a server")
}

fn service(origin: &str, key: &str) -> Anthropic {
    let base = origin.parse().expect("an address");
    Anthropic::new(
        base,
        "anthropic/claude-x".parse().expect("a name"),
        Secret::new(key),
    )
}

fn model(server: &Server, key: &str) -> Client {
    Client::new(
        Arc::new(Agent::new(Network::default(), Limits::default())),
        service(server.origin(), key),
    )
}

/// The request that the service receives.
fn sent(request: &Request<'_>) -> Seen {
    let server = server([Step::text("{}")]);
    model(&server, "sk-ant-0123")
        .call(request, &mut Notes::default())
        .expect("an answer");
    server.requests().remove(0)
}

fn body(request: &Request<'_>) -> String {
    String::from_utf8(sent(request).body).expect("UTF-8")
}

#[test]
fn everything_that_a_request_sets_is_sent() {
    let schema = json!({"type": "object"});
    let request = Request {
        prompt: "hi",
        system: Some("be brief"),
        temperature: Some(0.5),
        schema: Some(&schema),
        stream: true,
        max_output_tokens: Some(256),
        ..Request::default()
    };
    insta::assert_snapshot!(body(&request), @r#"{"model":"claude-x","system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"output_config":{"format":{"schema":{"type":"object"},"type":"json_schema"}},"max_tokens":256,"temperature":0.5,"stream":true}"#);
}

#[test]
fn the_key_has_a_header_of_its_own_and_none_is_sent_where_there_is_none() {
    let server = server([Step::text("a"), Step::text("b")]);
    let request = Request {
        prompt: "hi",
        ..Request::default()
    };
    model(&server, "sk-ant-0123")
        .call(&request, &mut Notes::default())
        .unwrap();
    model(&server, "")
        .call(&request, &mut Notes::default())
        .unwrap();
    let seen = server.requests();
    assert_eq!(seen[0].path, "/v1/messages");
    assert_eq!(seen[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        (seen[0].header("x-api-key"), seen[1].header("x-api-key")),
        (Some("sk-ant-0123"), None)
    );
    insta::assert_snapshot!(String::from_utf8_lossy(&seen[1].body), @r#"{"model":"claude-x","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_tokens":64000}"#);
}

#[test]
fn the_stable_beginning_is_marked_for_the_cache_and_the_rest_is_not() {
    let prompt = format!("{}the task", "é".repeat(1024));
    let blocks = |stable| {
        let request = Request {
            prompt: &prompt,
            stable,
            ..Request::default()
        };
        let sent: Value = serde_json::from_str(&body(&request)).unwrap();
        let blocks = sent["messages"][0]["content"].as_array().unwrap().clone();
        let text: String = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert_eq!(text, prompt, "nothing is lost");
        blocks
            .iter()
            .map(|block| block["cache_control"]["type"] == "ephemeral")
            .collect::<Vec<_>>()
    };
    assert_eq!(blocks(0), [false]);
    assert_eq!(blocks(2048), [true, false]);
    assert_eq!(blocks(prompt.len()), [true]);
    assert_eq!(blocks(2046), [false, false], "too little for any cache");
    assert_eq!(
        (blocks(2047), blocks(1 << 20)),
        (vec![false], vec![false]),
        "not at a character, not in the prompt"
    );
}

#[test]
fn an_answer_is_as_long_as_the_model_can_write_unless_the_request_limits_it() {
    let limit = |of_model: Option<u64>, of_request| {
        let server = server([Step::text("x")]);
        let service = service(server.origin(), "k");
        let service = of_model
            .into_iter()
            .fold(service, Anthropic::with_max_output);
        let client = Client::new(
            Arc::new(Agent::new(Network::default(), Limits::default())),
            service,
        );
        let request = Request {
            prompt: "hi",
            max_output_tokens: of_request,
            ..Request::default()
        };
        client.call(&request, &mut Notes::default()).unwrap();
        server.requests()[0].json()["max_tokens"].as_u64().unwrap()
    };
    assert_eq!([limit(None, None), limit(Some(8000), None)], [64_000, 8000]);
    assert_eq!(
        [limit(Some(8000), Some(9)), limit(Some(8000), Some(9000))],
        [9, 8000]
    );
}

#[test]
fn a_streamed_answer_is_logged_as_one_object() {
    let server = server([Step {
        pieces: Some(3),
        thought: Some("let me".into()),
        ..Step::text("line \"one\"\nline two")
    }]);
    let mut notes = Notes::default();
    let request = Request {
        prompt: "hi",
        stream: true,
        ..Request::default()
    };
    let reply = model(&server, "k").call(&request, &mut notes).unwrap();
    assert_eq!(notes.streamed, reply.text);
    let raw: Value =
        serde_json::from_str(&code_commit_fixtures::wire::logged(&reply).unwrap()).unwrap();
    insta::assert_snapshot!(raw, @r#"{"content":[{"thinking":"let me","type":"thinking"},{"text":"line \"one\"\nline two","type":"text"}],"id":"msg_1","model":"claude-x","role":"assistant","stop_reason":"end_turn","type":"message","usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"input_tokens":31,"output_tokens":5}}"#);
}

#[test]
fn tokens_are_counted_without_a_call_and_the_model_is_described() {
    let server = server([]);
    let request = Request {
        prompt: "how many?",
        system: Some("s"),
        ..Request::default()
    };
    let counted = model(&server, "k")
        .count_tokens(&request, &mut Notes::default())
        .unwrap();
    assert!(counted.is_some_and(|count| count > 10), "{counted:?}");
    model(&server, "k").check(&mut Notes::default()).unwrap();
    let seen = server.requests();
    assert_eq!(
        (seen[0].path.as_str(), seen[1].path.as_str()),
        ("/v1/messages/count_tokens", "/v1/models/claude-x")
    );
    insta::assert_snapshot!(String::from_utf8_lossy(&seen[0].body), @r#"{"model":"claude-x","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"how many?"}]}]}"#);
}

#[test]
fn a_model_that_does_not_exist_is_named() {
    let none = Step {
        kind: Some("not_found_error".into()),
        ..Step::status(404).message("model: claude-x")
    };
    let server = Server::start(Script::default().rule("GET /v1/models", none)).unwrap();
    let error = model(&server, "k")
        .check(&mut Notes::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "claude-x not found: model: claude-x");
}

/// Serves an example and returns how the client reads it.
fn check(status: u16, body: &str) -> String {
    code_commit_fixtures::wire::read_by(|origin| service(origin, "k"), status, body)
        .expect("a server")
}

#[test]
fn the_examples_of_the_wire_are_understood() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/anthropic-message.json")), @r#"
    Complete Some("end_turn") "Hello." Some("m") Some("msg_fake15")
    {"input_tokens":2068,"cache_read_tokens":2048,"cache_write_tokens":0,"output_tokens":25,"reasoning_tokens":null}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/anthropic-stream.sse")), @r#"
    ToolCall(Unexpected) Some("tool_use") "Hi" Some("m") Some("msg_fake16")
    {"input_tokens":24,"cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":38,"reasoning_tokens":null}
    "#);
    insta::assert_snapshot!(check(529, include_str!("../../../fixtures/wire/anthropic-529.json")), @"overloaded: the service is overloaded (HTTP 529): Overloaded");
}

#[test]
fn another_tier_is_kept() {
    let body = r#"{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":
        {"input_tokens":10,"output_tokens":5,"service_tier":"batch"}}"#;
    let read = code_commit_fixtures::wire::read_by(|origin| service(origin, "k"), 200, body);
    insta::assert_snapshot!(read.expect("a server"), @r#"
    Complete Some("end_turn") "a" None None
    {"input_tokens":10,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":5,"reasoning_tokens":null,"tier":"batch"}
    "#);
}
