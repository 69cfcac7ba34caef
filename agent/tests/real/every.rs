//! What the CLIs do alike.

use std::time::Duration;

use code_commit_agent::{End, Kind, Session};
use code_commit_fixtures::server::{Hang, Step};
use code_commit_runner::Cancel;

use crate::support::Scene;

const ALL: &[Kind] = &[Kind::Claude, Kind::Gemini, Kind::Codex];

/// Those of the CLIs that can be started, each with these steps.
fn scenes(kinds: &[Kind], steps: &[Step]) -> impl Iterator<Item = Scene> {
    let scene = |kind: &Kind| Scene::new(*kind, steps.to_vec());
    kinds.iter().filter_map(scene)
}

#[test]
fn a_prompt_longer_than_an_argument_may_be_arrives_whole() {
    let prompt = format!("{}THE-END", "long words ".repeat(20_000));
    for scene in scenes(ALL, &[Step::text("Read.")]) {
        scene.turn(&prompt, |_| {}).ended(|end| *end == End::Ok);
        let body = String::from_utf8(scene.server.requests().pop().unwrap().body).unwrap();
        assert!(body.contains("THE-END") && body.len() > 200_000);
    }
}

#[test]
fn a_prompt_that_begins_with_a_dash_is_no_option() {
    for prompt in [
        "---\nrole: builder\n---\nGo on.",
        "- first THIS\n- then that",
        "-",
    ] {
        for scene in scenes(ALL, &[Step::text("Read.")]) {
            scene.turn(prompt, |_| {}).ended(|end| *end == End::Ok);
            let body = scene.server.requests().pop().unwrap().json().to_string();
            assert!(
                body.contains(&serde_json::Value::from(prompt).to_string().replace('"', "")),
                "{body}"
            );
        }
    }
}

const ID: &str = "0b7c1f62-5d0e-4c11-9d3a-6a1f5c1d2e3f";

/// Codex, which names its sessions itself, has a test of its own.
#[test]
fn a_session_goes_on_where_it_was() {
    let answers = [Step::text("One."), Step::text("Two.")];
    for scene in scenes(&[Kind::Claude, Kind::Gemini], &answers).map(Scene::sandboxed) {
        for (prompt, session) in [
            ("first words", Session::New(ID.into())),
            ("second words", Session::Resume(ID.into())),
        ] {
            let turn = scene.turn(prompt, |spawn| spawn.session = session);
            turn.ended(|end| *end == End::Ok);
        }
        let last = scene.server.requests().pop().unwrap();
        let body = String::from_utf8(last.body).unwrap();
        for words in ["first words", "One.", "second words"] {
            assert!(body.contains(words), "{body}");
        }
    }
}

#[test]
fn a_session_that_is_not_there_is_lost() {
    for scene in scenes(ALL, &[]) {
        scene
            .turn("go on", |spawn| spawn.session = Session::Resume(ID.into()))
            .ended(|end| *end == End::LostSession);
    }
}

#[test]
fn silence_and_a_stop_leave_no_process_behind() {
    let silence = Step::default().hang(Hang::BeforeHead).times(9);
    for scene in scenes(&[Kind::Gemini, Kind::Codex], &[silence]) {
        let idle = scene.turn("hello", |spawn| {
            spawn.idle_timeout = Some(Duration::from_secs(8));
        });
        idle.ended(|end| *end == End::TimedOut { idle: true });
        let cancel = Cancel::new().unwrap();
        cancel.set();
        scene
            .turn_until("hello", &cancel, |_| {})
            .ended(|end| *end == End::Interrupted);
    }
}
