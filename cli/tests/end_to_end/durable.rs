//! Answers that are lost on the way: what is kept of them, and what they may have cost.

use std::path::Path;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Hang, Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit::Scene;
use crate::scenes::program::start_quietly;

const MODEL: [&str; 4] = ["--sandbox", "off", "--model", "gemini-3.8-flash"];

/// Waits until text of the answer is on disk, and gives it.
fn wait_for_text(partial: &Path) -> String {
    loop {
        match std::fs::read_to_string(partial) {
            Ok(text) if !text.is_empty() => return text,
            _ => std::thread::yield_now(),
        }
    }
}

fn summary(scene: &Scene) -> Value {
    scene.json("summary.json")
}

#[test]
fn a_run_that_is_killed_in_an_answer_keeps_its_beginning_and_says_what_it_may_have_cost() {
    let used = json!({"promptTokenCount": 1000, "candidatesTokenCount": 100});
    let half = Step {
        pieces: Some(40),
        ..Step::text(MENDS_IT)
    }
    .hang(Hang::After(900));
    let scene = Scene::new(Script::new([half, Step::text(MENDS_IT).usage(used)]));
    let origin = scene.server.origin();
    let args = [&MODEL[..], &["--base-url", origin]].concat();
    let mut child = start_quietly(&mut scene.keyed(&args, &[]));
    scene.server.wait_for_requests(1);
    let run = loop {
        if let Some(run) = scene.runs().pop() {
            break run;
        }
    };
    let kept = wait_for_text(&run.join("1-partial.txt"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        MENDS_IT.starts_with(&kept) && kept.len() < MENDS_IT.len(),
        "{kept:?}"
    );

    let lost: Value = serde_json::from_str(&scene.run(&["costs", "--json"]).out).unwrap();
    let lost = &lost["by"]["all"]["all"];
    assert_eq!(
        (&lost["calls"], &lost["cost_usd"]),
        (&json!(1), &Value::Null)
    );
    // 65,536 tokens of output, and a token for each byte of the prompt.
    let most = lost["at_most_usd"].as_f64().unwrap();
    assert!(most > 65_536.0 * 3.75e-6 && most < 0.26, "{most}");

    let resumed = scene.run_keyed(&["resume"]);
    assert_eq!((resumed.code, scene.calls()), (Some(0), 2), "{resumed}");
    resumed.out_has(&format!("$0.0011 and at most ${most:.4} for 1 lost call"));
    let summary = summary(&scene);
    assert_eq!(
        (&summary["cost_usd"], &summary["lost"]["calls"]),
        (&Value::Null, &json!(1))
    );
    assert!(run.join("1-partial.txt").exists() && !run.join("1-partial-2.txt").exists());
    let costs = scene.run(&["costs"]);
    let whole = format!("(1 without usage, at most ${:.4} in all)", most + 0.001_125);
    assert!(costs.out.contains(&whole), "{whole}: {costs}");
}

#[test]
fn an_answer_that_cannot_be_read_is_kept_as_it_came() {
    let odd = r#"{"candidates": "words that were paid for"}"#;
    let scene = Scene::new(Script::new([Step::body(odd)]));
    let ran = scene.run_keyed(&[&MODEL[..], &["--base-url", scene.server.origin()]].concat());
    assert_eq!(ran.code, Some(4), "{ran}");
    let run = scene.runs().pop().unwrap();
    assert_eq!(
        std::fs::read_to_string(run.join("1-partial.txt")).unwrap(),
        odd
    );
}
