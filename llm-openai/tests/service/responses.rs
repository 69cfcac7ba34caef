//! How the client handles every answer and every failure of the Responses API.

use std::sync::Arc;

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_openai::http::{Agent, Limits, Network};
use code_commit_llm_openai::{Client, Model, Request, Responses, Secret};
use serde_json::json;

const KEY: &str = "sk-test-key-0123456789-xy";

fn service(origin: &str) -> Responses {
    let base = format!("{origin}/v1").parse().expect("an address");
    Responses::new(
        base,
        "openai-responses/m".parse().expect("a name"),
        Secret::new(KEY),
    )
}

#[test]
fn every_answer_and_every_failure_has_its_outcome() {
    let corpus = include_str!("../../../fixtures/outcomes/openai-responses.jsonl");
    outcomes::check(corpus, KEY, service).expect("a server");
}

#[test]
fn every_prompt_is_whole_and_nothing_is_stored() {
    let server = Server::start(Script::new([Step::text("{}")])).expect("a server");
    let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
    let base = format!("{}/v1", server.origin())
        .parse()
        .expect("an address");
    let service = Responses::new(
        base,
        "openai-responses/org/m".parse().expect("a name"),
        Secret::new(KEY),
    );
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
    let reply = Client::new(agent, service)
        .call(&request, &mut Notes::default())
        .expect("an answer");
    let seen = server.requests().remove(0);
    assert_eq!(
        (seen.path.as_str(), seen.header("authorization")),
        ("/v1/responses", Some(&*format!("Bearer {KEY}")))
    );
    insta::assert_snapshot!(String::from_utf8_lossy(&seen.body), @r#"{"model":"org/m","instructions":"be brief","input":"hi","temperature":0.5,"max_output_tokens":256,"text":{"format":{"name":"answer","schema":{"type":"object"},"strict":true,"type":"json_schema"}},"store":false,"stream":true}"#);
    insta::assert_snapshot!(code_commit_fixtures::wire::logged(&reply).expect("UTF-8"), @r#"{"created_at":1795224363,"id":"resp_1","model":"org/m","object":"response","output":[{"content":[{"text":"{}","type":"output_text"}],"role":"assistant","type":"message"}],"status":"completed","usage":{"input_tokens":57,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":58}}"#);
}

#[test]
fn what_only_the_total_shows_counts_as_output_and_another_tier_is_kept() {
    let body = r#"{"status":"completed","service_tier":"priority","output":[{"type":"message","content":
        [{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":115}}"#;
    insta::assert_snapshot!(code_commit_fixtures::wire::read_by(service, 200, body).expect("a server"), @r#"
    Complete Some("completed") "a" None None
    {"input_tokens":10,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":105,"reasoning_tokens":100,"tier":"priority"}
    "#);
}
