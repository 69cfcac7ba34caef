//! What a model is shown of a project: whole files, outlines, what is left out, and that an outline is not enough to replace a file.

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit::Scene;

/// A module of many functions.
fn module(name: &str) -> String {
    let function = |number| {
        format!("/// What {name} does.\npub fn {name}_{number}(text: &str) -> Vec<String> {{\n    let mut found = Vec::new();\n    found.push(text.to_owned());\n    found\n}}\n")
    };
    (0..40).map(function).collect()
}

fn scene(replies: &[&str]) -> Scene {
    let (parser, printer) = (module("parse"), module("print"));
    let more = [
        ("src/parser.rs", parser.as_str()),
        ("src/printer.rs", printer.as_str()),
        ("web/vendor/lib.js", "var a = 1;\n"),
        ("tests/all.snap", "a snapshot\n"),
    ];
    let files: Vec<_> = FILES.into_iter().chain(more).collect();
    Scene::with_files(&files, Script::new(replies.iter().map(|reply| Step::text(reply))))
}

fn rolled_up(scene: &Scene, more: &[&str]) -> Value {
    let ran = scene.run(&[&["rollup", "--json", "--explain"], more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

fn form_of<'j>(rollup: &'j Value, path: &str) -> &'j Value {
    let chosen = rollup["chosen"].as_array().unwrap();
    chosen.iter().find(|one| one["path"] == path).map_or(&Value::Null, |one| &one["form"])
}

#[test]
fn a_larger_budget_shows_more_of_each_file_and_what_tools_wrote_is_left_out() {
    let scene = scene(&[]);
    scene.project.write("agent-config/query.txt", b"Let the printer print an empty line.").unwrap();
    let forms = |budget: &str| {
        let rollup = rolled_up(&scene, &["--budget", budget]);
        ["src/printer.rs", "src/greet.sh"].map(|path| form_of(&rollup, path).clone())
    };
    assert_eq!(forms("2500"), ["outline", "whole"]);
    assert_eq!(forms("10000"), ["whole", "whole"]);
    let all = rolled_up(&scene, &[]);
    assert_eq!(form_of(&all, "src/printer.rs"), "whole");
    assert_eq!(
        all["left_out"],
        json!([
            { "path": "tests/all.snap", "reason": "a baseline of tests" },
            { "path": "web/vendor/lib.js", "reason": "vendored" },
        ])
    );
}

#[test]
fn a_file_that_the_query_names_is_shown_or_the_reason_is_told() {
    let scene = scene(&[]);
    scene.project.write("agent-config/query.txt", b"Mend src/printer.rs and web/vendor/lib.js.").unwrap();
    let large = scene.run(&["rollup", "--budget", "10000", "--explain"]);
    assert!(large.err.contains("shown: src/printer.rs (whole, named by the query, "), "{large}");
    assert!(large.err.contains("shown: web/vendor/lib.js (whole, named by the query, "), "{large}");
    let small = scene.run(&["rollup", "--budget", "2500"]);
    insta::assert_snapshot!(small.err.lines().next().unwrap(), @"");
}

#[test]
fn a_file_that_was_shown_as_an_outline_is_shown_whole_before_it_is_replaced() {
    let whole = module("print").replace("found.push(text.to_owned())", "found.push(text.trim().to_owned())");
    let guess = "^^^src/printer.rs\npub fn print_0() {}\n^^^end\n";
    let reply = format!("^^^src/printer.rs\n{whole}^^^end\n{MENDS_IT}");
    let scene = scene(&[guess, &reply]);
    let query = "Let the printer trim what it prints.";
    assert_eq!(scene.run(&["rollup", "--budget", "2500"]).code, Some(0));
    let ran = scene.commit(&["-m", query]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.err.contains("`src/printer.rs` was shown only as an outline; all of it follows"), "{ran}");
    let [first, second] = ["1-query.txt", "2-query.txt"].map(|file| scene.recorded(file));
    assert!(first.contains("--- FILE src/printer.rs: outline, with line numbers ---"), "{first}");
    assert!(!first.contains(&module("print")) && second.contains(&module("print")), "{second}");
    assert_eq!(scene.project.read("src/printer.rs").unwrap(), whole);
    assert_eq!(scene.run(&["replay"]).code, Some(0));
}

#[test]
fn an_edit_of_an_outline_lands_once_the_file_was_shown() {
    let edit = "^^^edit src/printer.rs\n<<<<<<< SEARCH\npub fn print_7(text: &str) -> Vec<String> {\n=======\npub fn print_7(text: &str) -> Vec<String> {\n    // Trims.\n>>>>>>> REPLACE\n^^^end\n";
    let reply = format!("{edit}{MENDS_IT}");
    let scene = scene(&[&reply, &reply]);
    assert_eq!(scene.run(&["rollup", "--budget", "2500"]).code, Some(0));
    let ran = scene.commit(&["-m", "Let the printer trim what it prints.", "--edits"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(scene.project.read("src/printer.rs").unwrap().contains("// Trims."));
}
