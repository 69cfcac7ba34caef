//! Gemini CLI.

use std::time::Duration;

use code_commit_agent::{End, Event, Kind, Session, Spawn};
use code_commit_fixtures::server::Step;
use serde_json::json;

use crate::support::{KEY, Scene, fails};

const ID: &str = "0b7c1f62-5d0e-4c11-9d3a-6a1f5c1d2e3f";

fn scene(steps: impl IntoIterator<Item = Step>) -> Option<Scene> {
    Scene::new(Kind::Gemini, steps)
}

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"file_path": path, "content": content}))
}

#[test]
fn a_tool_call_writes_a_file_and_the_answer_is_what_comes_after_it() {
    let steps = [
        Step {
            text: Some("Writing.".into()),
            ..write("hi.txt", "hi\n")
        },
        Step::text("Done."),
    ];
    let Some(scene) = scene(steps).map(Scene::sandboxed) else {
        return;
    };
    let turn = scene.turn("write hi.txt", |spawn| {
        spawn.session = Session::New(ID.into());
    });
    turn.ended(|end| *end == End::Ok);
    scene.assert_wrote();
    assert_eq!(turn.outcome.text, "Done.");
    assert_eq!(turn.outcome.session.as_deref(), Some(ID));
    assert!(
        turn.events.iter().any(
            |event| matches!(event, Event::ToolCall { name, argument, .. }
        if name == "write_file" && argument.as_deref() == Some("hi.txt"))
        ),
        "{:?}",
        turn.events
    );
    let [usage] = turn.outcome.usage.as_slice() else {
        panic!("{:?}", turn.outcome.usage)
    };
    assert_eq!(usage.model, "gemini-3.8-flash");
    assert!(
        usage.usage.input_tokens > Some(0) && usage.usage.output_tokens > Some(0),
        "{usage:?}"
    );
    assert!(turn.log.contains("\"tool_use\"") && !turn.log.contains(KEY));
}

#[test]
fn errors_of_the_service_end_as_what_they_are() {
    let check = |step, bend, code| fails(Kind::Gemini, step, bend, code);
    let bad = Step {
        bad_key: true,
        ..Step::status(400).message("API key not valid. Please pass a valid API key.")
    };
    check(bad, |_| {}, "bad-key");
    let day = Step {
        quota_id: Some("GenerateRequestsPerDayPerProjectPerModel-FreeTier".into()),
        ..Step::status(429).message("You exceeded your current quota")
    };
    check(day, |_| {}, "daily-quota");
    check(Step::status(503), |_| {}, "overloaded");
    let too_long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    check(Step::status(400).message(too_long), |_| {}, "too-large");
    check(Step::default().finish("SAFETY"), |_| {}, "refused");
}

#[test]
fn a_quota_that_stays_used_up_ends_the_turn_when_its_tries_or_its_time_are_over() {
    let minute = Step::status(429)
        .message("Quota exceeded for requests per minute")
        .retry_delay("1s");
    fails(
        Kind::Gemini,
        minute.clone(),
        |spawn| spawn.retries = 1,
        "rate-limited",
    );
    let brief =
        |spawn: &mut Spawn<'_>| (spawn.retries, spawn.timeout) = (9, Some(Duration::from_secs(12)));
    fails(Kind::Gemini, minute, brief, "rate-limited");
}
