//! What is sent to which server, and the examples of the dialect's answers.

use std::sync::Arc;

use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm::in_one_piece;
use code_commit_llm_openai::http::{Agent, Limits, Network};
use code_commit_llm_openai::{Client, Finish, Model, OpenAi, Request, Secret, Switches};
use serde_json::{Value, json};

fn server(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::start(Script::new(steps)).expect("a server")
}

fn service(origin: &str, key: &str) -> OpenAi {
    let base = format!("{origin}/v1/").parse().expect("an address");
    OpenAi::new(
        base,
        "openai/org/m".parse().expect("a name"),
        Secret::new(key),
    )
}

fn client(service: OpenAi) -> Client {
    Client::new(
        Arc::new(Agent::new(Network::default(), Limits::default())),
        service,
    )
}

fn model(server: &Server, key: &str) -> Client {
    client(service(server.origin(), key))
}

/// The body that a server with these switches receives for a request that sets everything.
fn sent(switches: Switches) -> String {
    let server = server([Step::text("{}")]);
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
    client(service(server.origin(), "k").with_switches(switches))
        .call(&request, &mut Notes::default())
        .expect("an answer");
    String::from_utf8(server.requests().remove(0).body).expect("UTF-8")
}

#[test]
fn the_two_switches_say_what_a_server_is_sent() {
    insta::assert_snapshot!(sent(Switches::OPENAI), @r#"{"model":"org/m","messages":[{"role":"developer","content":"be brief"},{"role":"user","content":"hi"}],"temperature":0.5,"max_completion_tokens":256,"response_format":{"json_schema":{"name":"answer","schema":{"type":"object"},"strict":true},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true}}"#);
    insta::assert_snapshot!(sent(Switches::COMPATIBLE), @r#"{"model":"org/m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"temperature":0.5,"max_tokens":256,"response_format":{"json_schema":{"name":"answer","schema":{"type":"object"},"strict":true},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true}}"#);
}

#[test]
fn the_switches_follow_from_the_address() {
    let of = |base: &str| Switches::of(&base.parse().unwrap());
    assert_eq!(of("https://api.openai.com/v1"), Switches::OPENAI);
    assert_eq!(of("https://API.openai.com/v1/"), Switches::OPENAI);
    assert_eq!(of("http://localhost:11434/v1"), Switches::COMPATIBLE);
    assert_eq!(
        of("https://api.openai.com.evil.example/v1"),
        Switches::COMPATIBLE
    );
}

#[test]
fn the_key_is_a_bearer_and_none_is_sent_where_there_is_none() {
    let server = server([Step::text("a"), Step::text("b")]);
    model(&server, "sk-test-0123")
        .call(&Request::default(), &mut Notes::default())
        .unwrap();
    model(&server, "")
        .call(&Request::default(), &mut Notes::default())
        .unwrap();
    let seen = server.requests();
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].header("authorization"), Some("Bearer sk-test-0123"));
    assert_eq!(seen[1].header("authorization"), None);
    insta::assert_snapshot!(String::from_utf8_lossy(&seen[1].body), @r#"{"model":"org/m","messages":[{"role":"user","content":""}]}"#);
}

#[test]
fn a_streamed_answer_is_logged_as_one_object() {
    let server = server([Step {
        pieces: Some(3),
        ..Step::text("line \"one\"\nline two")
    }]);
    let mut notes = Notes::default();
    let reply = model(&server, "k")
        .call(
            &Request {
                stream: true,
                ..Request::default()
            },
            &mut notes,
        )
        .unwrap();
    assert_eq!(notes.streamed, reply.text);
    let raw: Value =
        serde_json::from_str(&code_commit_fixtures::wire::logged(&reply).unwrap()).unwrap();
    insta::assert_snapshot!(raw, @r#"{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"line \"one\"\nline two","refusal":null,"role":"assistant"}}],"created":1795224363,"id":"chatcmpl-1","model":"org/m","object":"chat.completion","usage":{"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":29,"prompt_tokens_details":{"cached_tokens":0},"total_tokens":34}}"#);
}

#[test]
fn the_names_of_a_servers_models_are_shown_as_its_other_words_are() {
    let list = r#"{"data":[{"id":"a\u001b[2Jsk-secret-key-xy"},{"id":7},{"id":"LONG"}]}"#;
    let list = Step::body(&list.replace("LONG", &"x".repeat(9000)));
    let server = Server::start(Script::default().rule("GET /v1/models", list)).unwrap();
    let error = model(&server, "sk-secret-key-xy").check(&mut Notes::default());
    let said = error.unwrap_err().to_string();
    assert!(
        said.starts_with("org/m not found: the server has a [2J…xy, xxx"),
        "{said}"
    );
    assert!(said.chars().count() < 700);
}

#[test]
fn an_answer_that_does_not_say_how_it_ended_is_whole_if_its_usage_is_below_the_limit() {
    let whole = |usage: &str, limit| {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":null}}],"usage":{usage}}}"#
        );
        in_one_piece(body.into(), limit, &service("http://h", "k"), None)
            .is_ok_and(|answer| answer.reply.finish == Finish::Complete)
    };
    let nine = r#"{"completion_tokens":9}"#;
    assert!(whole(nine, None) && whole(nine, Some(10)));
    assert!(!whole(nine, Some(9)) && !whole("null", None));
}

#[test]
fn the_model_is_looked_for_in_the_list() {
    let listed = Step::body(r#"{"object":"list","data":[{"id":"org/m"},{"id":"other"}]}"#);
    let server = Server::start(Script::default().rule("GET /v1/models", listed)).unwrap();
    model(&server, "k").check(&mut Notes::default()).unwrap();
    let none = Server::start(Script::default()).unwrap();
    let error = model(&none, "k").check(&mut Notes::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "org/m not found: the server has gpt-test"
    );
    let cut =
        Server::start(Script::default().rule("GET /v1/models", Step::body("{\"data\":["))).unwrap();
    let error = model(&cut, "k").check(&mut Notes::default()).unwrap_err();
    assert_eq!(error.to_string(), "the reply broke off after 9 bytes");
}

/// Serves an example and returns how the client reads it.
fn check(status: u16, body: &str) -> String {
    code_commit_fixtures::wire::read_by(|origin| service(origin, "k"), status, body)
        .expect("a server")
}

#[test]
fn the_examples_of_the_wire_are_understood() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/openai-completion.json")), @r#"
    Complete Some("stop") "Hello." Some("m") Some("chatcmpl-fake9")
    {"input_tokens":15,"cache_read_tokens":0,"cache_write_tokens":null,"output_tokens":2,"reasoning_tokens":0}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/openai-stream.sse")), @r#"
    Complete Some("stop") "Hello." Some("m") Some("chatcmpl-fake10")
    {"input_tokens":30,"cache_read_tokens":0,"cache_write_tokens":null,"output_tokens":2,"reasoning_tokens":0}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/openai-refusal.json")), @r#"
    Refused { message: "I can't help with that." } Some("stop") "" Some("m") Some("chatcmpl-fake11")
    {"input_tokens":15,"cache_read_tokens":0,"cache_write_tokens":null,"output_tokens":1,"reasoning_tokens":0}
    "#);
    insta::assert_snapshot!(check(429, include_str!("../../../fixtures/wire/openai-429-rate-limit.json")), @"rate-limited: rate limit: Rate limit reached for m on tokens per min (TPM)");
    insta::assert_snapshot!(check(429, include_str!("../../../fixtures/wire/openai-429-no-money.json")), @"billing: no credit left: You exceeded your current quota, please check your plan and billing details.");
}

#[test]
fn what_only_the_total_shows_counts_as_output_and_another_tier_is_kept() {
    let body = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"service_tier":"flex","usage":
        {"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}}"#;
    insta::assert_snapshot!(check(200, body), @r#"
    Complete Some("stop") "a" None None
    {"input_tokens":10,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":105,"reasoning_tokens":100,"tier":"flex"}
    "#);
}
