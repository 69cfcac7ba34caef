//! How the client handles every answer and every failure of the service: real HTTP on loopback,
//! real parsing, real retry rules; only the waits between attempts are not real.

use std::sync::Arc;
use std::time::Duration;

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::{Framing, Hang, Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{Client, Gemini, Model, Request, Secret};
use serde_json::json;

const KEY: &str = "AIzaSyTest-key-0123456789-xy";

fn service(origin: &str) -> Gemini {
    let base = origin.parse().expect("an origin");
    Gemini::new(
        base,
        "gemini/gemini-3.8-flash".parse().expect("a name"),
        Secret::new(KEY),
    )
}

fn model(origin: &str) -> Client {
    let limits = Limits {
        connect: Duration::from_secs(2),
        ..outcomes::limits()
    };
    Client::new(
        Arc::new(Agent::new(Network::default(), limits)),
        service(origin),
    )
}

type Case = (&'static str, Vec<Step>);

fn table(stream: bool, cases: Vec<Case>) -> String {
    outcomes::table(KEY, stream, service, cases).expect("a server")
}

fn quota(id: &str) -> Step {
    Step {
        quota_id: Some(id.to_owned()),
        ..Step::status(429)
    }
}

#[test]
fn every_way_an_answer_ends_has_its_outcome() {
    let reason = |reason: &str| vec![Step::text("words").finish(reason).times(3)];
    let block = |reason: &str| {
        vec![Step {
            block: Some(reason.to_owned()),
            ..Step::default()
        }]
    };
    let cases = vec![
        ("stop", reason("STOP")),
        ("stop, in the word of another", reason("stop")),
        ("max tokens", reason("MAX_TOKENS")),
        (
            "max tokens, all of them thoughts",
            vec![Step::default().finish("MAX_TOKENS")],
        ),
        ("safety", reason("SAFETY")),
        (
            "safety without content",
            vec![Step::default().finish("SAFETY")],
        ),
        ("recitation", reason("RECITATION")),
        ("language", reason("LANGUAGE")),
        ("blocklist", reason("BLOCKLIST")),
        ("prohibited", reason("PROHIBITED_CONTENT")),
        ("personal data", reason("SPII")),
        ("image safety", reason("IMAGE_SAFETY")),
        ("no image", reason("NO_IMAGE")),
        ("model armor", reason("MODEL_ARMOR")),
        ("other", reason("OTHER")),
        ("unspecified", reason("FINISH_REASON_UNSPECIFIED")),
        ("malformed call", reason("MALFORMED_FUNCTION_CALL")),
        ("unexpected call", reason("UNEXPECTED_TOOL_CALL")),
        ("too many calls", reason("TOO_MANY_TOOL_CALLS")),
        ("unsigned", reason("MISSING_THOUGHT_SIGNATURE")),
        ("malformed response", reason("MALFORMED_RESPONSE")),
        ("escalation", reason("ESCALATION")),
        ("limited", reason("PUP_LIMITED_DISABLED")),
        ("a reason of next year", reason("QUANTUM_DOUBT")),
        ("no reason at all", reason("")),
        ("empty three times", vec![Step::default().times(3)]),
        (
            "a tool call",
            vec![
                Step {
                    tool: Some("run".into()),
                    ..Step::default()
                }
                .times(3),
            ],
        ),
        (
            "thought is not text",
            vec![Step {
                thought: Some("hm".into()),
                ..Step::text("said")
            }],
        ),
        ("blocked prompt", block("PROHIBITED_CONTENT")),
        ("blocked by a filter of next year", block("VIBES")),
        ("blocked, jailbreak", block("JAILBREAK")),
        (
            "usage and nothing else",
            vec![
                Step::body("{\"usageMetadata\":{\"promptTokenCount\":9}}"),
                Step::text("ok"),
            ],
        ),
        (
            "an array with nothing in it",
            vec![Step::body("[]"), Step::text("ok")],
        ),
        (
            "a text for an answer",
            vec![Step::body("\"words\""), Step::text("ok")],
        ),
        ("null everywhere", vec![Step::body(NULLS)]),
        ("wrong types everywhere", vec![Step::body(WRONG_TYPES)]),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    stop                               complete Use "words" | Ok/Usage []
    stop, in the word of another       complete Use "words" | Ok/Usage []
    max tokens                         truncated TellModel "words" | Truncated/Usage []
    max tokens, all of them thoughts   truncated TellModel "" | Truncated/Usage []
    safety                             filtered TellPerson "words" | Refused/Usage []
    safety without content             filtered TellPerson "" | Refused/Usage []
    recitation                         filtered TellModel "words" | Refused/Usage []
    language                           filtered TellModel "words" | Refused/Usage []
    blocklist                          filtered TellPerson "words" | Refused/Usage []
    prohibited                         filtered TellPerson "words" | Refused/Usage []
    personal data                      filtered TellPerson "words" | Refused/Usage []
    image safety                       filtered TellPerson "words" | Refused/Usage []
    no image                           filtered TellPerson "words" | Refused/Usage []
    model armor                        filtered TellPerson "words" | Refused/Usage []
    other                              other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    unspecified                        other Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    malformed call                     tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    unexpected call                    tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    too many calls                     tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    unsigned                           tool-call Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    malformed response                 malformed Retry "words" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    escalation                         withheld TellPerson "words" | Refused/Usage []
    limited                            withheld TellPerson "words" | Refused/Usage []
    a reason of next year              complete Use "words" | Ok/Usage []
    no reason at all                   complete Use "words" | Ok/Usage []
    empty three times                  empty TellModel "" | Unusable/Usage []
    a tool call                        tool-call Retry "" | Unusable/Usage Unusable/Usage Unusable/Usage [1035, 2400]
    thought is not text                complete Use "said" | Ok/Usage []
    blocked prompt                     blocked TellPerson "" | Refused/Usage []
    blocked by a filter of next year   blocked TellPerson "" | Refused/Usage []
    blocked, jailbreak                 blocked TellPerson "" | Refused/Usage []
    usage and nothing else             ERROR bad-reply | the reply cannot be read: it does not say how it ended | Error/Unknown []
    an array with nothing in it        ERROR bad-reply | the reply cannot be read: an array in place of an object | Error/Unknown []
    a text for an answer               ERROR bad-reply | the reply cannot be read: not the JSON expected, line 1 column 7 | Error/Unknown []
    null everywhere                    complete Use "a" | Ok/Unknown []
    wrong types everywhere             complete Use "a" | Ok/Unknown []
    "#);
}

const NULLS: &str = r#"{"candidates":[{"content":{"parts":[{"text":null},{"text":"a","thought":null},{"inlineData":{}}],
    "role":null},"finishReason":"STOP","citationMetadata":null}],"usageMetadata":null,"promptFeedback":null,
    "modelVersion":null,"responseId":null,"error":null}"#;
const WRONG_TYPES: &str = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP",
    "index":"zero","finishMessage":7,"continuationToken":{}}],"usageMetadata":{"promptTokenCount":"12",
    "candidatesTokenCount":-1},"modelVersion":3.8,"responseId":["x"],"promptFeedback":"none"}"#;

#[test]
fn every_failure_has_its_outcome() {
    let ok = || Step::text("ok");
    let cases = vec![
        (
            "400 invalid",
            vec![Step::status(400).message("Invalid JSON payload")],
        ),
        (
            "400 too long",
            vec![Step::status(400).code("INVALID_ARGUMENT").message(TOO_LONG)],
        ),
        (
            "400 bad key",
            vec![
                Step {
                    bad_key: true,
                    ..Step::status(400)
                }
                .message("API key not valid."),
            ],
        ),
        (
            "400 wrong country",
            vec![
                Step::status(400)
                    .code("FAILED_PRECONDITION")
                    .message("User location"),
            ],
        ),
        ("401", vec![Step::status(401)]),
        ("402 no credit", vec![Step::status(402)]),
        ("403", vec![Step::status(403)]),
        (
            "404",
            vec![Step::status(404).message("models/x is not found")],
        ),
        ("408, then well", vec![Step::status(408), ok()]),
        ("413", vec![Step::status(413)]),
        (
            "429 a minute, hint 2s",
            vec![quota("RequestsPerMinute-FreeTier").retry_delay("2s"), ok()],
        ),
        (
            "429 hint 34.07s",
            vec![Step::status(429).retry_delay("34.07s"), ok()],
        ),
        (
            "429 hint in a header",
            vec![Step::status(429).header("retry-after", "9"), ok()],
        ),
        (
            "429 hint of an hour",
            vec![Step::status(429).retry_delay("3600s"), ok()],
        ),
        (
            "429 nonsense for a hint",
            vec![Step::status(429).retry_delay("soon"), ok()],
        ),
        (
            "429 the day's quota",
            vec![quota("RequestsPerDayPerProject").retry_delay("2s"), ok()],
        ),
        ("500 five times", vec![Step::status(500).times(9)]),
        ("504", vec![Step::status(504), ok()]),
        ("520", vec![Step::status(520), ok()]),
        ("524 for ever", vec![Step::status(524).times(9)]),
        (
            "307 to another path",
            vec![Step::status(307).header("location", "/login?k=1")],
        ),
        (
            "302 elsewhere",
            vec![Step::status(302).header("location", "http://evil.example/?k=1")],
        ),
        (
            "200 html",
            vec![Step {
                status: Some(200),
                ..Step::html(200, &format!("Log in with {KEY}"))
            }],
        ),
        (
            "200 broken JSON",
            vec![Step::body("{\"candidates\": nope}")],
        ),
        ("200 half a surrogate pair", vec![Step::body(HALF_PAIR)]),
        (
            "200 an error object",
            vec![
                Step::body("{\"error\":{\"code\":503,\"message\":\"busy\"}}"),
                ok(),
            ],
        ),
        (
            "200 not UTF-8",
            vec![Step {
                bytes: Some(
                    b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\xff\"}]}}]}".to_vec(),
                ),
                ..ok()
            }],
        ),
        ("200 larger than the limit", vec![Step::huge(2)]),
        (
            "the key echoed",
            vec![Step::status(400).message(&format!("key {KEY} is bad\u{1b}[31m"))],
        ),
        (
            "silence before the answer",
            vec![Step::text("x").hang(Hang::BeforeHead).times(5)],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    400 invalid                        ERROR bad-request | the service rejects the request (HTTP 400): Invalid JSON payload | Error/Nothing []
    400 too long                       ERROR too-large | the prompt is too large for the model: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). | Error/Nothing []
    400 bad key                        ERROR bad-key | the key is not valid: API key not valid. | Error/Nothing []
    400 wrong country                  ERROR unavailable | not available to this account here: User location | Error/Nothing []
    401                                ERROR bad-key | the key is not valid: scripted error | Error/Nothing []
    402 no credit                      ERROR billing | no credit left: scripted error | Error/Nothing []
    403                                ERROR no-permission | permission denied: scripted error | Error/Nothing []
    404                                ERROR not-found | gemini-3.8-flash not found: models/x is not found | Error/Nothing []
    408, then well                     complete Use "ok" | Error/Unknown Ok/Usage [1035]
    413                                ERROR too-large | the prompt is too large for the model: scripted error | Error/Nothing []
    429 a minute, hint 2s              complete Use "ok" | Error/Nothing Ok/Usage [2070]
    429 hint 34.07s                    complete Use "ok" | Error/Nothing Ok/Usage [35262]
    429 hint in a header               complete Use "ok" | Error/Nothing Ok/Usage [9315]
    429 hint of an hour                ERROR rate-limited | rate limit: scripted error | Error/Nothing []
    429 nonsense for a hint            complete Use "ok" | Error/Nothing Ok/Usage [1035]
    429 the day's quota                ERROR daily-quota | daily quota used up: scripted error | Error/Nothing []
    500 five times                     ERROR server | the service failed (HTTP 500): scripted error | Error/Nothing Error/Nothing Error/Nothing Error/Nothing Error/Nothing [1035, 2400, 4716, 9552]
    504                                complete Use "ok" | Error/Unknown Ok/Usage [1035]
    520                                complete Use "ok" | Error/Nothing Ok/Usage [1035]
    524 for ever                       ERROR server | the service failed (HTTP 524): scripted error | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    307 to another path                ERROR redirected | the service redirects (HTTP 307) to another path | Error/Nothing []
    302 elsewhere                      ERROR redirected | the service redirects (HTTP 302) to http://evil.example | Error/Nothing []
    200 html                           ERROR bad-reply | the reply cannot be read: a page of HTML, "Log in with …xy" | Error/Unknown []
    200 broken JSON                    ERROR bad-reply | the reply cannot be read: not the JSON expected, line 1 column 17 | Error/Unknown []
    200 half a surrogate pair          complete Use "�" | Ok/Unknown []
    200 an error object                complete Use "ok" | Error/Unknown Ok/Usage [1035]
    200 not UTF-8                      ERROR bad-reply | the reply cannot be read: not UTF-8 from byte 45 on | Error/Unknown []
    200 larger than the limit          ERROR body-too-large | the reply is larger than 1048576 bytes | Error/Unknown []
    the key echoed                     ERROR bad-request | the service rejects the request (HTTP 400): key …xy is bad [31m | Error/Nothing []
    silence before the answer          ERROR idle | the service sent nothing for 0.4 s | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    "#);
}

const TOO_LONG: &str =
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
const HALF_PAIR: &str = r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]},"finishReason":"STOP"}],"modelVersion":"m"}"#;

#[test]
fn a_page_in_the_place_of_an_answer_is_not_read_to_its_end() {
    let page = || Step::html(200, &format!("Sign in</title>{}", "x".repeat(2 << 20)));
    insta::assert_snapshot!(table(false, vec![("html larger than an answer", vec![page()])]), @r#"html larger than an answer         ERROR bad-reply | the reply cannot be read: a page of HTML, "Sign in" | Error/Unknown []"#);
    insta::assert_snapshot!(table(true, vec![("the same for a stream", vec![page()])]), @r#"the same for a stream              ERROR bad-reply | the reply cannot be read: a page of HTML, "Sign in" | Error/Unknown []"#);
}

#[test]
fn an_error_whose_body_breaks_off_or_stands_still_is_the_one_that_its_status_names() {
    let page = || Step::html(502, "502 Bad Gateway");
    let cases = vec![
        (
            "502 cut behind its title",
            vec![page().cut_after(60).times(9)],
        ),
        (
            "502 that stands still",
            vec![page().hang(Hang::After(60)), Step::text("ok")],
        ),
        (
            "401 that never explains itself",
            vec![Step::status(401).hang(Hang::After(0))],
        ),
    ];
    insta::assert_snapshot!(table(false, cases), @r#"
    502 cut behind its title           ERROR server | the service failed (HTTP 502): a page of HTML, "502 Bad Gateway" | Error/Nothing Error/Nothing Error/Nothing Error/Nothing Error/Nothing [1035, 2400, 4716, 9552]
    502 that stands still              complete Use "ok" | Error/Nothing Ok/Usage [1035]
    401 that never explains itself     ERROR bad-key | the key is not valid: no further explanation | Error/Nothing []
    "#);
}

#[test]
fn who_is_cancelled_while_an_error_arrives_is_told_that_and_not_the_error() {
    let server =
        Server::start(Script::new([Step::status(400).hang(Hang::After(9))])).expect("a server");
    let mut notes = Notes {
        cancel_at: Some(9),
        ..Notes::default()
    };
    let result = model(server.origin()).call(&Request::default(), &mut notes);
    insta::assert_snapshot!(outcomes::line("cancelled", &result, &notes), @"cancelled                          ERROR cancelled | cancelled | Cancelled/Unknown []");
}

#[test]
fn an_answer_that_is_cut_says_after_how_many_bytes() {
    let half = Step::text("x")
        .framing(Framing::Close)
        .cut_after(40)
        .times(9);
    insta::assert_snapshot!(table(false, vec![("half of the JSON, for ever", vec![half])]), @"half of the JSON, for ever         ERROR stream-cut | the reply broke off after 40 bytes | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]");
}

#[test]
fn a_stream_counts_only_with_its_end() {
    let ok = || Step::text("whole and well");
    let events = |body: &str| Step {
        content_type: Some("text/event-stream".into()),
        ..Step::body(body)
    };
    let cases = vec![
        (
            "no finish reason, for ever",
            vec![
                Step {
                    no_end: true,
                    ..ok()
                }
                .times(9),
            ],
        ),
        (
            "half a message for an event",
            vec![events("data: {\"candidates\":[\n\n").times(9)],
        ),
        ("open after the end", vec![ok().hang(Hang::BeforeEnd)]),
        (
            "error in the middle, for ever",
            vec![
                Step {
                    stream_error: Some(json!({"code": 500, "message": "x"})),
                    ..ok()
                }
                .times(9),
            ],
        ),
        (
            "bad key in the middle",
            vec![Step {
                stream_error: Some(json!({"code": 401, "message": "no"})),
                ..ok()
            }],
        ),
        (
            "plain JSON instead",
            vec![Step {
                content_type: Some("application/json".into()),
                ..Step::body(NULLS)
            }],
        ),
        (
            "an event that is no JSON",
            vec![Step {
                content_type: Some("text/event-stream".into()),
                ..Step::body("data: x\n\n")
            }],
        ),
        (
            "comments only",
            vec![
                Step {
                    content_type: Some("text/event-stream".into()),
                    ..Step::body(":\n\n:\n\n")
                }
                .times(9),
            ],
        ),
        ("empty events and a done", vec![events(KEPT_OPEN)]),
        ("cut behind the end", vec![events(CUT_BEHIND)]),
        (
            "done without a finish reason",
            vec![events("data: [DONE]\n\n"), ok()],
        ),
    ];
    insta::assert_snapshot!(table(true, cases), @r#"
    no finish reason, for ever         ERROR stream-cut | the reply broke off after 472 bytes | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    half a message for an event        ERROR stream-cut | the reply broke off after 23 bytes | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    open after the end                 complete Use "whole and well" | Ok/Usage []
    error in the middle, for ever      ERROR server | the service failed (HTTP 500): x | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    bad key in the middle              ERROR bad-key | the key is not valid: no | Error/Unknown []
    plain JSON instead                 complete Use "a" | Ok/Unknown []
    an event that is no JSON           ERROR bad-request | the service rejects the request (HTTP 400): the script has no further step | Error/Unknown Error/Nothing [1035]
    comments only                      ERROR stream-cut | the reply broke off after 6 bytes | Error/Unknown Error/Unknown Error/Unknown [1035, 2400]
    empty events and a done            complete Use "a" | Ok/Unknown []
    cut behind the end                 complete Use "a" | Ok/Unknown []
    done without a finish reason       complete Use "whole and well" | Error/Unknown Ok/Usage [1035]
    "#);
}

const CUT_BEHIND: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}\n\ndata: {\"usageMeta";
const KEPT_OPEN: &str = "data:\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\
    \"finishReason\":\"STOP\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn nobody_at_home_is_a_connect_error_after_five_tries() {
    let closed = Server::start(Script::default())
        .expect("a server")
        .origin()
        .to_owned();
    let mut notes = Notes::default();
    let result = model(&closed).call(
        &Request {
            prompt: "hi",
            ..Request::default()
        },
        &mut notes,
    );
    let shown = outcomes::line("closed port", &result, &notes).replace(&closed, "ORIGIN");
    insta::assert_snapshot!(shown, @"closed port                        ERROR connect | cannot connect to ORIGIN | Error/Nothing Error/Nothing Error/Nothing Error/Nothing Error/Nothing [1035, 2400, 4716, 9552]");
}
