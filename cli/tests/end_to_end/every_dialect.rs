//! One run and one order with every dialect, streamed and not. To see the table:
//! `cargo test -p code-commit-cli --test end_to_end every_dialect:: -- --nocapture`

use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit;
use crate::scenes::order::{self, FILES, GOOD, greet};
use crate::scenes::program::{Ran, must_have};

const KEY: &str = "key-that-opens-nothing-00000077";

/// A service: its model, the variable of its key, the path of its API, and 2,000 tokens of input, three quarters of
/// them cached, and 150 of output, 50 of them thoughts, in its own words.
struct Service {
    model: &'static str,
    key: &'static str,
    path: &'static str,
    usage: Value,
}

fn services() -> [Service; 4] {
    let anthropic = json!({"input_tokens": 400, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1500,
        "output_tokens": 150, "output_tokens_details": {"thinking_tokens": 50}});
    let gemini = json!({"promptTokenCount": 2000, "cachedContentTokenCount": 1500, "candidatesTokenCount": 100,
        "thoughtsTokenCount": 50});
    let openai = json!({"prompt_tokens": 2000, "prompt_tokens_details": {"cached_tokens": 1500},
        "completion_tokens": 150, "completion_tokens_details": {"reasoning_tokens": 50}});
    let responses = json!({"input_tokens": 2000, "input_tokens_details": {"cached_tokens": 1500},
        "output_tokens": 150, "output_tokens_details": {"reasoning_tokens": 50}});
    let service = |model, key, path, usage| Service {
        model,
        key,
        path,
        usage,
    };
    [
        service(
            "anthropic/claude-sonnet-4-6",
            "ANTHROPIC_API_KEY",
            "",
            anthropic,
        ),
        service("gemini/gemini-3.8-flash", "GEMINI_API_KEY", "", gemini),
        service("openai/gpt-6-sol", "OPENAI_API_KEY", "/v1", openai),
        service(
            "openai-responses/gpt-6-sol",
            "OPENAI_API_KEY",
            "/v1",
            responses,
        ),
    ]
}

/// Calls, input, output, share of cached input in percent, US dollars.
type Row = (u64, u64, u64, u64, f64);

/// What `costs` says.
fn row(command: &mut Command) -> Row {
    let ran = Ran::of(command);
    let costs: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran}"));
    let all = &costs["by"]["all"]["all"];
    let count = |name: &str| {
        all[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {all}"))
    };
    let cost = all["cost_usd"].as_f64().unwrap_or_else(|| panic!("{all}"));
    (
        count("calls"),
        count("input"),
        count("output"),
        count("cached") * 100 / count("input"),
        cost,
    )
}

fn run(service: &Service, how: &str) -> Row {
    let steps =
        [BREAKS_THE_BUILD, MENDS_IT].map(|text| Step::text(text).usage(service.usage.clone()));
    let scene = commit::Scene::new(Script::new(steps));
    let base = format!("{}{}", scene.server.origin(), service.path);
    let args = [
        "--sandbox",
        "off",
        "--model",
        service.model,
        "--base-url",
        &base,
        how,
    ];
    let ran = scene.run_with(&args, &[(service.key, KEY)]);
    assert_eq!(ran.code, Some(0), "{} {how}: {ran}", service.model);
    row(&mut scene.command(&["costs", "--json"], &[]))
}

/// Answers to orders are asked for by schema and never streamed.
fn order(service: &Service) -> Row {
    let step = Step::text(&greet(GOOD)).usage(service.usage.clone());
    let scene = order::Scene::scripted(&FILES, Script::new([step]));
    let base = format!("{}{}", scene.server.origin(), service.path);
    let (file, out) = (scene.beside("order.json"), scene.beside("out"));
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let args = [
        "order",
        "run",
        "--work-order",
        file,
        "--out",
        out,
        "--sandbox",
        "off",
        "--base-url",
        &base,
    ];
    let mut command = scene.program(&[&args[..], &["--llm-model", service.model]].concat());
    let ran = Ran::of(command.env(service.key, KEY));
    assert_eq!(ran.code, Some(0), "{}: {ran}", service.model);
    let sent = String::from_utf8(scene.server.requests().remove(0).body).unwrap();
    must_have(&sent, "base_sha256\":{");
    assert!(!sent.contains("\"stream\":true"), "{sent}");
    row(&mut scene.program(&["costs", "--json"]))
}

#[test]
fn every_dialect_does_the_same_work_for_the_same_tokens_at_its_own_price() {
    println!(
        "{:<28} {:<10} calls  input output cached       US$",
        "model", ""
    );
    for service in services() {
        let rows = [
            ("streamed", run(&service, "--stream")),
            ("whole", run(&service, "--stream=false")),
            ("order", order(&service)),
        ];
        for (what, (calls, input, output, cached, cost)) in rows {
            println!(
                "{:<28} {what:<10} {calls:>5} {input:>6} {output:>6} {cached:>5}% {cost:>9.6}",
                service.model
            );
            let expected = if what == "order" { 1 } else { 2 };
            assert_eq!(
                (calls, input, output, cached),
                (expected, 2000 * expected, 150 * expected, 75)
            );
        }
        let [(_, streamed), (_, whole), (_, order)] = rows;
        assert!(
            streamed == whole && (order.4 * 2.0 - whole.4).abs() < 1e-9 && order.4 > 0.0,
            "{rows:?}"
        );
    }
}

#[test]
fn an_answer_by_schema_falls_back_to_text_where_the_service_refuses_the_field() {
    let refused = Step::status(400).message("response_format is not supported by this model");
    let scene = order::Scene::scripted(&FILES, Script::new([refused, Step::text(&greet(GOOD))]));
    scene.run(&[]).exits(0);
    let asked = scene.server.requests();
    let has_schema: Vec<_> = asked
        .iter()
        .map(|seen| seen.json().get("response_format").is_some())
        .collect();
    assert_eq!(has_schema, [true, false]);
}
