//! Whole turns: recorded streams with an exit code, their events and how they end.

use super::*;
use crate::lines::{Line, Lines};

/// The events, one per line, and their sum.
fn hear(kind: Kind, stream: &str) -> (Collected, String) {
    let (mut told, mut lines, mut shown) = (Collected::default(), Lines::default(), String::new());
    let mut show = |event| shown.push_str(&format!("{}\n", serde_json::to_string(&event).unwrap()));
    let mut take = |line: Line<'_>| {
        let Line::Whole(line) = line else {
            panic!("too long for a recorded stream")
        };
        told.line(kind, line, &mut show);
    };
    lines.push(stream.as_bytes(), &mut take);
    lines.finish(&mut take);
    (told, shown)
}

fn check(kind: Kind, stream: &str, code: i32) -> String {
    let (told, events) = hear(kind, stream);
    let end = judge(&Facts {
        kind,
        ended: Ended::Exited(code),
        was_idle: false,
        told: &told,
        stderr: "",
    });
    let usage = serde_json::to_string(&told.usage).unwrap();
    format!(
        "{events}answer {:?}\nsession {:?}\nusage {usage}\ncost {:?}\nend {end:?}",
        told.answer, told.session, told.cost_usd
    )
}

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../fixtures/agents/",
            $name,
            ".jsonl"
        ))
    };
}

#[test]
fn gemini_answers_after_its_last_tool_and_thoughts_are_counted_as_output() {
    insta::assert_snapshot!(check(Kind::Gemini, recorded!("gemini-tools"), 0), @r#"
    {"event":"system","data":{"model":"gemini-3.8-flash","session":"2e8a39cc-f33e-4192-8e24-ed94e9458eb8"}}
    {"event":"ping"}
    {"event":"text","data":"Writing."}
    {"event":"tool-call","data":{"id":"write_file_1","name":"write_file","argument":"hi.txt"}}
    {"event":"tool-result","data":{"id":"write_file_1","ok":true,"message":null}}
    {"event":"tool-call","data":{"id":"read_file_2","name":"read_file","argument":"/none"}}
    {"event":"tool-result","data":{"id":"read_file_2","ok":false,"message":"File not found."}}
    {"event":"text","data":"It is "}
    {"event":"text","data":"done."}
    answer "It is done."
    session Some("2e8a39cc-f33e-4192-8e24-ed94e9458eb8")
    usage [{"model":"gemini-3.8-flash","input_tokens":100,"cache_read_tokens":60,"cache_write_tokens":null,"output_tokens":20,"reasoning_tokens":16,"cost_usd":null}]
    cost None
    end Ok
    "#);
}

#[test]
fn claude_is_counted_by_its_final_event_alone_and_its_helpers_words_are_not_its_own() {
    insta::assert_snapshot!(check(Kind::Claude, recorded!("claude-tools"), 0), @r#"
    {"event":"system","data":{"model":"claude-opus-5-5","session":"5f7d1d52-3a64-4f0e-8a57-0a9a0b8a1c2d"}}
    {"event":"retry","data":{"attempt":1,"wait_ms":1000,"reason":"429 rate_limit"}}
    {"event":"text","data":"Writing."}
    {"event":"tool-call","data":{"id":"toolu_1","name":"Write","argument":"hi.txt"}}
    {"event":"ping"}
    {"event":"tool-result","data":{"id":"toolu_1","ok":true,"message":"File created successfully at: hi.txt"}}
    {"event":"ping"}
    {"event":"text","data":"Done."}
    answer "Done."
    session Some("5f7d1d52-3a64-4f0e-8a57-0a9a0b8a1c2d")
    usage [{"model":"claude-opus-5-5","input_tokens":420,"cache_read_tokens":300,"cache_write_tokens":20,"output_tokens":55,"reasoning_tokens":null,"cost_usd":0.19}]
    cost Some(0.19)
    end Ok
    "#);
}

#[test]
fn codex_warnings_are_no_failure_and_a_failed_command_is_told() {
    insta::assert_snapshot!(check(Kind::Codex, recorded!("codex-tools"), 0), @r#"
    {"event":"system","data":{"model":null,"session":"01a1"}}
    {"event":"ping"}
    {"event":"note","data":"Model metadata for gpt-test not found"}
    {"event":"ping"}
    {"event":"tool-call","data":{"id":"item_2","name":"command_execution","argument":"/bin/bash -lc 'echo hi > hi.txt'"}}
    {"event":"retry","data":{"attempt":null,"wait_ms":null,"reason":"Reconnecting... 1/1 (timeout)"}}
    {"event":"tool-result","data":{"id":"item_2","ok":false,"message":"exit code 3"}}
    {"event":"text","data":"Done."}
    answer "Done."
    session Some("01a1")
    usage [{"model":"","input_tokens":9852,"cache_read_tokens":100,"cache_write_tokens":0,"output_tokens":70,"reasoning_tokens":20,"cost_usd":null}]
    cost None
    end Ok
    "#);
}

#[test]
fn what_a_tool_gave_back_is_told_in_one_short_line() {
    let message = |kind, event: &str| {
        let (_, events) = hear(kind, event);
        let event: serde_json::Value =
            serde_json::from_str(events.lines().last().unwrap()).unwrap();
        event["data"]["message"].as_str().map(str::to_owned)
    };
    let (long, cut) = ("x".repeat(300), format!("{}…", "x".repeat(200)));
    for (result, wanted) in [
        ("", None),
        ("\\n", None),
        ("one", Some("one")),
        ("one\\ntwo\\n", Some("one…")),
        (&long, Some(&*cut)),
    ] {
        let wanted = wanted.map(str::to_owned);
        let claude = [format!("\"{result}\""), format!(r#"[{{"type":"text","text":"{result}"}}]"#)]
            .map(|content| format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]}}}}"#));
        for event in claude {
            assert_eq!(message(Kind::Claude, &event), wanted, "{event}");
        }
        let gemini = format!(
            r#"{{"type":"tool_result","tool_id":"t","status":"success","output":"{result}"}}"#
        );
        assert_eq!(message(Kind::Gemini, &gemini), wanted, "{gemini}");
        let codex =
            |item: String| format!(r#"{{"type":"item.completed","item":{{"id":"t",{item}}}}}"#);
        let command = |code: u8, status: &str| {
            codex(format!(
                r#""type":"command_execution","aggregated_output":"{result}","exit_code":{code},"status":"{status}""#
            ))
        };
        assert_eq!(message(Kind::Codex, &command(0, "completed")), wanted);
        let failed = wanted.iter().fold("exit code 3".to_owned(), |code, text| {
            format!("{code}: {text}")
        });
        assert_eq!(message(Kind::Codex, &command(3, "failed")), Some(failed));
        let tool = codex(format!(
            r#""type":"mcp_tool_call","result":{{"content":[{{"text":"{result}"}}]}},"error":null,"status":"completed""#
        ));
        assert_eq!(message(Kind::Codex, &tool), wanted);
    }
}

/// The end of a recorded turn.
fn end(kind: Kind, stream: &str, code: i32, stderr: &str) -> End {
    let (told, _) = hear(kind, stream);
    judge(&Facts {
        kind,
        ended: Ended::Exited(code),
        was_idle: false,
        told: &told,
        stderr,
    })
}

#[test]
fn when_a_quota_is_renewed_is_ten_digits_behind_the_words_that_say_so() {
    let table = [
        (
            "Claude AI usage limit reached|1795224363",
            Some(1_795_224_363),
        ),
        ("usage limit reached|1795224363.", Some(1_795_224_363)),
        ("a | b: usage limit reached|1795224363", Some(1_795_224_363)),
        ("usage limit reached|18446744073709551615", None),
        ("usage limit reached|7", None),
        ("usage limit reached|1795224363s", None),
        ("try model 5|7 instead: usage limit reached", None),
    ];
    for (text, wanted) in table {
        assert_eq!(epoch(text), wanted, "{text}");
    }
    let event = |when: &str| {
        let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":WHEN}}"#;
        hear(Kind::Claude, &limit.replace("WHEN", when))
            .0
            .resets_unix
    };
    assert_eq!(
        (event("1795224363"), event("18446744073709551615")),
        (Some(1_795_224_363), None)
    );
}

#[test]
fn bad_ends_are_what_they_are() {
    let ends = [
        end(Kind::Gemini, recorded!("gemini-filtered"), 0, ""),
        end(Kind::Gemini, recorded!("gemini-quota"), 173, ""),
        end(Kind::Claude, recorded!("claude-denied"), 0, ""),
        end(Kind::Claude, recorded!("claude-overloaded"), 1, ""),
        end(Kind::Claude, recorded!("claude-limit"), 1, ""),
        end(Kind::Claude, recorded!("claude-turns"), 1, ""),
        end(Kind::Codex, recorded!("codex-unauthorized"), 1, ""),
        end(Kind::Gemini, "", 41, "Invalid auth method selected.\n"),
        end(
            Kind::Claude,
            "",
            1,
            "No conversation found with session ID: x\n",
        ),
        end(Kind::Claude, "", 2, "error: unknown option --x\n\n"),
        end(Kind::Gemini, "", 0, "YOLO mode is enabled.\n"),
    ];
    let ends: String = ends.iter().map(|end| format!("{end:?}\n")).collect();
    insta::assert_snapshot!(ends, @r#"
    Refused { message: "[API Error: blocked]" }
    Service { code: DailyQuota, message: "[API Error: You have exhausted your daily quota on this model.]", resets_unix: None }
    PermissionDenied
    Service { code: Overloaded, message: "API Error: 529 Overloaded", resets_unix: None }
    Service { code: DailyQuota, message: "You've hit your limit", resets_unix: Some(1795240000) }
    TurnLimit { message: "Reached maximum number of turns (1)" }
    Service { code: BadKey, message: "unexpected status 401 Unauthorized: no", resets_unix: None }
    Service { code: BadKey, message: "Invalid auth method selected.", resets_unix: None }
    LostSession
    Crashed { code: Some(2), signal: None, message: "error: unknown option --x" }
    NoResult
    "#);
}

#[test]
fn a_good_final_event_does_not_outweigh_a_bad_exit_and_the_other_way_round() {
    let good = recorded!("gemini-tools");
    assert!(matches!(
        end(Kind::Gemini, good, 1, ""),
        End::Crashed { code: Some(1), .. }
    ));
    let without_end: String = good
        .lines()
        .filter(|line| !line.contains("\"result\""))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(end(Kind::Gemini, &without_end, 0, ""), End::NoResult);
    let silent = good.replace("It is ", " ").replace("done.", "");
    assert_eq!(end(Kind::Gemini, &silent, 0, ""), End::NoResult);
}

#[test]
fn http_statuses_of_gemini_come_through_its_exit_code() {
    let failed =
        r#"{"type":"result","status":"error","error":{"type":"unknown","message":"m"},"stats":{}}"#;
    let words = [144, 145, 173, 244, 247, 1].map(|code| end(Kind::Gemini, failed, code, "").code());
    assert_eq!(
        words,
        [
            "bad-request",
            "bad-key",
            "rate-limited",
            "server",
            "overloaded",
            "server"
        ]
    );
}

#[test]
fn a_turn_that_was_spent_with_retries_has_not_run_out_of_time() {
    let end = |kind, stream: &str, stderr| {
        let (told, _) = hear(kind, stream);
        judge(&Facts {
            kind,
            ended: Ended::TimedOut,
            was_idle: false,
            told: &told,
            stderr,
        })
        .code()
    };
    let claude = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":STATUS,"error":"WHY"}"#;
    let claude = |status, why| claude.replace("STATUS", status).replace("WHY", why);
    let words = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"on it"}]}}"#;
    let codex = |why: &str| format!(r#"{{"type":"error","message":"{why}"}}"#);
    for (kind, stream, stderr, code) in [
        (
            Kind::Claude,
            claude("429", "rate_limit"),
            "",
            "rate-limited",
        ),
        (Kind::Claude, claude("529", "overloaded"), "", "overloaded"),
        (
            Kind::Claude,
            format!("{}\n{words}", claude("429", "rate_limit")),
            "",
            "timeout",
        ),
        (
            Kind::Codex,
            codex("Reconnecting... 2/5 (unexpected status 429 Too Many Requests)"),
            "",
            "rate-limited",
        ),
        (
            Kind::Codex,
            codex("Reconnecting... 2/5 (stream disconnected before completion)"),
            "",
            "server",
        ),
        (
            Kind::Gemini,
            String::new(),
            "Attempt 3 failed with status 429. Retrying with backoff...",
            "rate-limited",
        ),
        (
            Kind::Gemini,
            String::new(),
            "Attempt 3 failed with status 503. Retrying with backoff...",
            "overloaded",
        ),
        (
            Kind::Gemini,
            String::new(),
            "Attempt 2 failed: Quota exceeded for requests per minute\nSuggested retry after 1s.. Retrying after 503ms...\n",
            "rate-limited",
        ),
        (
            Kind::Gemini,
            String::new(),
            "Loaded cached credentials.",
            "timeout",
        ),
    ] {
        assert_eq!(
            end(kind, &stream, stderr),
            code,
            "{kind:?} {stream} {stderr}"
        );
    }
}

#[test]
fn what_the_system_does_to_a_turn_comes_first() {
    let (told, _) = hear(Kind::Claude, recorded!("claude-tools"));
    let judged = |ended, was_idle| {
        judge(&Facts {
            kind: Kind::Claude,
            ended,
            was_idle,
            told: &told,
            stderr: "",
        })
    };
    assert_eq!(
        judged(Ended::TimedOut, false),
        End::TimedOut { idle: false }
    );
    assert_eq!(
        judged(Ended::Interrupted, true),
        End::TimedOut { idle: true }
    );
    assert_eq!(judged(Ended::Interrupted, false), End::Interrupted);
    assert_eq!(judged(Ended::NotFound, false), End::NotInstalled);
    assert!(matches!(
        judged(Ended::Signaled(9), false),
        End::Crashed {
            signal: Some(9),
            ..
        }
    ));
}

#[test]
fn a_quota_that_codex_names_without_its_status_is_used_up() {
    let failed = r#"{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}"#;
    assert_eq!(end(Kind::Codex, failed, 1, "").code(), "billing");
    let minute = r#"{"type":"result","status":"error","error":{"message":"Quota exceeded for requests per minute"}}"#;
    assert_eq!(end(Kind::Gemini, minute, 173, "").code(), "rate-limited");
    let retried = r#"{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}"#;
    assert_eq!(end(Kind::Codex, retried, 1, "").code(), "rate-limited");
}

#[test]
fn no_line_makes_a_parser_panic() {
    let odd = [
        r#"{"type":7}"#,
        r#"{"type":"assistant","message":{"content":"text"}}"#,
        r#"{"type":"result"}"#,
        r#"{"type":"item.completed"}"#,
        "{",
        "null",
    ];
    for kind in [Kind::Claude, Kind::Gemini, Kind::Codex] {
        assert!(odd.iter().all(|line| hear(kind, line).1.len() < 200));
        assert_ne!(end(kind, &odd.join("\n"), 0, ""), End::Ok);
    }
}
