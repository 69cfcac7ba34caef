//! What a service answers in place of a reply, and limits that a run may not pass.

use code_commit_fixtures::demo::BREAKS_THE_BUILD;
use code_commit_fixtures::server::{Hang, Script, Step};

use super::proper;
use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::Ran;
use crate::terminal::check;

/// What the program says in the end about a call that brought nothing, on standard output; the run ends with exit code 4.
fn said(case: &str, scene: &Scene, more: &[&str], environment: &[(&str, &str)]) -> String {
    let flags = scene.flags();
    let flags = if more.contains(&"--model") {
        &flags[4..]
    } else {
        &flags[..]
    };
    let args = [flags, more].concat();
    let ran = Ran::of(&mut scene.keyed(&args, environment));
    assert_eq!(ran.code, Some(4), "{case}: {ran}");
    proper(case, 4, &ran.out);
    let is_said = |line: &&str| line.starts_with("✗ ") || line.starts_with("  next: ");
    let lines: Vec<&str> = ran.out.lines().filter(is_said).collect();
    assert_eq!(
        lines.len(),
        2,
        "{case} needs a sentence and a remedy: {ran}"
    );
    scene.without_places(&format!("## {case}\nexit 4\n{}\n\n", lines.join("\n")))
}

/// All of them at once: most of their time they wait.
fn table(name: &str, steps: &[(&str, Step)], user_file: &str) {
    let said = |(case, step): &(&str, Step)| {
        let scene = Scene::new(Script::new([step.clone().times(9)]));
        scene.user_file(user_file);
        said(case, &scene, &[], &[])
    };
    let said = &said;
    let text: String = std::thread::scope(|scope| {
        let asked: Vec<_> = steps
            .iter()
            .map(|step| scope.spawn(move || said(step)))
            .collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    check(name, &Scene::new(Script::new([])), &text);
}

#[test]
fn what_a_service_answers_in_place_of_a_reply() {
    let bad_key = Step {
        bad_key: true,
        ..Step::status(400).message("API key not valid")
    };
    table(
        "errors_service",
        &[
            ("400", Step::status(400).message("no such setting")),
            ("a key that is not valid", bad_key),
            ("401", Step::status(401).message("who are you?")),
            ("402", Step::status(402).message("no money")),
            ("403", Step::status(403).message("not you")),
            ("404", Step::status(404).message("no such model")),
            ("413", Step::status(413).message("too much")),
            ("a page of HTML", Step::html(403, "Blocked by the gateway")),
            (
                "a redirection",
                Step::status(302).header("location", "https://elsewhere.invalid/x"),
            ),
            (
                "a blocked prompt",
                Step {
                    block: Some("SAFETY".to_owned()),
                    ..Step::text("")
                },
            ),
            ("a withheld answer", Step::text("I").finish("SAFETY")),
            ("a body that is no answer", Step::body("hello")),
            (
                "control characters",
                Step::status(400).message("a\u{1b}[31mb\u{202e}c"),
            ),
        ],
        "",
    );
}

const THREE_SECONDS: &str = "[model]\ncall_limit = \"3s\"\n";

/// With three seconds to spend there is time for a second attempt and none for a third.
#[test]
fn what_is_tried_again_and_given_up() {
    let broken = Step::text(BREAKS_THE_BUILD);
    let quota = Step {
        quota_id: Some("GenerateRequestsPerDayPerProject".to_owned()),
        ..Step::status(429)
    };
    table(
        "errors_given_up",
        &[
            ("429", Step::status(429).message("slow down")),
            ("the day's quota", quota.message("no more today")),
            ("500", Step::status(500).message("oh")),
            ("503", Step::status(503).message("too many")),
            (
                "a stream without its end",
                Step {
                    no_end: true,
                    ..broken.clone()
                },
            ),
            ("a stream that breaks off", broken.clone().cut_after(150)),
            ("no answer", Step::text("").hang(Hang::BeforeHead)),
            ("an answer that stands still", broken.hang(Hang::After(100))),
        ],
        THREE_SECONDS,
    );
}

#[test]
fn every_further_attempt_is_told() {
    let scene = Scene::new(Script::new([Step::status(503)
        .message("too many")
        .times(9)]));
    scene.user_file(THREE_SECONDS);
    let ran = Ran::of(&mut scene.keyed(&scene.flags(), &[]));
    check("errors_tried_again", &scene, &ran.err);
}

#[test]
fn services_that_are_not_there() {
    let scene = Scene::new(Script::new([]));
    let nobody = ["--model", "gemini-test", "--base-url", "http://127.0.0.1:9"];
    scene.user_file(THREE_SECONDS);
    let refused = said("nobody listens", &scene, &nobody, &[]);
    let poor = Step::status(429)
        .code("insufficient_quota")
        .message("check your plan");
    let openai = Scene::new(Script::new([poor]));
    let url = format!("{}/v1", openai.server.origin());
    let flags = ["--model", "openai/gpt-test", "--base-url", &url];
    let billing = said(
        "an account without credit",
        &openai,
        &flags,
        &[("OPENAI_API_KEY", KEY)],
    );
    let scripted = Scene::new(Script::new([]));
    scripted.write("agent-config/replies.txt", BREAKS_THE_BUILD.as_bytes());
    let flags = ["--model", "scripted/agent-config/replies.txt"];
    let nothing_left = said("a script that is at its end", &scripted, &flags, &[]);
    check(
        "errors_not_there",
        &scene,
        &[refused, billing, nothing_left].concat(),
    );
}

#[test]
fn limits_that_a_run_may_not_pass() {
    let scene = || {
        let step = Step::text(BREAKS_THE_BUILD).usage(serde_json::json!({
            "promptTokenCount": 1000, "candidatesTokenCount": 200, "totalTokenCount": 1200,
        }));
        let scene = Scene::new(Script::new([step.times(4)]));
        let price =
            "[[price]]\nprefix = \"gemini-test\"\ninput = 1.0\noutput = 10.0\nmax_output = 1000\n";
        scene.user_file(price);
        scene
    };
    let mut text = String::new();
    for (case, more) in [
        ("one call", ["--max-calls", "1"]),
        ("two calls", ["--max-calls", "2"]),
        ("few tokens", ["--max-tokens", "2500"]),
        ("little money", ["--max-cost", "0.012"]),
    ] {
        text.push_str(&said(case, &scene(), &more, &[]));
    }
    let slow = scene();
    slow.write("build.sh", "#!/bin/sh\nsleep 2.1\nexit 1\n");
    text.push_str(&said("little time", &slow, &["--max-time", "2s"], &[]));
    let silent = Scene::new(Script::new([Step::text("").hang(Hang::BeforeHead)]));
    let case = "no time for a whole answer";
    text.push_str(&said(case, &silent, &["--max-time", "1s"], &[]));
    check("errors_limits", &slow, &text);
}

#[test]
fn another_model_that_answers_is_named() {
    let step = Step {
        served_model: Some("gemini-cheap".to_owned()),
        ..Step::text(BREAKS_THE_BUILD)
    };
    let scene = Scene::new(Script::new([step]));
    let ran = scene.commit(&["--rounds", "1"]);
    let lines = ran.err.lines();
    let warnings: Vec<&str> = lines.filter(|line| line.starts_with("warning:")).collect();
    check("errors_other_model", &scene, &warnings.join("\n"));
}
