//! A run at 60, 80 and 120 columns.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::screen::Terminal;
use crate::terminal::check;

fn refused_broken_mended() -> Scene {
    Scene::new(Script::new(
        [TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text),
    ))
}

fn run_at(columns: u16, environment: &[(&str, &str)]) -> (Scene, Terminal) {
    let scene = refused_broken_mended();
    let mut terminal = Terminal::start(scene.keyed(&scene.flags(), environment), columns).unwrap();
    assert_eq!(
        terminal.finish().unwrap(),
        Some(0),
        "{}",
        terminal.lines().join("\n")
    );
    (scene, terminal)
}

#[test]
fn a_run_in_colour() {
    for columns in [60, 80, 120] {
        let (scene, terminal) = run_at(columns, &[]);
        check(
            &format!("colour_{columns}"),
            &scene,
            &terminal.styled_lines().join("\n"),
        );
    }
}

#[test]
fn a_run_without_colour_has_the_same_words_and_no_style() {
    for columns in [60, 80, 120] {
        let (scene, terminal) = run_at(columns, &[("NO_COLOR", "1")]);
        assert_eq!(
            terminal.styled_lines(),
            terminal.lines(),
            "something is styled in spite of NO_COLOR"
        );
        check(
            &format!("plain_{columns}"),
            &scene,
            &terminal.lines().join("\n"),
        );
    }
}

#[test]
fn a_page_of_html_goes_to_a_file_that_the_terminal_names() {
    let scene = refused_broken_mended();
    scene.commit(&[]);
    let log = scene.runs().remove(0);
    let files = [log.join("page.html"), log.with_file_name("runs.html")];
    for (args, file) in [&["page"][..], &["page", "--all"]].into_iter().zip(files) {
        let mut terminal = Terminal::start(scene.keyed(args, &[]), 80).unwrap();
        assert_eq!(terminal.finish().unwrap(), Some(0), "{args:?}");
        let shown = terminal.lines().join(" ");
        let name = file.strip_prefix(scene.project.root()).unwrap();
        assert!(
            shown.starts_with(&format!("{}: ", name.display())) && !shown.contains("<html"),
            "{shown}"
        );
        let html = std::fs::read_to_string(file).unwrap();
        assert!(html.starts_with("<!doctype html>"));
    }
    let args = ["page", "--format", "markdown"];
    let mut terminal = Terminal::start(scene.keyed(&args, &[]), 80).unwrap();
    assert_eq!(terminal.finish().unwrap(), Some(0));
}

#[test]
fn help_and_usage_errors_are_in_the_colour_that_was_asked_for() {
    let scene = refused_broken_mended();
    for (args, code) in [
        (["--color", "never", "runs", "--help"], 0),
        (["runs", "--help", "--color", "never"], 0),
        (["runs", "--color=never", "--json", "--no-such-flag"], 2),
    ] {
        let mut terminal = Terminal::start(scene.keyed(&args, &[]), 80).unwrap();
        assert_eq!(terminal.finish().unwrap(), Some(code), "{args:?}");
        assert_eq!(terminal.styled_lines(), terminal.lines(), "{args:?}");
    }
    let piped = scene.run_keyed(&["runs", "--no-such-flag", "--color", "always"]);
    piped.err_has("\x1b");
}

#[test]
fn an_error_in_a_reply_is_pointed_at() {
    for columns in [60, 120] {
        let scene = refused_broken_mended();
        let reply = "^^^src/greet.sh\necho\n\n&&&start\nhello\n";
        scene.write("agent-config/reply", reply.as_bytes());
        let mut terminal =
            Terminal::start(scene.keyed(&["parse", "agent-config/reply"], &[]), columns).unwrap();
        assert_eq!(terminal.finish().unwrap(), Some(1));
        check(
            &format!("parse_{columns}"),
            &scene,
            &terminal.styled_lines().join("\n"),
        );
    }
}

#[test]
fn what_doctor_says_is_broken_between_words() {
    let scene = refused_broken_mended();
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let piped = scene.keyed(&["doctor"], &[]).output().unwrap();
    let mut terminal = Terminal::start(scene.keyed(&["doctor"], &[]), 80).unwrap();
    terminal.finish().unwrap();
    assert_eq!(
        words(&terminal.lines().join("\n")),
        words(&String::from_utf8_lossy(&piped.stdout))
    );
}
