#![expect(clippy::disallowed_methods, reason = "tests write their scripts")]

use std::fs;

use super::*;
use crate::Blind;

/// What a script answers to `calls` calls. Waits are real, so the scripts have none.
fn check(text: &str, calls: usize) -> Vec<String> {
    let entries = parse(text).unwrap();
    let once = Retry {
        max_tries: 1,
        max_wasted: 1,
        ..Retry::default()
    };
    let model = Scripted::new(entries).with_retry(once);
    let ask = || match model.call(&Request::default(), &mut Blind) {
        Ok(reply) => format!("{} {:?}", reply.finish.code(), reply.text),
        Err(error) => format!("{}: {error}", error.code()),
    };
    (0..calls).map(|_| ask()).collect()
}

#[test]
fn plain_text_is_a_list_of_replies() {
    let text = "^^^a.txt\none\n^^^end\n--- next reply ---\n$$$start\nnothing\n$$$end\n";
    insta::assert_debug_snapshot!(check(text, 3), @r#"
    [
        "complete \"^^^a.txt\\none\\n^^^end\\n\"",
        "complete \"$$$start\\nnothing\\n$$$end\\n\"",
        "nothing-left: the script has no reply left (2 given)",
    ]
    "#);
}

#[test]
fn an_object_is_a_list_of_entries() {
    let whole =
        "{\"replies\": [{\"text\": \"a\"},\n {\"text\": \"b\", \"finish\": \"truncated\"}]}";
    assert_eq!(check(whole, 2), ["complete \"a\"", "truncated \"b\""]);
}

#[test]
fn failures_and_filters_can_be_scripted() {
    let script = r#"{"replies": [{"error":"daily-quota","message":"tomorrow"},
{"finish":{"filtered":{"filter":"safety"}}},
{"finish":{"refused":{"message":"no"}}},
{"error":"rate-limited","retry_after_s":2.5}]}"#;
    insta::assert_debug_snapshot!(check(script, 4), @r#"
    [
        "daily-quota: daily quota used up: tomorrow",
        "filtered \"\"",
        "refused \"\"",
        "rate-limited: rate limit: ",
    ]
    "#);
}

#[test]
fn a_scripted_failure_is_retried_with_the_next_entry() {
    struct Notes(Vec<Duration>);
    impl Watch for Notes {
        fn wait(&mut self, duration: Duration) -> Waited {
            self.0.push(duration);
            Waited::Through
        }
    }
    let script =
        r#"{"replies": [{"error":"overloaded","retry_after_s":30}, {"text":"ok","delay_ms":5}]}"#;
    let entries = parse(script).unwrap();
    let mut notes = Notes(Vec::new());
    let reply = Scripted::new(entries)
        .call(&Request::default(), &mut notes)
        .unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.attempts, notes.0.len()),
        ("ok", 2, 2)
    );
    assert!(notes.0[0] >= Duration::from_secs(30));
    assert_eq!(notes.0[1], Duration::from_millis(5));
}

#[test]
fn a_slip_in_a_script_is_found_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let path = folder.path().join("script");
        fs::write(&path, text).unwrap();
        let error = Scripted::read(&path).unwrap_err();
        error
            .to_string()
            .replace(&path.display().to_string(), "script")
    };
    for slip in [
        r#"{"text":"a"}"#,
        r#"{"replies":[{"txet":"a"}]}"#,
        r#"{"replies":[{"text":1}]}"#,
        r#"{"replies":[{"text":"a"},{"error":"flood"}]}"#,
    ] {
        assert_eq!(read(slip), "script cannot be read as a script");
    }
    assert!(matches!(
        Scripted::read(&folder.path().join("none")),
        Err(ScriptError::Read { .. })
    ));
}

#[test]
fn a_resumed_run_goes_on_where_it_was() {
    let model = Scripted::new(parse("one\n--- next reply ---\ntwo\n").unwrap());
    model.pass_over(1);
    assert_eq!(
        model.call(&Request::default(), &mut Blind).unwrap().text,
        "two\n"
    );
}
