//! What was shown only as an outline is shown whole before it is changed.

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;

/// A module of long functions.
fn module(name: &str) -> String {
    let body = "    found.push(text.to_owned());\n".repeat(40);
    let function = |number| {
        format!("pub fn {name}_{number}(text: &str, found: &mut Vec<String>) {{\n{body}}}\n\n")
    };
    (0..10).map(function).collect()
}

fn scene(replies: &[&str]) -> Scene {
    let (parser, printer) = (module("parse"), module("print"));
    let more = [
        ("src/parser.rs", parser.as_str()),
        ("src/printer.rs", printer.as_str()),
    ];
    let files: Vec<_> = FILES.into_iter().chain(more).collect();
    Scene::with_files(
        &files,
        Script::new(replies.iter().map(|reply| Step::text(reply))),
    )
}

#[test]
fn a_file_that_was_shown_as_an_outline_is_shown_whole_before_it_is_replaced() {
    let whole = module("print").replace(
        "found.push(text.to_owned())",
        "found.push(text.trim().to_owned())",
    );
    let guess = "^^^src/printer.rs\npub fn print_0() {}\n^^^end\n";
    let reply = format!("^^^src/printer.rs\n{whole}^^^end\n{MENDS_IT}");
    let scene = scene(&[guess, &reply]);
    let query = "Let the printer trim what it prints.";
    assert_eq!(scene.run(&["rollup", "--budget", "2500"]).code, Some(0));
    let ran = scene.commit(&["-m", query]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.err
            .contains("`src/printer.rs` was not shown whole; all of it follows"),
        "{ran}"
    );
    let [first, second] = ["1-query.txt", "2-query.txt"].map(|file| scene.recorded(file));
    assert!(
        first.contains("--- FILE src/printer.rs: outline, with line numbers ---"),
        "{first}"
    );
    assert!(
        !first.contains(&module("print")) && second.contains(&module("print")),
        "{second}"
    );
    assert_eq!(scene.project.read("src/printer.rs").unwrap(), whole);
}

#[test]
fn an_edit_of_an_outline_lands_once_the_file_was_shown() {
    let edit = "^^^edit src/printer.rs\n<<<<<<< SEARCH\npub fn print_7(text: &str, found: &mut Vec<String>) {\n=======\npub fn print_7(text: &str, found: &mut Vec<String>) {\n    // Trims.\n>>>>>>> REPLACE\n^^^end\n";
    let reply = format!("{edit}{MENDS_IT}");
    let scene = scene(&[&reply, &reply]);
    assert_eq!(scene.run(&["rollup", "--budget", "2500"]).code, Some(0));
    let ran = scene.commit(&["-m", "Let the printer trim what it prints.", "--edits"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        scene
            .project
            .read("src/printer.rs")
            .unwrap()
            .contains("// Trims.")
    );
}
