//! How the client handles every answer and every failure of the Responses API: real HTTP on loopback,
//! real parsing, real retry rules; only the waits between attempts are not real.

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

fn table(stream: bool, cases: Vec<(&str, Vec<Step>)>) -> String {
    outcomes::table(KEY, stream, service, cases).expect("a server")
}

fn ok() -> Step {
    Step::text("whole and well")
}

fn failed(status: u16, code: &str) -> Vec<Step> {
    vec![Step::status(status).code(code), ok()]
}

#[test]
fn every_way_an_answer_ends_has_its_outcome() {
    let reason = |reason: &str| vec![Step::text("words").finish(reason).times(3)];
    let status = |status: &str| vec![Step::body(&WHOLE.replace("completed", status)).times(3)];
    let cases = vec![
        ("completed", vec![Step::text("words")]),
        ("max output tokens", reason("max_output_tokens")),
        ("content filter", reason("content_filter")),
        ("a reason of next year", reason("daydreaming")),
        ("still in progress", reason("")),
        ("incomplete without a reason", status("incomplete")),
        ("cancelled", status("cancelled")),
        ("a status of next year", status("dreaming")),
        (
            "tool call",
            vec![Step::call("write", json!({"a": 1})).times(3)],
        ),
        (
            "refusal",
            vec![Step {
                refusal: Some("I can't help with that.".into()),
                ..Step::default()
            }],
        ),
        (
            "a thought alone three times",
            vec![
                Step {
                    thought: Some("hm".into()),
                    ..Step::default()
                }
                .times(3),
            ],
        ),
        ("two messages in parts", vec![Step::body(PARTS)]),
        (
            "words and no status",
            vec![Step::body(&WHOLE.replace("status", "state")), ok()],
        ),
        ("null everywhere", vec![Step::body(NULLS)]),
        (
            "text that is a number",
            vec![Step::body(&WHOLE.replace("\"a\"", "7"))],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    completed                          complete Use "words" | Ok/Usage []
    max output tokens                  truncated TellModel "words" | Truncated/Usage []
    content filter                     filtered TellPerson "words" | Refused/Usage []
    a reason of next year              complete Use "words" | Ok/Usage []
    still in progress                  ERROR bad-reply | the reply cannot be read: it does not say how it ended | Error/Unknown []
    incomplete without a reason        other Retry "a" | Unusable/Unknown Unusable/Unknown Unusable/Unknown [1035, 2400]
    cancelled                          other Retry "a" | Unusable/Unknown Unusable/Unknown Unusable/Unknown [1035, 2400]
    a status of next year              complete Use "a" | Ok/Unknown []
    tool call                          tool-call Retry "" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    refusal                            refused TellPerson "" | Refused/Usage []
    a thought alone three times        empty TellModel "" | Unusable/Usage []
    two messages in parts              complete Use "ab" | Ok/Unknown []
    words and no status                ERROR bad-reply | the reply cannot be read: it does not say how it ended | Error/Unknown []
    null everywhere                    complete Use "a" | Ok/Unknown []
    text that is a number              ERROR bad-reply | the reply cannot be read: not the JSON expected, line 1 column 91 | Error/Unknown []
    "#);
}

const WHOLE: &str = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}"#;
const PARTS: &str = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"},
    {"type":"odd","text":"x"}]},{"type":"odd"},{"type":"message","content":[{"type":"output_text","text":"b"}]}]}"#;
const NULLS: &str = r#"{"id":null,"model":null,"error":null,"usage":null,"incomplete_details":null,"status":"completed",
    "output":[{"type":"reasoning","content":null},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}"#;

#[test]
fn every_failure_has_its_outcome() {
    let failed_inside = |code: &str| {
        let error =
            json!({"status": "failed", "output": [], "error": {"code": code, "message": "x"}});
        vec![Step::body(&error.to_string()), ok()]
    };
    let cases = vec![
        ("429 no money", failed(429, "insufficient_quota")),
        (
            "the key echoed",
            vec![Step::status(401).message(&format!("Incorrect API key provided: {KEY}"))],
        ),
        ("failed with a server error", failed_inside("server_error")),
        (
            "failed at a rate limit",
            failed_inside("rate_limit_exceeded"),
        ),
        ("failed for its prompt", failed_inside("invalid_prompt")),
        (
            "failed without words",
            vec![Step::body(r#"{"status":"failed","output":[]}"#).times(3)],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    429 no money                       ERROR billing | no credit left: scripted error | Error/Nothing []
    the key echoed                     ERROR bad-key | the key is not valid: Incorrect API key provided: …xy | Error/Nothing []
    failed with a server error         complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    failed at a rate limit             complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    failed for its prompt              ERROR bad-request | the service rejects the request (HTTP 400): x | Error/Unknown []
    failed without words               other Retry "" | Unusable/Unknown Unusable/Unknown Unusable/Unknown [1035, 2400]
    "#);
}

#[test]
fn a_stream_counts_only_with_its_end() {
    let events = |body: &str| Step {
        content_type: Some("text/event-stream".into()),
        ..Step::body(body)
    };
    let error = |code: &str| {
        vec![
            Step {
                stream_error: Some(json!({"message": "x", "code": code})),
                ..ok()
            },
            ok(),
        ]
    };
    let cases = vec![
        (
            "a thought before the text",
            vec![Step {
                thought: Some("hm".into()),
                ..ok()
            }],
        ),
        (
            "a tool",
            vec![Step::call("write", json!({"a": 1})).times(3)],
        ),
        ("the text only in the last event", vec![events(LAST_ONLY)]),
        (
            "events of next year",
            vec![events(&format!(
                "data: {{\"type\":\"dream\",\"delta\":\"x\"}}\n\n{LAST_ONLY}"
            ))],
        ),
        ("failed in the middle", error("server_error")),
        ("a prompt that is refused", error("invalid_prompt")),
        ("an error event", vec![events(ERROR), ok()]),
        ("max output tokens", vec![ok().finish("max_output_tokens")]),
        (
            "refusal",
            vec![Step {
                refusal: Some("No.".into()),
                ..Step::default()
            }],
        ),
    ];
    insta::assert_snapshot!(table(true, cases), @r#"
    a thought before the text          complete Use "whole and well" | Ok/Usage []
    a tool                             tool-call Retry "" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    the text only in the last event    complete Use "a" | Ok/Unknown []
    events of next year                complete Use "a" | Ok/Unknown []
    failed in the middle               complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    a prompt that is refused           ERROR bad-request | the service rejects the request (HTTP 400): x | Error/Unknown []
    an error event                     complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    max output tokens                  truncated TellModel "whole and well" | Truncated/Usage []
    refusal                            refused TellPerson "" | Refused/Usage []
    "#);
}

const LAST_ONLY: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\
    \"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}]}}\n\n";
const ERROR: &str = "event: error\ndata: {\"type\":\"error\",\"code\":\"slow_down\",\"message\":\"busy\",\"param\":null}\n\n";

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

#[test]
fn a_stream_with_only_whole_texts_is_read() {
    let body = "data: {\"type\":\"response.output_text.done\",\"text\":\"whole \"}\n\n\
        data: {\"type\":\"response.output_text.done\",\"text\":\"and well\"}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let cases = vec![("done alone", vec![Step::body(body)])];
    insta::assert_snapshot!(table(true, cases), @r#"done alone                         complete Use "whole and well" | Ok/Unknown []"#);
}
