//! What `costs` says of runs that are not phases.

use std::io::Write as _;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit::Scene;

/// What the service says that an answer used.
pub fn used() -> Value {
    json!({ "promptTokenCount": 1000, "cachedContentTokenCount": 100, "candidatesTokenCount": 200, "totalTokenCount": 1200 })
}

/// Two runs: one with two calls, one with a third call of which the service says this.
fn two_runs(last: Value, between: impl FnOnce(&Scene)) -> Scene {
    let first = [BREAKS_THE_BUILD, MENDS_IT].map(|text| Step::text(text).usage(used()));
    let steps = first.into_iter().chain([Step::text(MENDS_IT).usage(last)]);
    let scene = Scene::new(Script::new(steps));
    assert_eq!(scene.commit(&[]).code, Some(0));
    between(&scene);
    scene.git(&["add", "README.md"]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
}

fn costs(scene: &Scene) -> Value {
    let ran = scene.run(&["costs", "--json"]);
    serde_json::from_str(ran.out.trim()).unwrap_or_else(|_| panic!("{ran}"))
}

/// What `costs` prints, without today's date.
pub fn timeless(shown: &str) -> String {
    let day = shown
        .lines()
        .find(|line| line.starts_with("20"))
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    shown.replace(day, "[TODAY...]")
}

#[test]
fn every_run_is_summed_up_by_loop_model_and_day_and_a_call_without_usage_says_so() {
    let scene = two_runs(Value::Null, |_| {});
    insta::assert_snapshot!(timeless(&scene.run(&["costs"]).to_string()), @"
    exit 0
    --- out
    loop              calls turns     input   output    cached      total       US$
    commit                3     0      2000      400       200       2400         ?
      (1 without usage)

    model             calls turns     input   output    cached      total       US$
    gemini-test           3     0      2000      400       200       2400         ?
      (1 without usage)

    day               calls turns     input   output    cached      total       US$
    [TODAY...]            3     0      2000      400       200       2400         ?
      (1 without usage)

                      calls turns     input   output    cached      total       US$
    all                   3     0      2000      400       200       2400         ?
      (1 without usage)

    --- err
    ");
    let all = costs(&scene)["by"]["all"]["all"].take();
    assert_eq!(
        (&all["total"], &all["unknown"], &all["cost_usd"]),
        (&json!(2400), &json!(1), &Value::Null)
    );
}

/// Where the user's own file gives the model a price.
pub fn price(scene: &Scene) -> std::path::PathBuf {
    let folder = scene.beside(".config/code-commit");
    std::fs::create_dir_all(&folder).unwrap();
    let price = b"[[price]]\nprefix = \"gemini-test\"\ninput = 1.0\noutput = 10.0\n";
    let file = folder.join("config.toml");
    std::fs::File::create(&file)
        .unwrap()
        .write_all(price)
        .unwrap();
    file
}

#[test]
fn calls_without_a_price_are_named_beside_the_sum_of_those_that_have_one() {
    let scene = two_runs(used(), |scene| drop(price(scene)));
    std::fs::remove_file(price(&scene)).unwrap();
    let ran = scene.run(&["costs"]);
    // 1,000 tokens in and 200 out, at the price that the run was made under.
    ran.out_has("    0.0030\n  (2 without a price)\n");
    assert_eq!(costs(&scene)["by"]["model"]["gemini-test"]["unpriced"], 2);
}

#[test]
fn prices_of_the_configuration_count_for_runs_that_had_none() {
    let scene = two_runs(used(), |_| {});
    price(&scene);
    let all = costs(&scene)["by"]["all"]["all"].take();
    assert_eq!(
        (
            &all["unpriced"],
            all["cost_usd"].as_f64().map(|cost| format!("{cost:.4}"))
        ),
        (&json!(0), Some("0.0090".into()))
    );
}
