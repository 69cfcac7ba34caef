//! Calls of models: money, answers, and what happens when something ends early.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use code_commit_fixtures::server::{Script, Step};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::scene::{
    GEMINI, LOCKS, STREAM, Scene, ask_model, has, pick, refused_serve, scene, until,
};

/// 3 tokens of input and 2 of output, at 1.25 and 10 dollars a million.
const COST: i64 = 3 * 1250 + 2 * 10_000;

fn hello() -> Step {
    let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 });
    let usage = Some(usage);
    Step {
        usage,
        ..Step::text("hello")
    }
}

fn slow(delay_ms: u64) -> Step {
    Step {
        delay_ms,
        ..hello()
    }
}

/// A request that may cost a bit more than a cent.
fn small(number: usize) -> String {
    let text = format!("request {number:03}");
    let contents = json!([{ "role": "user", "parts": [{ "text": text }] }]);
    json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 1000 } }).to_string()
}

/// Sends a request of an attempt and leaves the answer to the caller.
fn connect(scene: &Scene, token: &str, path: &str) -> TcpStream {
    let mut program = TcpStream::connect(scene.url.strip_prefix("http://").unwrap()).unwrap();
    let (body, close) = (small(0), "host: g\r\nconnection: close");
    let head = format!("POST {path} HTTP/1.1\r\n{close}\r\nauthorization: Bearer {token}");
    write!(
        program,
        "{head}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    program
}

#[test]
fn each_dialect_passes_through_with_the_vendors_key_and_is_kept() {
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    let claude = format!(r#"{{"model":"claude-fable-5-1","max_tokens":100,{messages}"#);
    let chat = format!(r#"{{"model":"gpt-5.2",{messages}"#);
    let usage = r#""stream_options":{"include_usage":true}"#;
    let cases = [
        ("x-goog-api-key", GEMINI, small(0)),
        ("x-goog-api-key", STREAM, small(0)),
        ("authorization", "/m/chat/completions", format!("{chat}}}")),
        (
            "authorization",
            "/m/chat/completions",
            format!(r#"{chat},"stream":true,{usage}}}"#),
        ),
        (
            "authorization",
            "/m/responses",
            r#"{"model":"gpt-5.2","input":"hi"}"#.to_owned(),
        ),
        ("x-api-key", "/m/v1/messages", format!("{claude}}}")),
        (
            "x-api-key",
            "/m/v1/messages",
            format!(r#"{claude},"stream":true}}"#),
        ),
    ];
    let scene = scene!(Script::new([Step::text("hello").times(cases.len())]), "");
    let token = scene.begin("one");
    let ask = |token: &str| {
        let answers = cases
            .iter()
            .map(|(_, path, body)| scene.model(token, path, body));
        answers.collect::<Vec<_>>()
    };
    let answers = ask(&token);
    for (status, body) in &answers {
        assert_eq!(*status, 200);
        has(body, "hel");
    }
    // The next attempt, from another machine, asks the same and gets the same.
    assert_eq!(ask(&scene.begin("one")), answers);
    let seen = scene.vendor.requests();
    assert_eq!(seen.len(), cases.len());
    for (seen, (header, path, body)) in seen.iter().zip(&cases) {
        assert_eq!(format!("/m{}", seen.path), *path);
        assert_eq!(seen.body, body.as_bytes());
        assert!(seen.header(header).unwrap().contains("the-real-"));
        assert!(!format!("{seen:?}").contains(&token));
    }
    let log = scene.log();
    let is_json = |line| serde_json::from_str::<Value>(line).is_ok();
    assert!(log.lines().all(is_json), "{log}");
    for secret in ["the-real", &token, &scene.worker] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn an_answer_costs_what_its_tokens_cost() {
    let scene = scene!(Script::new([hello()]), "");
    let token = scene.begin("one");
    for _again in 0..3 {
        assert_eq!(scene.model(&token, GEMINI, &small(0)).0, 200);
    }
    assert_eq!(scene.money(), (0, COST));
    let cost = json!({ "batch": "b", "model": "gemini-2.5-pro", "calls": 1, "unknown": 0, "again": 0, "input_tokens": 3,
        "output_tokens": 2, "known_usd": "0.00002375", "assumed_usd": "0.00" });
    assert_eq!(scene.table("costs"), [cost]);
}

#[test]
fn no_cap_is_passed_by_calls_that_are_made_at_once() {
    let script = Script::default().rule("generateContent", slow(300));
    let scene = &scene!(script, "");
    for (turn, scope) in ["all", "tenant:t", "batch:b"].into_iter().enumerate() {
        let (_, before) = scene.money();
        let cap = |nanos: i64| scene.admin(&format!("cap {scope} 0.{:09}", before + nanos));
        // Three reservations at a time, and what they cost in the end is nearly nothing.
        cap(35_000_000);
        let tokens: Vec<_> = (0..12)
            .map(|n| scene.begin(&format!("order-{turn}-{n}")))
            .collect();
        thread::scope(|all| {
            let asked = tokens.iter().enumerate();
            let ask = |(n, token)| all.spawn(move || scene.model(token, GEMINI, &small(n)).0);
            let calls: Vec<_> = asked.map(|(n, token)| ask((n, token.as_str()))).collect();
            while calls.iter().any(|call| !call.is_finished()) {
                let (held, spent) = scene.money();
                assert!(held + spent <= before + 35_000_000, "{held} {spent}");
            }
            let all_pass = calls.into_iter().all(|call| call.join().unwrap() == 200);
            assert!(all_pass, "those that wait for money get it");
        });
        assert_eq!(scene.money(), (0, before + 12 * COST));
        // What one call may cost is more than what is left.
        cap(10_000_000);
        let (status, body) = scene.model(&tokens[0], GEMINI, &small(99));
        let said = format!("{scope} has $0.009715 left, and the call may cost $0.01");
        assert!(status == 402 && body.contains(&said), "{body}");
        let unknown = "/m/v1beta/models/nobody-knows:generateContent";
        // Unknown is not zero.
        assert_eq!(scene.model(&tokens[0], unknown, &small(0)).0, 402);
        scene.admin(&format!("cap {scope} none"));
        assert_eq!(scene.model(&tokens[0], GEMINI, &small(99)).0, 200);
    }
}

#[test]
fn the_same_request_under_way_is_waited_for() {
    let scene = scene!(Script::new([slow(500)]), "");
    let token = scene.begin("one");
    thread::scope(|all| {
        let first = all.spawn(|| scene.model(&token, STREAM, &small(0)));
        scene.vendor.wait_for_requests(1);
        let second = scene.begin("one");
        let again = scene.model(&second, STREAM, &small(0));
        assert_eq!(first.join().unwrap(), again);
    });
    assert_eq!(scene.asked(), 1);
}

#[test]
fn an_answer_is_stored_before_its_end_is_passed_on() {
    let mut scene = scene!(Script::new([slow(300)]), "");
    let token = scene.begin("one");
    let mut program = connect(&scene, &token, STREAM);
    scene.vendor.wait_for_requests(1);
    scene.postgres.stop_immediately();
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    let has = |answer: &[u8], text: &str| String::from_utf8_lossy(answer).contains(text);
    while !has(&answer, "\"text\"") {
        let read = program.read(&mut piece).unwrap();
        assert!(read > 0);
        answer.extend_from_slice(&piece[..read]);
    }
    // The vendor has answered long ago, but nobody could store it.
    program
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    assert!(program.read(&mut piece).is_err(), "its end came earlier");
    assert!(!has(&answer, "STOP"));
    scene.postgres.begin();
    program.set_read_timeout(None).unwrap();
    program.read_to_end(&mut answer).unwrap();
    assert!(has(&answer, "STOP"));
    assert_eq!(scene.money(), (0, COST));
    // And the gateway goes on.
    assert_eq!(scene.model(&token, STREAM, &small(0)).0, 200);
    assert_eq!(scene.asked(), 1);
}

#[test]
fn an_earlier_token_can_neither_ask_nor_finish() {
    let scene = scene!(Script::new([hello()]), "");
    let (first, second) = (scene.begin("one"), scene.begin("one"));
    assert_eq!(scene.model(&first, GEMINI, &small(0)).0, 410);
    assert_eq!(scene.ask("/v1/bundle", &first, &json!("bytes")).0, 410);
    assert_eq!(scene.finish(&first), 410);
    assert_eq!(scene.model(&second, GEMINI, &small(0)).0, 200);
    assert_eq!(scene.finish(&second), 200);
    // A finished order asks no more.
    assert_eq!(scene.model(&second, GEMINI, &small(1)).0, 410);
    assert_eq!(scene.model("guess", GEMINI, &small(0)).0, 410);
    assert_eq!(scene.asked(), 1);
}

#[test]
fn a_call_of_a_killed_gateway_counts_in_full_and_is_listed() {
    let mut scene = scene!(Script::new([slow(60_000), hello()]), "");
    let token = scene.begin("one");
    let program = connect(&scene, &token, GEMINI);
    scene.vendor.wait_for_requests(1);
    let (reserved, _) = scene.money();
    assert!(reserved > 10_000_000, "{reserved}");
    scene.restart();
    drop(program);
    assert_eq!(scene.money(), (0, reserved));
    assert_eq!(scene.model(&token, GEMINI, &small(0)).0, 200);
    assert_eq!(scene.money(), (0, reserved + COST));
    let doubtful = scene.table("costs --doubtful");
    assert_eq!(doubtful.len(), 1, "{doubtful:?}");
    let fields = pick(&doubtful[0], ["state", "order"]);
    assert_eq!(fields, json!(["unknown", "one"]));
    // The vendor's list had less, and then the answer came.
    scene.admin("recount all 0");
    let settle = "settle(id, 'failed', NULL, NULL, NULL, NULL, NULL)";
    let unknown = "FROM calls WHERE state = 'unknown'";
    scene.postgres.query(&format!("SELECT {settle} {unknown}"));
    assert_eq!(scene.money(), (0, 0));
}

#[test]
fn a_reservation_whose_answer_is_lost_is_given_back() {
    let scene = scene!(Script::new([hello()]), "");
    let token = scene.begin("one");
    let standby = |name: &str| {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
        scene.postgres.query(&set);
        scene.postgres.query("SELECT pg_reload_conf()");
    };
    // Commits, and does not say so.
    standby("nobody");
    let end = "SELECT pg_terminate_backend(pid)";
    let waiting = format!("{end} FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    thread::scope(|all| {
        let asked = all.spawn(|| scene.model(&token, GEMINI, &small(0)).0);
        scene.postgres.until(&waiting, "t");
        assert_eq!(asked.join().unwrap(), 503);
    });
    standby("");
    until("money", || (scene.money() == (0, 0)).then_some(()));
    assert_eq!(scene.model(&token, GEMINI, &small(0)).0, 200);
    assert_eq!(scene.money(), (0, COST));
}

#[test]
fn an_answer_that_breaks_off_counts_in_full_and_is_cut_for_the_program_too() {
    let cut = Step {
        no_end: true,
        ..hello()
    };
    let scene = scene!(Script::new([cut.cut_after(30), hello()]), "");
    let token = scene.begin("one");
    let (_, body) = scene.model(&token, STREAM, &small(0));
    assert!(body.starts_with("CUT"), "{body}");
    let (held, spent) = scene.money();
    assert!(held == 0 && spent > 10_000_000, "{spent}");
    assert_eq!(scene.model(&token, STREAM, &small(0)).0, 200);
    assert_eq!(scene.money(), (0, spent + COST));
}

#[test]
fn a_refused_call_costs_nothing_and_a_vendor_that_asks_for_a_pause_gets_it() {
    let limited = Step::status(429).header("retry-after", "100000000");
    let scene = scene!(Script::new([Step::status(400), limited]), "");
    let (one, two) = (scene.begin("one"), scene.begin("two"));
    assert_eq!(scene.model(&one, GEMINI, &small(0)).0, 400);
    assert_eq!(scene.model(&one, GEMINI, &small(1)).0, 429);
    // Another order of the same model is not even tried; another model is.
    let (status, body) = scene.model(&two, GEMINI, &small(2));
    assert!(status == 429 && body.contains("not yet the turn"), "{body}");
    assert_eq!(scene.asked(), 2);
    let other = GEMINI.replace("pro", "flash-lite");
    assert_eq!(scene.model(&two, &other, &small(2)).0, 400);
    assert_eq!(scene.money(), (0, 0));
}

#[test]
fn a_model_is_called_at_one_pace() {
    let script = Script::default().rule("generateContent", hello());
    let scene = &scene!(script, "--calls-per-minute 120");
    let tokens: Vec<_> = (0..5)
        .map(|number| scene.begin(&format!("order-{number}")))
        .collect();
    let begun = Instant::now();
    thread::scope(|all| {
        for token in &tokens {
            all.spawn(move || assert_eq!(scene.model(token, GEMINI, &small(0)).0, 200));
        }
    });
    let elapsed = begun.elapsed();
    // Five calls, half a second apart.
    assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}");
}

#[test]
fn a_gateway_that_is_stopped_stores_the_answer_that_nobody_waits_for() {
    let mut scene = scene!(Script::new([slow(3000)]), "");
    let program = connect(&scene, &scene.begin("one"), GEMINI);
    scene.vendor.wait_for_requests(1);
    drop(program);
    scene.serve.signal(Signal::TERM);
    let address = scene.url.strip_prefix("http://").unwrap();
    until("end of listening", || TcpStream::connect(address).err());
    assert_eq!(scene.postgres.query(LOCKS), "1", "nobody else gives it up");
    assert_eq!(scene.serve.wait(), Some(0));
    assert_eq!(scene.money(), (0, COST));
}

#[test]
fn what_has_no_bound_or_no_place_is_refused_before_anything_is_sent() {
    let scene = scene!(Script::default(), "");
    let token = scene.begin("one");
    for (path, body) in [
        ("/m/v1/messages/batches", "{}"),
        ("/m/../v1/files", "{}"),
        (GEMINI, r#"{"tools":[{"googleSearch":{}}]}"#),
        (GEMINI, "not json"),
    ] {
        let (status, body) = scene.model(&token, path, body);
        assert!(matches!(status, 400 | 404), "{path} {status} {body}");
    }
    assert!(scene.vendor.requests().is_empty());
}

#[test]
fn only_one_gateway_uses_a_database() {
    let scene = scene!(Script::default(), "");
    let said = refused_serve(&scene.postgres.address("postgres"));
    has(&said, "another `serve` uses this database");
    assert_eq!(scene.get("/healthz").0, 200);
}

/// Far from what is measured on an idle machine: tests share theirs.
const MOST: Duration = Duration::from_millis(500);

#[test]
fn a_call_takes_little_longer_by_the_gateway_than_without_it() {
    let scene = &scene!(Script::default().rule("generateContent", slow(100)), "");
    let (direct, gateway) = (
        &GEMINI.replacen("/m", scene.vendor.origin(), 1),
        &format!("{}{GEMINI}", scene.url),
    );
    let timed = |url: &str, token: &str, body: &str| {
        let begun = Instant::now();
        assert_eq!(ask_model(url, token, body).0, 200);
        begun.elapsed()
    };
    for workers in [1_usize, 2, 4, 8] {
        let mut times = thread::scope(|all| {
            let one = |worker| {
                let token = scene.begin(&format!("order-{workers}-{worker}"));
                // In turns, so that both see the same machine.
                let turn = move |turn| {
                    let body = small(turn).replace("request", &"x".repeat(20_000));
                    (timed(direct, &token, &body), timed(gateway, &token, &body))
                };
                all.spawn(move || (0..25).map(turn).collect::<Vec<_>>())
            };
            let calls: Vec<_> = (0..workers).map(one).collect();
            calls
                .into_iter()
                .flat_map(|calls| calls.join().unwrap())
                .collect::<Vec<_>>()
        });
        let middle = times.len() / 2;
        times.sort_unstable();
        let direct = times[middle].0;
        times.sort_unstable_by_key(|time| time.1);
        let gateway = times[middle].1;
        eprintln!("{workers} at once: {direct:?} without the gateway, {gateway:?} with it");
        assert!(gateway.saturating_sub(direct) < MOST);
    }
}
