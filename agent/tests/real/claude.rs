//! Claude Code.

use std::time::Duration;

use code_commit_agent::{End, Event, Kind, Permissions, Session, Spawn};
use code_commit_fixtures::server::Step;
use serde_json::json;

use crate::support::{KEY, Scene};

const ID: &str = "5f7d1d52-3a64-4f0e-8a57-0a9a0b8a1c2d";

fn scene(steps: impl IntoIterator<Item = Step>) -> Option<Scene> {
    Scene::new(Kind::Claude, steps)
}

fn write(scene_path: &std::path::Path) -> Step {
    Step::call("Write", json!({"file_path": scene_path, "content": "hi\n"}))
}

/// The script is created late, because it contains the path of the folder.
fn writing(answer: &str) -> Option<Scene> {
    let mut scene = scene([])?;
    let step = Step {
        text: Some("Writing.".into()),
        ..write(&scene.work().join("hi.txt"))
    };
    scene.serve([step, Step::text(answer)]);
    Some(scene)
}

#[test]
fn a_tool_call_writes_a_file_in_the_sandbox() {
    let Some(scene) = writing("Done.").map(Scene::sandboxed) else {
        return;
    };
    let turn = scene.turn("write hi.txt", |spawn| {
        spawn.session = Session::New(ID.into());
        spawn.system_prompt = Some("YOU ARE THE WRITER");
    });
    turn.ended(|end| *end == End::Ok);
    scene.assert_wrote();
    assert_eq!(
        (turn.outcome.text.as_str(), turn.outcome.session.as_deref()),
        ("Done.", Some(ID))
    );
    assert!(
        turn.events
            .iter()
            .any(|event| matches!(event, Event::ToolCall { name, .. } if name == "Write"))
    );
    assert!(
        turn.events
            .iter()
            .any(|event| matches!(event, Event::ToolResult { ok: true, .. }))
    );
    assert!(
        turn.outcome
            .usage
            .iter()
            .any(|usage| usage.usage.output_tokens > Some(0))
    );
    let body = String::from_utf8(scene.server.requests().swap_remove(0).body).unwrap();
    assert!(body.contains("YOU ARE THE WRITER"));
    assert!(!turn.log.contains(KEY));
}

#[test]
fn a_tool_that_was_denied_fails_the_turn() {
    let Some(scene) = writing("I could not.") else {
        return;
    };
    let turn = scene.turn("write hi.txt", |spawn| spawn.permissions = Permissions::Ask);
    turn.ended(|end| *end == End::PermissionDenied);
    assert_eq!(
        turn.outcome
            .denials
            .first()
            .map(|denied| denied.tool.as_str()),
        Some("Write")
    );
    assert!(!scene.work().join("hi.txt").exists());
}

#[test]
fn errors_of_the_service_end_as_what_they_are() {
    let check = |step: Step, wanted: fn(&End) -> bool| {
        let Some(scene) = scene([step.times(20)]) else {
            return;
        };
        scene.turn("hello", |_| {}).ended(wanted);
    };
    check(Step::status(401), |end| end.code() == "bad-key");
    check(Step::status(529), |end| end.code() == "overloaded");
    check(Step::status(429), |end| end.code() == "rate-limited");
    check(
        Step::status(400).message("prompt is too long: 9 tokens > 8 maximum"),
        |end| end.code() == "too-large",
    );
    let Some(scene) = scene([Step::status(429).times(99)]) else {
        return;
    };
    let brief =
        |spawn: &mut Spawn<'_>| (spawn.retries, spawn.timeout) = (99, Some(Duration::from_secs(6)));
    scene
        .turn("hello", brief)
        .ended(|end| end.code() == "rate-limited");
    check(Step::text("cut o").finish("max_tokens"), |end| {
        *end == End::Truncated
    });
    check(Step::text("").finish("refusal"), |end| {
        matches!(end, End::Refused { .. })
    });
}
