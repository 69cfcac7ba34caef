//! Codex.

use std::time::Duration;

use code_commit_agent::{End, Event, Kind, Session, Spawn};
use code_commit_fixtures::server::{Hang, Step};
use code_commit_runner::Cancel;
use serde_json::json;

use crate::support::{KEY, Scene};

fn scene(steps: impl IntoIterator<Item = Step>) -> Option<Scene> {
    Scene::new(Kind::Codex, steps)
}

fn shell(line: &str) -> Step {
    Step::call("exec_command", json!({"cmd": line}))
}

#[test]
fn a_tool_call_writes_a_file_and_the_answer_is_what_comes_after_it() {
    let steps = [
        Step {
            text: Some("Writing.".into()),
            ..shell("echo hi > hi.txt")
        },
        Step::text("Done."),
    ];
    let Some(scene) = scene(steps).map(Scene::sandboxed) else {
        return;
    };
    let turn = scene.turn("write hi.txt", |_| {});
    turn.ended(|end| *end == End::Ok);
    assert_eq!(
        std::fs::read_to_string(scene.work().join("hi.txt")).unwrap(),
        "hi\n"
    );
    assert_eq!(turn.outcome.text, "Done.");
    assert!(turn.outcome.session.is_some());
    let call = |event: &Event| matches!(event, Event::ToolCall { argument: Some(line), .. } if line.contains("echo hi"));
    assert!(turn.events.iter().any(call), "{:?}", turn.events);
    let [usage] = turn.outcome.usage.as_slice() else {
        panic!("{:?}", turn.outcome.usage)
    };
    assert_eq!(usage.model, "gpt-test");
    assert!(
        usage.input_tokens > Some(0) && usage.output_tokens > Some(0),
        "{usage:?}"
    );
    assert!(turn.log.contains("command_execution") && !turn.log.contains(KEY));
}

/// npm starts a script that looks for the program in the platform's package beside its own.
#[test]
fn the_package_of_npm_finds_its_platform_in_the_sandbox() {
    let steps = [shell("echo hi > hi.txt"), Step::text("Done.")];
    let Some(scene) = scene(steps)
        .and_then(Scene::by_its_package)
        .map(Scene::sandboxed)
    else {
        return;
    };
    let turn = scene.turn("write hi.txt", |_| {});
    turn.ended(|end| *end == End::Ok);
    assert_eq!(
        std::fs::read_to_string(scene.work().join("hi.txt")).unwrap(),
        "hi\n"
    );
}

#[test]
fn a_session_goes_on_where_it_was_and_each_turn_counts_its_own_tokens() {
    let used =
        |input: u64| json!({"input_tokens": input, "output_tokens": 5, "total_tokens": input + 5});
    let steps = [
        Step::text("One.").usage(used(100)),
        Step::text("Two.").usage(used(300)),
    ];
    let Some(scene) = scene(steps).map(Scene::sandboxed) else {
        return;
    };
    let first = scene.turn("first words", |_| {});
    first.ended(|end| *end == End::Ok);
    let session = first.outcome.session.clone().unwrap();
    let before: &'static _ = Box::leak(Box::new(first.outcome.usage[0].clone()));
    let second = scene.turn("second words", |spawn| {
        spawn.session = Session::Resume(session);
        spawn.used_before = Some(before);
    });
    second.ended(|end| *end == End::Ok);
    let body = String::from_utf8(scene.server.requests().pop().unwrap().body).unwrap();
    assert!(
        body.contains("first words") && body.contains("One.") && body.contains("second words"),
        "{body}"
    );
    assert_eq!(
        (before.input_tokens, second.outcome.usage[0].input_tokens),
        (Some(100), Some(300))
    );
}

#[test]
fn a_session_that_is_not_there_is_lost() {
    let Some(scene) = scene([]) else { return };
    let id = "0b7c1f62-5d0e-4c11-9d3a-6a1f5c1d2e3f";
    scene
        .turn("go on", |spawn| spawn.session = Session::Resume(id.into()))
        .ended(|end| *end == End::LostSession);
}

#[test]
fn a_prompt_longer_than_an_argument_may_be_arrives_whole() {
    let Some(scene) = scene([Step::text("Read.")]) else {
        return;
    };
    let prompt = format!("{}THE-END", "long words ".repeat(20_000));
    scene.turn(&prompt, |_| {}).ended(|end| *end == End::Ok);
    let body = String::from_utf8(scene.server.requests().pop().unwrap().body).unwrap();
    assert!(body.contains("THE-END") && body.len() > 200_000);
}

#[test]
fn a_prompt_that_begins_with_a_dash_is_no_option() {
    for prompt in [
        "---\nrole: builder\n---\nGo on.",
        "- first THIS\n- then that",
        "-",
    ] {
        let Some(scene) = scene([Step::text("Read.")]) else {
            return;
        };
        scene.turn(prompt, |_| {}).ended(|end| *end == End::Ok);
        let body = scene.server.requests().pop().unwrap().json().to_string();
        assert!(
            body.contains(&serde_json::Value::from(prompt).to_string().replace('"', "")),
            "{body}"
        );
    }
}

#[test]
fn a_wrong_key_a_quota_and_a_busy_service_are_told_apart() {
    let bad = Step {
        kind: Some("invalid_request_error".into()),
        ..Step::status(401).message("Incorrect API key provided")
    };
    let Some(scene) = scene([bad.times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "bad-key");
    let quota = Step {
        kind: Some("insufficient_quota".into()),
        ..Step::status(429).message("You exceeded your current quota")
    };
    let Some(scene) = self::scene([quota.times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "billing");
    let Some(scene) = self::scene([Step::status(503).times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "overloaded");
    let minute = Step {
        kind: Some("rate_limit_exceeded".into()),
        ..Step::status(429).message("Rate limit reached")
    };
    let Some(scene) = self::scene([minute.clone().times(99)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "rate-limited");
    let Some(scene) = self::scene([minute.times(99)]) else {
        return;
    };
    let brief =
        |spawn: &mut Spawn<'_>| (spawn.retries, spawn.timeout) = (99, Some(Duration::from_secs(8)));
    scene
        .turn("hello", brief)
        .ended(|end| end.code() == "rate-limited");
    let Some(scene) = self::scene([Step::status(400)
        .code("context_length_exceeded")
        .message("Your input exceeds the context window")
        .times(9)])
    else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "too-large");
}

#[test]
fn an_answer_that_was_cut_off_is_said_to_be() {
    let Some(scene) = scene([Step::text("I am about to")
        .finish("max_output_tokens")
        .times(9)])
    else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| *end == End::Truncated);
}

#[test]
fn silence_and_a_stop_leave_no_process_behind() {
    let Some(scene) = scene([Step::default().hang(Hang::BeforeHead).times(9)]) else {
        return;
    };
    let idle = scene.turn("hello", |spawn| {
        spawn.idle_timeout = Some(Duration::from_secs(4))
    });
    idle.ended(|end| *end == End::TimedOut { idle: true });
    let cancel = Cancel::new().unwrap();
    cancel.set();
    scene
        .turn_until("hello", &cancel, |_| {})
        .ended(|end| *end == End::Interrupted);
}
