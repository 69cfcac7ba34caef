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

#[test]
fn a_session_that_is_not_there_is_lost() {
    let id = "0b7c1f62-5d0e-4c11-9d3a-6a1f5c1d2e3f";
    for scene in scenes(&[Kind::Gemini, Kind::Codex], &[]) {
        scene
            .turn("go on", |spawn| spawn.session = Session::Resume(id.into()))
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
