//! How the client handles every answer and every failure of the dialect: real HTTP on loopback,
//! real parsing, real retry rules; only the waits between attempts are not real.

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::Step;
use code_commit_llm_openai::{CallError, OpenAi, Secret};
use serde_json::json;

const KEY: &str = "sk-test-key-0123456789-xy";

fn service_below(path: &str, origin: &str) -> OpenAi {
    let base = format!("{origin}{path}").parse().expect("an address");
    OpenAi::new(base, "openai/m".parse().expect("a name"), Secret::new(KEY))
}

fn service(origin: &str) -> OpenAi {
    service_below("/v1", origin)
}

fn outcome_below(path: &str, name: &str, stream: bool, steps: Vec<Step>) -> String {
    outcomes::outcome(
        name,
        KEY,
        stream,
        |origin| service_below(path, origin),
        steps,
    )
    .expect("a server")
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

fn body(status: u16, body: &str) -> Vec<Step> {
    let step = Step {
        status: Some(status),
        ..Step::body(body)
    };
    vec![step, ok()]
}

#[test]
fn every_way_an_answer_ends_has_its_outcome() {
    let reason = |reason: &str| vec![Step::text("words").finish(reason).times(3)];
    let cases = vec![
        ("stop", reason("stop")),
        ("end of the text", reason("eos")),
        ("a stop sequence", reason("stop_sequence")),
        ("length", reason("length")),
        ("length, in the word of another", reason("MAX_TOKENS")),
        ("content filter", reason("content_filter")),
        ("tool calls", reason("tool_calls")),
        ("function call", reason("function_call")),
        ("a reason of next year", reason("daydreaming")),
        (
            "a reason of next year, cut off",
            vec![Step::text("words").finish("daydreaming").usage(json!(null))],
        ),
        ("sensitive, of Z.AI", reason("sensitive")),
        ("guardrail, of Bedrock", reason("guardrail_intervened")),
        ("error, of OpenRouter", reason("error")),
        ("abort, of vLLM", reason("abort")),
        (
            "no resources, of DeepSeek",
            reason("insufficient_system_resource"),
        ),
        ("time limit, of watsonx", reason("time_limit")),
        ("token limit, of watsonx", reason("TOKEN_LIMIT")),
        ("no reason", reason("")),
        ("empty, then well", vec![Step::text(""), ok()]),
        ("null content three times", vec![Step::default().times(3)]),
        ("content in parts", vec![Step::body(PARTS)]),
        ("null everywhere", vec![Step::body(NULLS)]),
        (
            "a byte order mark",
            vec![Step::body(&format!("\u{feff}{NULLS}"))],
        ),
        (
            "content that is a number",
            vec![Step::body("{\"choices\":[{\"message\":{\"content\":7}}]}")],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    stop                               complete Use "words" | Ok/Usage []
    end of the text                    complete Use "words" | Ok/Usage []
    a stop sequence                    complete Use "words" | Ok/Usage []
    length                             truncated TellModel "words" | Truncated/Usage []
    length, in the word of another     truncated TellModel "words" | Truncated/Usage []
    content filter                     filtered TellPerson "words" | Refused/Usage []
    tool calls                         tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    function call                      tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    a reason of next year              complete Use "words" | Ok/Usage []
    a reason of next year, cut off     complete Use "words" | Ok/Unknown []
    sensitive, of Z.AI                 filtered TellPerson "words" | Refused/Usage []
    guardrail, of Bedrock              filtered TellPerson "words" | Refused/Usage []
    error, of OpenRouter               other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    abort, of vLLM                     other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    no resources, of DeepSeek          other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    time limit, of watsonx             other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    token limit, of watsonx            truncated TellModel "words" | Truncated/Usage []
    no reason                          complete Use "words" | Ok/Usage []
    empty, then well                   empty TellModel "" | Unusable/Usage []
    null content three times           empty TellModel "" | Unusable/Usage []
    content in parts                   complete Use "ab" | Ok/Unknown []
    null everywhere                    complete Use "a" | Ok/Unknown []
    a byte order mark                  complete Use "a" | Ok/Unknown []
    content that is a number           ERROR bad-reply | the reply cannot be read: not the JSON expected, line 1 column 35 | Error/Unknown []
    "#);
}

const PARTS: &str = r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"odd"},
    {"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#;
const NULLS: &str = r#"{"id":null,"model":null,"created":null,"error":null,"usage":null,"choices":[
    {"message":{"content":"a","refusal":null,"tool_calls":null},"finish_reason":"stop","logprobs":null}]}"#;

#[test]
fn every_failure_has_its_outcome() {
    let cases = vec![
        ("400 too long", failed(400, "context_length_exceeded")),
        ("400 content filter", failed(400, "content_filter")),
        (
            "400 content policy",
            failed(400, "content_policy_violation"),
        ),
        (
            "400 content policy, in the type",
            vec![Step {
                kind: Some("content_policy_violation".into()),
                ..Step::status(400)
            }],
        ),
        (
            "403 region",
            failed(403, "unsupported_country_region_territory"),
        ),
        ("404 model", failed(404, "model_not_found")),
        ("429 no money", failed(429, "insufficient_quota")),
        ("429 no credit", failed(429, "credit_balance_exhausted")),
        (
            "429 no money, said in the type",
            vec![Step {
                kind: Some("insufficient_quota".into()),
                ..Step::status(429)
            }],
        ),
        (
            "429 retry-after 121",
            vec![Step::status(429).header("retry-after", "121"), ok()],
        ),
        (
            "404 of a model, in words alone",
            body(404, r#"{"error":"model 'm' not found"}"#),
        ),
        ("404 of an address", body(404, "404 page not found")),
        ("405", body(405, "Method Not Allowed")),
        (
            "the key echoed",
            vec![Step::status(401).message(&format!("Incorrect API key provided: {KEY}"))],
        ),
        (
            "200 an error object",
            vec![
                Step::body("{\"error\":{\"message\":\"busy\",\"code\":\"slow_down\"}}"),
                ok(),
            ],
        ),
        (
            "200 html with the key",
            vec![Step {
                status: Some(200),
                ..Step::html(200, &format!("no {KEY}"))
            }],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    400 too long                       ERROR too-large | the prompt is too large for the model: scripted error | Error/Nothing []
    400 content filter                 ERROR blocked | the service blocked the prompt: scripted error | Error/Nothing []
    400 content policy                 ERROR blocked | the service blocked the prompt: scripted error | Error/Nothing []
    400 content policy, in the type    ERROR blocked | the service blocked the prompt: scripted error | Error/Nothing []
    403 region                         ERROR unavailable | not available to this account here: scripted error | Error/Nothing []
    404 model                          ERROR not-found | m not found: scripted error | Error/Nothing []
    429 no money                       ERROR billing | no credit left: scripted error | Error/Nothing []
    429 no credit                      ERROR billing | no credit left: scripted error | Error/Nothing []
    429 no money, said in the type     ERROR billing | no credit left: scripted error | Error/Nothing []
    429 retry-after 121                ERROR rate-limited | rate limit: scripted error | Error/Nothing []
    404 of a model, in words alone     ERROR not-found | m not found: model 'm' not found | Error/Nothing []
    404 of an address                  ERROR wrong-address | the base URL ORIGIN/v1 does not lead to the API: 404 page not found | Error/Nothing []
    405                                ERROR wrong-address | the base URL ORIGIN/v1 does not lead to the API: Method Not Allowed | Error/Nothing []
    the key echoed                     ERROR bad-key | the key is not valid: Incorrect API key provided: …xy | Error/Nothing []
    200 an error object                complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    200 html with the key              ERROR bad-reply | the reply cannot be read: a page of HTML, "no …xy" | Error/Unknown []
    "#);
}

#[test]
fn a_base_url_without_its_version_is_named_and_nothing_else_is() {
    let invalid_url = r#"{"error":{"message":"Invalid URL (POST /chat/completions)","type":"invalid_request_error","code":null}}"#;
    let unknown_model =
        r#"{"error":{"message":"The model `m` does not exist","type":"NotFoundError"}}"#;
    let lm_studio = r#"{"error":"Unexpected endpoint or method. (POST /chat/completions)"}"#;
    let cases = vec![
        ("404 of OpenAI", body(404, invalid_url)),
        ("404 of a model", body(404, unknown_model)),
        (
            "404 of a page",
            vec![Step::html(404, "404 Not Found"), ok()],
        ),
        ("405", body(405, r#"{"detail":"Method Not Allowed"}"#)),
        ("200 of LM Studio", body(200, lm_studio)),
    ];
    let lines: Vec<_> = cases
        .into_iter()
        .map(|(name, steps)| outcome_below("", name, true, steps))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    404 of OpenAI                      ERROR wrong-address | the base URL ORIGIN does not lead to the API: Invalid URL (POST /chat/completions) | Error/Nothing []
    404 of a model                     ERROR not-found | m not found: The model `m` does not exist | Error/Nothing []
    404 of a page                      ERROR wrong-address | the base URL ORIGIN does not lead to the API: a page of HTML, "404 Not Found" | Error/Nothing []
    405                                ERROR wrong-address | the base URL ORIGIN does not lead to the API: Method Not Allowed | Error/Nothing []
    200 of LM Studio                   ERROR wrong-address | the base URL ORIGIN does not lead to the API: Unexpected endpoint or method. (POST /chat/completions) | Error/Unknown []
    "#);
    let hint = |base: &str| {
        CallError::WrongAddress {
            base: base.into(),
            message: String::new(),
        }
        .hint()
    };
    assert_eq!(
        hint("http://h:1234"),
        "add /v1 to the base URL, as in http://127.0.0.1:8080/v1"
    );
    assert_eq!(
        hint("http://h/v1"),
        "check the base URL; most servers have their API below /v1"
    );
}

#[test]
fn an_answer_is_read_by_its_own_form_whatever_its_label() {
    let labelled = |body: &str, label: &str| {
        vec![Step {
            content_type: Some(label.into()),
            ..Step::body(body)
        }]
    };
    for stream in [true, false] {
        for label in [
            "text/plain; charset=utf-8",
            "application/json",
            "application/octet-stream",
            "text/html",
            "text/event-stream",
            "",
        ] {
            for head in [
                "",
                "\u{feff}",
                "\n\n",
                ": OPENROUTER PROCESSING\n\n",
                "id: 1\n",
                "retry: 3000\n\n",
                "event: message\n",
            ] {
                let outcome = outcome_below(
                    "/v1",
                    "",
                    stream,
                    labelled(&format!("{head}{NO_DONE}"), label),
                );
                assert_eq!(
                    outcome.trim_start(),
                    r#"complete Use "a" | Ok/Unknown []"#,
                    "{label:?} {head:?}"
                );
            }
            let outcome = outcome_below("/v1", "", stream, labelled(NULLS, label));
            assert_eq!(
                outcome.trim_start(),
                r#"complete Use "a" | Ok/Unknown []"#,
                "{label:?}"
            );
        }
    }
}

#[test]
fn a_stream_counts_only_with_its_end() {
    let events = |body: &str| Step {
        content_type: Some("text/event-stream".into()),
        ..Step::body(body)
    };
    let cases = vec![
        ("usage behind the reason", vec![events(USAGE_LAST)]),
        (
            "a refusal behind the reason",
            vec![events(LATE_REFUSAL), ok()],
        ),
        (
            "error in the middle",
            vec![
                Step {
                    stream_error: Some(json!({"message": "x", "code": "slow_down"})),
                    ..ok()
                },
                ok(),
            ],
        ),
        (
            "error with a number",
            vec![Step {
                stream_error: Some(json!({"message": "x", "code": 400})),
                ..ok()
            }],
        ),
        (
            "error that is a text",
            vec![
                Step {
                    stream_error: Some(json!("out of memory")),
                    ..ok()
                },
                ok(),
            ],
        ),
        (
            "refusal",
            vec![Step {
                refusal: Some("No.".into()),
                ..Step::default()
            }],
        ),
        ("comments for longer than silence", vec![kept_open()]),
    ];
    insta::assert_snapshot!(table(true, cases), @r#"
    usage behind the reason            complete Use "a" | Ok/Usage []
    a refusal behind the reason        refused TellPerson "a" | Refused/Unknown []
    error in the middle                complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    error with a number                ERROR bad-request | the service rejects the request (HTTP 400): x | Error/Unknown []
    error that is a text               complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    refusal                            refused TellPerson "" | Refused/Usage []
    comments for longer than silence   complete Use "a" | Ok/Unknown []
    "#);
}

/// Sends nothing but comments for longer than the limit of silence, each well within it.
fn kept_open() -> Step {
    let comment = ": keep-alive\n\n";
    let body = [&comment.repeat(10), NO_DONE].concat();
    Step {
        chunk_bytes: Some(comment.len()),
        chunk_delay_ms: 60,
        content_type: Some("text/event-stream".into()),
        ..Step::body(&body)
    }
}

const NO_DONE: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE_LAST: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":null}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
const LATE_REFUSAL: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"}}]}\n\ndata: [DONE]\n\n";
