//! Codex.

use std::time::Duration;

use code_commit_agent::{End, Event, Kind, Session, Spawn};
use code_commit_fixtures::server::Step;
use serde_json::json;

use crate::support::{KEY, Scene, fails};

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
    scene.assert_wrote();
    assert_eq!(turn.outcome.text, "Done.");
    assert!(turn.outcome.session.is_some());
    let call = |event: &Event| matches!(event, Event::ToolCall { argument: Some(line), .. } if line.contains("echo hi"));
    assert!(turn.events.iter().any(call), "{:?}", turn.events);
    let [usage] = turn.outcome.usage.as_slice() else {
        panic!("{:?}", turn.outcome.usage)
    };
    assert_eq!(usage.model, "gpt-test");
    assert!(
        usage.usage.input_tokens > Some(0) && usage.usage.output_tokens > Some(0),
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
    scene.assert_wrote();
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
    let before = first.outcome.usage[0].usage;
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
        (
            before.input_tokens,
            second.outcome.usage[0].usage.input_tokens
        ),
        (Some(100), Some(300))
    );
}

#[test]
fn errors_of_the_service_end_as_what_they_are() {
    let check = |step, bend, code| fails(Kind::Codex, step, bend, code);
    let of = |kind: &str, step: Step| Step {
        kind: Some(kind.into()),
        ..step
    };
    let bad = Step::status(401).message("Incorrect API key provided");
    check(of("invalid_request_error", bad), |_| {}, "bad-key");
    let quota = Step::status(429).message("You exceeded your current quota");
    check(of("insufficient_quota", quota), |_| {}, "billing");
    check(Step::status(503), |_| {}, "overloaded");
    let minute = of(
        "rate_limit_exceeded",
        Step::status(429).message("Rate limit reached"),
    );
    check(minute.clone(), |_| {}, "rate-limited");
    let brief =
        |spawn: &mut Spawn<'_>| (spawn.retries, spawn.timeout) = (99, Some(Duration::from_secs(8)));
    check(minute, brief, "rate-limited");
    let too_long = Step::status(400).code("context_length_exceeded");
    let too_long = too_long.message("Your input exceeds the context window");
    check(too_long, |_| {}, "too-large");
    let cut = Step::text("I am about to").finish("max_output_tokens");
    check(cut, |_| {}, End::Truncated.code());
}
