//! Gemini CLI.

use std::time::Duration;

use code_commit_agent::{End, Event, Kind, Session, Spawn};
use code_commit_fixtures::server::{Hang, Step};
use code_commit_runner::Cancel;
use serde_json::json;

use crate::support::{KEY, Scene};

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
        spawn.session = Session::New(ID.into())
    });
    turn.ended(|end| *end == End::Ok);
    assert_eq!(
        std::fs::read_to_string(scene.work().join("hi.txt")).unwrap(),
        "hi\n"
    );
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
        usage.input_tokens > Some(0) && usage.output_tokens > Some(0),
        "{usage:?}"
    );
    assert!(turn.log.contains("\"tool_use\"") && !turn.log.contains(KEY));
}

#[test]
fn a_session_goes_on_where_it_was() {
    let Some(scene) = scene([Step::text("One."), Step::text("Two.")]).map(Scene::sandboxed) else {
        return;
    };
    scene
        .turn("first words", |spawn| {
            spawn.session = Session::New(ID.into())
        })
        .ended(|end| *end == End::Ok);
    scene
        .turn("second words", |spawn| {
            spawn.session = Session::Resume(ID.into())
        })
        .ended(|end| *end == End::Ok);
    let last = scene.server.requests().pop().unwrap();
    let body = String::from_utf8(last.body).unwrap();
    assert!(
        body.contains("first words") && body.contains("One.") && body.contains("second words"),
        "{body}"
    );
}

#[test]
fn a_session_that_is_not_there_is_lost() {
    let Some(scene) = scene([]) else { return };
    scene
        .turn("go on", |spawn| spawn.session = Session::Resume(ID.into()))
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
fn a_wrong_key_is_told_from_other_errors() {
    let bad = Step {
        bad_key: true,
        ..Step::status(400).message("API key not valid. Please pass a valid API key.")
    };
    let Some(scene) = scene([bad.times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "bad-key");
}

#[test]
fn a_quota_of_the_day_is_told_from_a_server_that_is_busy() {
    let day = Step {
        quota_id: Some("GenerateRequestsPerDayPerProjectPerModel-FreeTier".into()),
        ..Step::status(429).message("You exceeded your current quota")
    };
    let Some(scene) = scene([day.times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "daily-quota");
    let Some(scene) = self::scene([Step::status(503).times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "overloaded");
    let minute = Step::status(429)
        .message("Quota exceeded for requests per minute")
        .retry_delay("1s");
    let Some(scene) = self::scene([minute.clone().times(99)]) else {
        return;
    };
    scene
        .turn("hello", |spawn| spawn.retries = 1)
        .ended(|end| end.code() == "rate-limited");
    let Some(scene) = self::scene([minute.times(99)]) else {
        return;
    };
    let brief =
        |spawn: &mut Spawn<'_>| (spawn.retries, spawn.timeout) = (9, Some(Duration::from_secs(12)));
    scene
        .turn("hello", brief)
        .ended(|end| end.code() == "rate-limited");
    let Some(scene) = self::scene([Step::status(400)
        .message("The input token count (9) exceeds the maximum number of tokens allowed (8).")
        .times(9)])
    else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| end.code() == "too-large");
}

#[test]
fn an_answer_that_was_filtered_is_refused() {
    let Some(scene) = scene([Step::default().finish("SAFETY").times(9)]) else {
        return;
    };
    scene
        .turn("hello", |_| {})
        .ended(|end| matches!(end, End::Refused { .. }));
}

#[test]
fn silence_and_a_stop_leave_no_process_behind() {
    let Some(scene) = scene([Step::default().hang(Hang::BeforeHead).times(9)]) else {
        return;
    };
    let idle = scene.turn("hello", |spawn| {
        spawn.idle_timeout = Some(Duration::from_secs(8))
    });
    idle.ended(|end| *end == End::TimedOut { idle: true });
    let cancel = Cancel::new().unwrap();
    cancel.set();
    scene
        .turn_until("hello", &cancel, |_| {})
        .ended(|end| *end == End::Interrupted);
}
