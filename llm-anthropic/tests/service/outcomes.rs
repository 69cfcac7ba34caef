//! How the client handles every answer and every failure of the dialect: real HTTP on loopback,
//! real parsing, real retry rules; only the waits between attempts are not real.

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::Step;
use code_commit_llm_anthropic::{Anthropic, Secret};
use serde_json::json;

const KEY: &str = "sk-ant-test-key-0123456789-xy";

fn service(origin: &str) -> Anthropic {
    let base = origin.parse().expect("an address");
    Anthropic::new(
        base,
        "anthropic/m".parse().expect("a name"),
        Secret::new(KEY),
    )
}

fn table(stream: bool, cases: Vec<(&str, Vec<Step>)>) -> String {
    outcomes::table(KEY, stream, service, cases).expect("a server")
}

fn ok() -> Step {
    Step::text("whole and well")
}

fn failed(status: u16, kind: &str) -> Vec<Step> {
    vec![
        Step {
            kind: Some(kind.into()),
            ..Step::status(status)
        },
        ok(),
    ]
}

#[test]
fn every_way_an_answer_ends_has_its_outcome() {
    let reason = |reason: &str| vec![Step::text("words").finish(reason).times(3)];
    let cases = vec![
        ("end turn", reason("end_turn")),
        ("stop sequence", reason("stop_sequence")),
        ("stop, in the word of another", reason("stop")),
        ("max tokens", reason("max_tokens")),
        (
            "context window exceeded",
            reason("model_context_window_exceeded"),
        ),
        (
            "tool use",
            vec![Step::call("write", json!({"a": 1})).times(3)],
        ),
        ("pause turn", reason("pause_turn")),
        ("a reason of next year", reason("daydreaming")),
        ("no reason", reason("")),
        (
            "refusal",
            vec![Step {
                refusal: Some("It could do harm.".into()),
                ..Step::text("half")
            }],
        ),
        ("refusal without words", reason("refusal")),
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
        ("text in two blocks", vec![Step::body(BLOCKS)]),
        ("words and no reason", vec![Step::body(NO_REASON), ok()]),
        (
            "an empty reason",
            vec![
                Step::body(r#"{"content":[{"type":"text","text":"a"}],"stop_reason":""}"#),
                ok(),
            ],
        ),
        ("null everywhere", vec![Step::body(NULLS)]),
        (
            "text that is a number",
            vec![Step::body(r#"{"content":[{"type":"text","text":7}]}"#)],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    end turn                           complete Use "words" | Ok/Usage []
    stop sequence                      complete Use "words" | Ok/Usage []
    stop, in the word of another       complete Use "words" | Ok/Usage []
    max tokens                         truncated TellModel "words" | Truncated/Usage []
    context window exceeded            truncated TellModel "words" | Truncated/Usage []
    tool use                           tool-call Retry "" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    pause turn                         other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    a reason of next year              complete Use "words" | Ok/Usage []
    no reason                          complete Use "words" | Ok/Usage []
    refusal                            refused TellPerson "half" | Refused/Usage []
    refusal without words              refused TellPerson "words" | Refused/Usage []
    a thought alone three times        empty TellModel "" | Unusable/Usage []
    text in two blocks                 complete Use "ab" | Ok/Unknown []
    words and no reason                ERROR bad-reply | the reply cannot be read: it does not say how it ended | Error/Unknown []
    an empty reason                    ERROR bad-reply | the reply cannot be read: it does not say how it ended | Error/Unknown []
    null everywhere                    complete Use "a" | Ok/Unknown []
    text that is a number              ERROR bad-reply | the reply cannot be read: not the JSON expected, line 1 column 35 | Error/Unknown []
    "#);
}

const NO_REASON: &str = r#"{"content":[{"type":"text","text":"words"}]}"#;
const BLOCKS: &str = r#"{"content":[{"type":"text","text":"a"},{"type":"odd"},{"type":"redacted_thinking","data":"x"},
    {"type":"text","text":"b"}],"stop_reason":"end_turn"}"#;
const NULLS: &str = r#"{"id":null,"model":null,"error":null,"usage":null,"stop_details":null,
    "content":[{"type":"text","text":"a","thinking":null}],"stop_reason":"end_turn","stop_sequence":null}"#;

#[test]
fn every_failure_has_its_outcome() {
    let said = |status, kind: &str, message: &str| {
        vec![
            Step {
                kind: Some(kind.into()),
                ..Step::status(status).message(message)
            },
            ok(),
        ]
    };
    let cases = vec![
        ("400", failed(400, "invalid_request_error")),
        (
            "400 too long",
            said(
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
            ),
        ),
        (
            "400 too long with its answer",
            said(
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
            ),
        ),
        (
            "400 no credit",
            said(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API.",
            ),
        ),
        (
            "429 spending limit",
            said(
                429,
                "rate_limit_error",
                "enforced_spend_limit_reached: raise it in the console",
            ),
        ),
        (
            "529 retry-after 2",
            vec![Step::status(529).header("retry-after", "2"), ok()],
        ),
        (
            "the key echoed",
            vec![Step::status(401).message(&format!("invalid x-api-key: {KEY}"))],
        ),
        (
            "200 an error object",
            vec![
                Step::body(
                    r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
                ),
                ok(),
            ],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    400                                ERROR bad-request | the service rejects the request (HTTP 400): scripted error | Error/Nothing []
    400 too long                       ERROR too-large | the prompt is too large for the model: prompt is too long: 210000 tokens > 200000 maximum | Error/Nothing []
    400 too long with its answer       ERROR too-large | the prompt is too large for the model: input length and `max_tokens` exceed context limit: 1 + 2 > 3 | Error/Nothing []
    400 no credit                      ERROR billing | no credit left: Your credit balance is too low to access the API. | Error/Nothing []
    429 spending limit                 ERROR billing | no credit left: enforced_spend_limit_reached: raise it in the console | Error/Nothing []
    529 retry-after 2                  complete Use "whole and well" | Error/Nothing Ok/Usage [2070]
    the key echoed                     ERROR bad-key | the key is not valid: invalid x-api-key: …xy | Error/Nothing []
    200 an error object                complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    "#);
}

#[test]
fn a_stream_counts_only_with_its_end() {
    let events = |body: &str| Step {
        content_type: Some("text/event-stream".into()),
        ..Step::body(body)
    };
    let error = |kind: &str| {
        vec![
            Step {
                stream_error: Some(json!({"message": "x", "type": kind})),
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
        ("events of next year", vec![events(ODD)]),
        ("overloaded in the middle", error("overloaded_error")),
        ("a mistake in the middle", error("invalid_request_error")),
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
    events of next year                complete Use "a" | Ok/Usage []
    overloaded in the middle           complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    a mistake in the middle            ERROR bad-request | the service rejects the request (HTTP 400): x | Error/Unknown []
    refusal                            refused TellPerson "" | Refused/Usage []
    "#);
}

const ODD: &str = "event: dream\ndata: {\"type\":\"dream\",\"delta\":{\"type\":\"dream_delta\",\"dream\":7}}\n\n\
    data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}\n\n";
