//! What was shown only as an outline is shown whole before it is changed.

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{Scene, texts};

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
    Scene::with_files(&files, Script::new(texts(replies)))
}

#[test]
fn files_that_a_reply_asks_for_are_shown_whole_once_and_then_changed() {
    let ask = "I have to see more.\n\n^^^need src/printer.rs\n^^^need src/none.rs\n";
    let edit = "^^^edit src/printer.rs\n<<<<<<< SEARCH\npub fn print_7(text: &str, found: &mut Vec<String>) {\n=======\npub fn print_7(text: &str, found: &mut Vec<String>) {\n    // Trims.\n>>>>>>> REPLACE\n^^^end\n";
    let scene = scene(&[ask, ask, &format!("{edit}{MENDS_IT}")]);
    assert_eq!(scene.run(&["rollup", "--budget", "2500"]).code, Some(0));
    let ran = scene.commit(&[
        "-m",
        "Let the printer trim what it prints, and mend src/greet.sh.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let [first, second, third] =
        ["1-query.txt", "2-query.txt", "3-query.txt"].map(|file| scene.recorded(file));
    assert!(first.contains("\n^^^need src/other.rs\n"), "{first}");
    assert!(
        second.contains("- `src/printer.rs` was asked for; all of it follows.\n")
            && second
                .contains("- `src/none.rs` cannot be shown: there is no such file that may be.\n")
            && second.contains(&format!(
                "FILE REPLACEMENT src/printer.rs ---\n{}",
                module("print")
            )),
        "{second}"
    );
    assert!(third.contains("The reply was not used"), "{third}");
    let printer = scene.read("src/printer.rs");
    assert!(printer.contains("// Trims.") && printer.len() > module("print").len());
}

#[test]
fn without_a_budget_a_large_project_is_chosen_from_and_one_line_says_so() {
    let modules: Vec<_> = (0..18)
        .map(|at| (format!("src/m{at}.rs"), module(&format!("m{at}"))))
        .collect();
    let more = modules
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = FILES.into_iter().chain(more).collect();
    let scene = Scene::with_files(&files, Script::new([Step::text(MENDS_IT)]));
    let ran = scene.commit(&["-m", "Change src/m3.rs."]).exits(0);
    let first = scene.recorded("1-query.txt");
    let lines: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.contains("context: "))
        .collect();
    assert!(
        lines.len() == 1 && lines[0].contains("; code-commit rollup --budget none sends all "),
        "{ran}"
    );
    assert!(
        first.len() < 186_000 && first.contains(&module("m3")),
        "{}",
        first.len()
    );
    let all = scene.run(&["rollup", "--budget", "none"]).exits(0);
    assert!(!all.err.contains("context: "), "{all}");
    let text = scene.read("agent-config/codeRollup.txt");
    assert!(modules.iter().all(|(_, content)| text.contains(content)));
}
