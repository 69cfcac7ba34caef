//! What is sent, what is journaled, and how a caller controls a call.

use std::sync::Arc;
use std::time::Duration;

use code_commit_fixtures::server::{Hang, Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{
    Attempt, AttemptStatus, CallError, Client, Finish, Gemini, Model, Reply, Request, Secret,
    Spend, Waited, Watch,
};
use serde_json::{Value, json};

const KEY: &str = "AIzaSyTest-key-0123456789-xy";

fn service(origin: &str, key: &str) -> Gemini {
    let base = origin.parse().expect("an origin");
    let id = "gemini-3.8-flash".parse().expect("a name");
    Gemini::new(base, id, Secret::new(key))
}

fn limited(server: &Server, key: &str, limits: Limits) -> Client {
    let agent = Arc::new(Agent::new(Network::default(), limits));
    Client::new(agent, service(server.origin(), key))
}

fn model(server: &Server) -> Client {
    limited(server, KEY, Limits::default())
}

fn request(stream: bool) -> Request<'static> {
    Request {
        prompt: "hi",
        stream,
        ..Request::default()
    }
}

fn ask(server: &Server, request: &Request<'_>) -> Result<Reply, CallError> {
    model(server).call(request, &mut Notes::default())
}

fn server(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::start(Script::new(steps)).expect("a server")
}

fn raw(reply: &Reply) -> Value {
    serde_json::from_str(&code_commit_fixtures::wire::logged(reply).expect("text"))
        .expect("one JSON object")
}

#[test]
fn the_request_holds_what_was_asked_for_and_nothing_else() {
    let server = server([Step::text("{}").times(3)]);
    let model = model(&server);
    let schema = json!({"type": "object"});
    let full = Request {
        prompt: "do \"it\"\n",
        system: Some("be brief"),
        temperature: Some(0.2),
        schema: Some(&schema),
        stream: true,
        max_output_tokens: Some(256),
        ..Request::default()
    };
    model.call(&request(false), &mut Notes::default()).unwrap();
    model.call(&full, &mut Notes::default()).unwrap();
    let seen = server.requests();
    insta::assert_snapshot!(String::from_utf8_lossy(&seen[0].body), @r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#);
    insta::assert_snapshot!(String::from_utf8_lossy(&seen[1].body), @r#"{"systemInstruction":{"role":"user","parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"do \"it\"\n"}]}],"generationConfig":{"temperature":0.2,"maxOutputTokens":256,"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}"#);
    assert_eq!(
        seen[0].path,
        "/v1beta/models/gemini-3.8-flash:generateContent"
    );
    assert_eq!(
        seen[1].path,
        "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    );
    assert_eq!(seen[0].header("x-goog-api-key"), Some(KEY));
    assert_eq!(seen[0].header("authorization"), None);
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
}

#[test]
fn a_plain_answer_is_logged_as_it_was_received() {
    let body = r#"{ "candidates": [ {"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"} ], "odd": 1e400 }"#;
    let server = server([Step::body(body)]);
    let reply = ask(&server, &Request::default()).unwrap();
    assert_eq!(code_commit_fixtures::wire::logged(&reply).unwrap(), body);
}

#[test]
fn a_streamed_answer_is_logged_as_one_object() {
    let step = Step {
        thought: Some("hm".into()),
        pieces: Some(3),
        ..Step::text("line \"one\"\nline two")
    };
    let server = server([step]);
    let mut notes = Notes::default();
    let reply = model(&server).call(&request(true), &mut notes).unwrap();
    assert_eq!(notes.streamed, reply.text);
    assert_eq!(notes.connected, 1);
    insta::assert_snapshot!(raw(&reply), @r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"line \"one\"\nline two"}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-3.8-flash","responseId":"resp-1","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":14,"thoughtsTokenCount":1,"totalTokenCount":20}}"#);
}

#[test]
fn an_answer_that_goes_on_is_followed_and_paid_for() {
    let part = |text: &str, token: &str| {
        let step = Step::text(text)
            .finish("CONTINUATION")
            .usage(json!({"promptTokenCount": 10}));
        Step {
            continuation: Some(token.into()),
            ..step
        }
    };
    for stream in [false, true] {
        let end =
            Step::text("three").usage(json!({"promptTokenCount": 10, "candidatesTokenCount": 1}));
        let server = server([part("one ", "t1"), part("two ", "t2"), end]);
        let mut notes = Notes::default();
        let reply = model(&server).call(&request(stream), &mut notes).unwrap();
        assert_eq!(
            (reply.text.as_str(), &reply.finish, reply.attempts),
            ("one two three", &Finish::Complete, 3)
        );
        assert_eq!(reply.usage.input_tokens, Some(30));
        assert_eq!(
            raw(&reply).pointer("/candidates/0/content/parts/0/text"),
            Some(&json!("one two three"))
        );
        let seen = server.requests();
        let token = |n: usize| {
            seen[n]
                .json()
                .pointer("/generationConfig/continuationToken")
                .cloned()
        };
        assert_eq!(
            (token(0), token(1), token(2)),
            (None, Some(json!("t1")), Some(json!("t2")))
        );
        assert!(notes.waits.is_empty());
        assert_eq!(notes.attempts[0].status, AttemptStatus::Continued);
    }
}

/// A part of an answer that the next one continues.
fn part(text: &str) -> Step {
    Step {
        continuation: Some("t".into()),
        ..Step::text(text).finish("CONTINUATION")
    }
}

#[test]
fn whoever_watches_sees_the_whole_of_an_answer_that_goes_on_and_nothing_twice() {
    let cut = Step {
        no_end: true,
        ..Step::text("tw")
    };
    let server = server([part("one "), cut, Step::text("two")]);
    let mut notes = Notes::default();
    let reply = model(&server).call(&request(true), &mut notes).unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts), ("one two", 3));
    assert_eq!(notes.streamed, "one two");
}

#[test]
fn an_answer_that_goes_on_is_not_whole_before_its_service_says_so() {
    let call = |last: Step| {
        let server = server([part("one"), last]);
        ask(&server, &Request::default())
    };
    assert_eq!(call(Step::body("{}")).unwrap_err().code(), "bad-reply");
    let reply = call(Step::body(r#"{"candidates":[{"finishReason":"STOP"}]}"#)).unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.finish),
        ("one", Finish::Complete)
    );
}

#[test]
fn a_whole_answer_counts_also_where_time_is_over_before_its_connection_is() {
    // Shorter than the wait for what may follow the end mark.
    let time_left = Some(Duration::from_millis(1500));
    let server = server([
        Step::text("whole").hang(Hang::BeforeEnd),
        Step::text("paid for again"),
    ]);
    let mut notes = Notes::default();
    let request = Request {
        prompt: "hi",
        stream: true,
        time_left,
        ..Request::default()
    };
    let reply = model(&server).call(&request, &mut notes).unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.finish, reply.attempts),
        ("whole", Finish::Complete, 1)
    );
    assert_eq!(notes.attempts[0].spend, Spend::Usage);
}

#[test]
fn an_answer_without_end_is_given_up() {
    let server = server([part("x").times(20)]);
    let reply = ask(&server, &Request::default()).unwrap();
    assert_eq!(
        (reply.finish, reply.text.len(), reply.attempts),
        (Finish::Endless, 9, 9)
    );
}

#[test]
fn each_attempt_is_a_row_of_the_journal() {
    let server = server([Step::status(503).message("busy"), Step::text("done")]);
    let mut notes = Notes::default();
    model(&server).call(&request(false), &mut notes).unwrap();
    let mut rows = notes.attempts;
    for row in &mut rows {
        (row.duration_ms, row.first_byte_ms) = (0, None);
    }
    let shown = serde_json::to_string(&rows).unwrap();
    insta::assert_snapshot!(shown.replace("},{", "},\n{"), @r#"
    [{"number":1,"status":"error","finish_reason":null,"http_status":503,"error":"overloaded","message":"the service is overloaded (HTTP 503): busy","served_model":null,"response_id":null,"usage":{"input_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":null,"reasoning_tokens":null},"spend":"nothing","duration_ms":0,"first_byte_ms":null,"wait_ms":1035},
    {"number":2,"status":"ok","finish_reason":"STOP","http_status":200,"error":null,"message":null,"served_model":"gemini-3.8-flash","response_id":"resp-2","usage":{"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":2,"reasoning_tokens":null},"spend":"usage","duration_ms":0,"first_byte_ms":null,"wait_ms":null}]
    "#);
}

/// Cancels as soon as the service has the request.
struct Impatient<'s>(&'s Server, Notes);

impl Watch for Impatient<'_> {
    fn wait(&mut self, duration: Duration) -> Waited {
        self.1.wait(duration)
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.1.attempt(attempt);
    }

    fn cancelled(&self) -> bool {
        !self.0.requests().is_empty()
    }
}

#[test]
fn a_cancelled_call_ends_at_once_and_its_connection_with_it() {
    for hang in [Hang::BeforeHead, Hang::After(30)] {
        let server = server([Step::text("never").hang(hang), Step::text("next")]);
        let model = model(&server);
        let mut watch = Impatient(&server, Notes::default());
        let error = model.call(&request(true), &mut watch).unwrap_err();
        assert_eq!(error.code(), "cancelled");
        assert_eq!(watch.1.attempts[0].status, AttemptStatus::Cancelled);
        assert_eq!(watch.1.attempts[0].spend, Spend::Unknown);
        let reply = model
            .call(&Request::default(), &mut Notes::default())
            .unwrap();
        assert_eq!(
            (reply.text.as_str(), server.connections()),
            ("next", 2),
            "the agent works on"
        );
    }
}

#[test]
fn a_cancelled_call_leaves_the_connections_of_others_open() {
    let slow = Step {
        chunk_bytes: Some(40),
        chunk_delay_ms: 50,
        ..Step::text("slow and whole")
    };
    let slow_server = server([slow]);
    let hanging = server([Step::text("never").hang(Hang::After(30))]);
    let agent = Arc::new(Agent::new(Network::default(), Limits::default()));
    let of = |server: &Server| {
        let base = server.origin().parse().unwrap();
        let id = "gemini/m".parse().unwrap();
        Client::new(agent.clone(), Gemini::new(base, id, Secret::new(KEY)))
    };
    let (slow, hangs) = (of(&slow_server), of(&hanging));
    std::thread::scope(|scope| {
        let mut notes = Notes::default();
        let other = scope.spawn(move || {
            let reply = slow.call(&request(true), &mut notes);
            (reply.unwrap().text, notes.attempts.len())
        });
        slow_server.wait_for_requests(1);
        let mut watch = Impatient(&hanging, Notes::default());
        assert_eq!(
            hangs.call(&request(true), &mut watch).unwrap_err().code(),
            "cancelled"
        );
        assert!(!other.is_finished());
        assert_eq!(other.join().unwrap(), ("slow and whole".to_owned(), 1));
    });
}

#[test]
fn a_call_that_is_cancelled_before_it_begins_sends_nothing() {
    let server = server([Step::text("first")]);
    let model = model(&server);
    let mut notes = Notes {
        cancel_at: Some(0),
        ..Notes::default()
    };
    assert_eq!(
        model
            .call(&Request::default(), &mut notes)
            .unwrap_err()
            .code(),
        "cancelled"
    );
    assert_eq!(
        model
            .call(&Request::default(), &mut Notes::default())
            .unwrap()
            .text,
        "first"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_stream_that_never_pauses_can_be_cancelled() {
    let server = server([Step::huge(8)]);
    let mut notes = Notes {
        cancel_at: Some(1 << 20),
        ..Notes::default()
    };
    let error = model(&server).call(&request(true), &mut notes).unwrap_err();
    assert_eq!(error.code(), "cancelled");
    assert!(notes.bytes < 2 << 20, "{}", notes.bytes);
}

#[test]
fn a_body_of_two_hundred_megabytes_is_read_up_to_the_limit_only() {
    for stream in [false, true] {
        let server = server([Step::huge(200)]);
        let limits = Limits {
            body: 4 << 20,
            ..Limits::default()
        };
        let model = limited(&server, KEY, limits);
        let mut notes = Notes::default();
        let error = model.call(&request(stream), &mut notes).unwrap_err();
        assert_eq!(error.to_string(), "the reply is larger than 4194304 bytes");
        assert!(notes.bytes <= 4 << 20);
    }
}

#[test]
fn a_caller_without_means_gets_the_failure_instead_of_a_retry() {
    let server = server([Step::status(503), Step::text("too late")]);
    let mut notes = Notes {
        broke: true,
        ..Notes::default()
    };
    let error = model(&server)
        .call(&Request::default(), &mut notes)
        .unwrap_err();
    assert_eq!(
        (error.code(), server.steps_left(), notes.attempts[0].wait_ms),
        ("overloaded", 1, None)
    );
}

#[test]
fn the_callers_time_ends_an_attempt_too() {
    let server = server([Step::text("never").hang(Hang::BeforeHead)]);
    let request = Request {
        time_left: Some(Duration::from_millis(80)),
        ..Request::default()
    };
    let error = ask(&server, &request).unwrap_err();
    assert_eq!(error.to_string(), "no complete reply after 0.08 s");
}

#[test]
fn tokens_are_counted_with_the_system_instruction() {
    let server = server([]);
    let request = Request {
        prompt: "hi",
        system: Some("be brief"),
        ..Request::default()
    };
    let count = model(&server)
        .count_tokens(&request, &mut Notes::default())
        .unwrap();
    assert!(count.is_some_and(|count| count > 0));
    let seen = &server.requests()[0];
    assert_eq!(seen.path, "/v1beta/models/gemini-3.8-flash:countTokens");
    insta::assert_snapshot!(String::from_utf8_lossy(&seen.body), @r#"{"generateContentRequest":{"model":"models/gemini-3.8-flash","systemInstruction":{"role":"user","parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}}"#);
}

#[test]
fn half_a_count_says_how_much_of_it_there_is() {
    let server =
        Server::start(Script::default().rule(":countTokens", Step::body("{\"totalTok"))).unwrap();
    let error = model(&server)
        .count_tokens(&Request::default(), &mut Notes::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "the reply broke off after 10 bytes");
}

#[test]
fn key_and_model_are_checked_without_a_paid_call() {
    let good = server([]);
    model(&good).check(&mut Notes::default()).unwrap();
    assert_eq!(good.requests()[0].method, "GET");
    let rule = Step {
        bad_key: true,
        ..Step::status(400)
    };
    let bad = Server::start(Script::default().rule("GET /v1beta/models", rule)).unwrap();
    assert_eq!(
        model(&bad).check(&mut Notes::default()).unwrap_err().code(),
        "bad-key"
    );
}

#[test]
fn a_page_in_the_place_of_the_models_description_is_no_good_sign() {
    let check = |step| {
        let server = Server::start(Script::default().rule("GET /v1beta/models", step)).unwrap();
        model(&server)
            .check(&mut Notes::default())
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(check(Step::html(200, "Please log in")), @r#"the reply cannot be read: a page of HTML, "Please log in""#);
    insta::assert_snapshot!(check(Step::html(401, "Who are you?").cut_after(60)), @r#"the key is not valid: a page of HTML, "Who are you?""#);
    let labelled = Step {
        content_type: Some("Text/HTML; charset=utf-8".into()),
        ..Step::body("Please log in")
    };
    insta::assert_snapshot!(check(labelled), @"the reply cannot be read: Please log in");
    insta::assert_snapshot!(check(Step::body(&" ".repeat(17 << 20))), @"the reply is larger than 16777216 bytes");
}

#[test]
fn a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it() {
    let server = server([Step::text("x")]);
    let model = limited(&server, "two\nlines-of-key", Limits::default());
    let error = model
        .call(&Request::default(), &mut Notes::default())
        .unwrap_err();
    assert_eq!(error.code(), "setup");
    assert!(
        !format!("{error:?} {model:?}").contains("lines-of-k"),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 0);
}

/// Serves an example and returns how the client reads it.
fn check(status: u16, body: &str) -> String {
    code_commit_fixtures::wire::read_by(|origin| service(origin, "k"), status, body)
        .expect("a server")
}

#[test]
fn the_examples_of_the_wire_are_understood() {
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-thought.json")), @r#"
    Complete Some("STOP") "Hello." Some("gemini-3.8-flash") Some("fakeresp1")
    {"input_tokens":14,"cache_read_tokens":8,"cache_write_tokens":null,"output_tokens":4,"reasoning_tokens":3}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-truncated.json")), @r#"
    Truncated Some("MAX_TOKENS") "cut of" Some("gemini-3.8-flash") Some("fakeresp2")
    {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":1,"reasoning_tokens":null}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-blocked-prompt.json")), @r#"
    Blocked { filter: Prohibited } Some("PROHIBITED_CONTENT") "" Some("gemini-3.8-flash") Some("fakeresp3")
    {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":0,"reasoning_tokens":null}
    "#);
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-no-content.json")), @r#"
    Filtered { filter: Safety } Some("SAFETY") "" Some("gemini-3.8-flash") Some("fakeresp4")
    {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":1,"reasoning_tokens":null}
    "#);
    insta::assert_snapshot!(check(429, include_str!("../../../fixtures/wire/gemini-429-per-minute.json")), @"rate-limited: rate limit: You exceeded your current quota, please check your plan and billing details. Please retry in 2s.");
    insta::assert_snapshot!(check(400, include_str!("../../../fixtures/wire/gemini-400-bad-key.json")), @"bad-key: the key is not valid: API key not valid. Please pass a valid API key.");
    insta::assert_snapshot!(check(200, include_str!("../../../fixtures/wire/gemini-stream.sse")), @r#"
    Complete Some("STOP") "streamed text here" Some("gemini-3.8-flash") Some("fakeresp7")
    {"input_tokens":14,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":4,"reasoning_tokens":null}
    "#);
}

#[test]
fn what_only_the_total_shows_counts_as_output() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":115}}"#;
    insta::assert_snapshot!(check(200, body), @r#"
    Complete Some("STOP") "a" None None
    {"input_tokens":10,"cache_read_tokens":null,"cache_write_tokens":null,"output_tokens":105,"reasoning_tokens":100}
    "#);
}
