//! Every error message that can be brought about from the command line, with its exit code and its help.

use std::fs;

use fixtures::server::{Script, Step};

use crate::scene::{KEY, Scene, check};

/// A case: its name, what is done to the project before, and the arguments.
type Case<'c> = (&'c str, &'c dyn Fn(&Scene), &'c [&'c str]);

/// Runs each case in a project of its own and shows what it printed on standard error.
fn table(name: &str, cases: &[Case<'_>]) {
    let mut text = String::new();
    let mut last = None;
    for (case, prepare, args) in cases {
        let scene = Scene::new(Script::new([]));
        prepare(&scene);
        let shown = shown(case, &scene, args);
        text.push_str(&neutral(&shown, &scene));
        last = Some(scene);
    }
    if let Some(scene) = last {
        check(name, &scene, &text);
    }
}

fn shown(case: &str, scene: &Scene, args: &[&str]) -> String {
    // Should a case get as far as asking a model, it asks nobody.
    let nobody =
        [("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")];
    let environment: &[_] =
        if case.starts_with("no key") { &[nobody[0], nobody[1], ("GEMINI_API_KEY", "")] } else { &nobody };
    let done = scene.program(args, environment).output().unwrap();
    let code = done.status.code().unwrap_or(-1);
    assert_ne!(code, 0, "{case} is no error");
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(!words.contains(KEY), "{case} shows the key");
    assert!(!words.contains("panicked"), "{case}: {words}");
    assert!(words.contains("error:"), "{case} is no error message: {words}");
    format!("## {case}\n$ code-commit {}\nexit {code}\n{}\n\n", args.join(" "), words.trim_end())
}

/// Each case has a folder and a port of its own.
fn neutral(text: &str, scene: &Scene) -> String {
    text.replace(&scene.project.root().display().to_string(), "[ROOT]")
        .replace(&scene.project.beside().display().to_string(), "[BESIDE]")
        .replace(scene.server.origin(), "[SERVER]")
}

fn remove(path: &'static str) -> impl Fn(&Scene) {
    move |scene| fs::remove_file(scene.project.root().join(path)).unwrap()
}

fn write(path: &'static str, content: &'static [u8]) -> impl Fn(&Scene) {
    move |scene| scene.project.write(path, content).unwrap()
}

fn nothing(_: &Scene) {}

#[test]
fn what_the_command_line_gets_wrong() {
    table(
        "errors_command_line",
        &[
            ("an unknown flag", &nothing, &["--sandbx", "off"]),
            ("an unknown command", &nothing, &["comit"]),
            ("an unknown wall", &nothing, &["--sandbox", "glass"]),
            ("no duration", &nothing, &["--timeout", "10"]),
            ("no time at all", &nothing, &["--build-timeout", "0s"]),
            ("no number", &nothing, &["--temperature", "warm"]),
            ("quiet and verbose", &nothing, &["--quiet", "--verbose"]),
            ("no path for guard", &nothing, &["guard"]),
        ],
    );
}

#[test]
fn what_is_missing_before_a_run() {
    table(
        "errors_preflight",
        &[
            ("no line in .gitignore", &write(".gitignore", b"/target\n"), &[]),
            ("no query", &remove("agent-config/query.txt"), &[]),
            ("an empty query", &write("agent-config/query.txt", b" \n"), &[]),
            ("a query that is no UTF-8", &write("agent-config/query.txt", b"ab\xff"), &[]),
            ("no roll-up", &remove("agent-config/codeRollup.txt"), &[]),
            ("no build.sh", &remove("build.sh"), &[]),
            ("no key", &nothing, &["--model", "gemini-test"]),
            ("a model of nobody", &nothing, &["--model", "nobody/knows"]),
            ("a model whose provider is not plain", &nothing, &["--model", "mystery"]),
            ("an address that is none", &nothing, &["--base-url", "gopher:nothing"]),
            ("a dirty tree", &write("src/greet.sh", b"# new\n"), &["--require-clean"]),
            ("a key in the query", &write("agent-config/query.txt", KEY.as_bytes()), &["--sandbox", "off"]),
            ("a file in the place of the logs", &write("agent-config/logs", b""), &["--sandbox", "off"]),
        ],
    );
}

#[test]
fn what_the_tools_cannot_do() {
    table(
        "errors_tools",
        &[
            (
                "no repository",
                &|scene| fs::remove_dir_all(scene.project.root().join(".git")).unwrap(),
                &["rollup"],
            ),
            ("parse without a file", &nothing, &["parse", "nowhere.txt"]),
            ("parse of bytes", &write("reply", b"^^^a\n\xff\n^^^end\n"), &["parse", "reply"]),
            ("parse of an open block", &write("reply", b"^^^a\nx\n"), &["parse", "reply"]),
            ("apply without a file", &nothing, &["apply", "nowhere.txt"]),
            ("guard of no folder", &nothing, &["guard", "--root", "nowhere", "a"]),
            ("undo without a run", &nothing, &["undo"]),
            ("undo of an unknown run", &nothing, &["undo", "2026-01-01-00-00-00-commit"]),
            (
                "a roll-up in the place of a folder",
                &write("file", b""),
                &["rollup", "--output", "file/rollup.txt"],
            ),
        ],
    );
}

#[test]
fn what_a_service_answers_in_place_of_a_reply() {
    let steps = [
        ("400", Step::status(400).message("no such setting")),
        ("a key that is not valid", Step { bad_key: true, ..Step::status(400).message("API key not valid") }),
        ("401", Step::status(401).message("who are you?")),
        ("402", Step::status(402).message("no money")),
        ("403", Step::status(403).message("not you")),
        ("404", Step::status(404).message("no such model")),
        ("413", Step::status(413).message("too much")),
        ("a page of HTML", Step::html(403, "Blocked by the gateway")),
        ("a redirection", Step::status(302).header("location", "https://elsewhere.invalid/x")),
        ("a blocked prompt", Step { block: Some("SAFETY".to_owned()), ..Step::text("") }),
        ("control characters", Step::status(400).message("a\u{1b}[31mb\u{202e}c")),
    ];
    let mut text = String::new();
    for (case, step) in &steps {
        let scene = Scene::new(Script::new([step.clone()]));
        let done = scene.program(&scene.flags(), &[]).output().unwrap();
        let code = done.status.code().unwrap_or(-1);
        assert_eq!(code, 4, "{case}: {}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8_lossy(&done.stdout);
        let lines: Vec<&str> =
            said.lines().filter(|line| line.starts_with("Failed") || line.starts_with("help:")).collect();
        assert!(!lines.is_empty(), "{case}: {said}");
        text.push_str(&neutral(&format!("## {case}\nexit {code}\n{}\n\n", lines.join("\n")), &scene));
    }
    check("errors_service", &Scene::new(Script::new([])), &text);
}

#[test]
fn an_error_is_red_on_a_terminal() {
    let scene = Scene::new(Script::new([]));
    let mut terminal = crate::screen::Terminal::start(scene.program(&["undo"], &[]), 60).unwrap();
    assert_eq!(terminal.finish().unwrap(), Some(3));
    check("error_in_colour", &scene, &terminal.styled_lines().join("\n"));
}
