//! The lines at the bottom of a terminal while a run is in progress.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Hang, Script, Step};

use crate::costs::{price, used};
use crate::scenes::commit::Scene;
use crate::scenes::program::must_have;
use crate::scenes::screen::Terminal;
use crate::typed;

const TWO_FILES: &str = "^^^src/one.txt\nfirst\n^^^end\n^^^src/two.txt\nsecond\n";

/// What is on the screen from the line with `text` on.
fn from_line(terminal: &Terminal, text: &str) -> Vec<String> {
    terminal
        .lines()
        .into_iter()
        .skip_while(|line| !line.contains(text))
        .collect()
}

#[test]
fn it_fits_the_terminal_and_is_gone_in_the_end() {
    for columns in [30, 60, 120] {
        let scene = Scene::new(Script::new([Step::text("").hang(Hang::BeforeHead)]));
        let mut terminal = Terminal::start(scene.keyed(&scene.flags(), &[]), columns).unwrap();
        assert!(
            terminal.wait_for("round 1/4  waiting"),
            "{:?}",
            terminal.lines()
        );
        let live = from_line(&terminal, "waiting");
        terminal.kill().unwrap();
        assert_eq!(
            live.len(),
            1,
            "the live line takes more than a line of {columns}: {live:?}"
        );
    }
    let scene = Scene::with_replies([MENDS_IT]);
    let mut terminal = Terminal::start(scene.keyed(&scene.flags(), &[]), 60).unwrap();
    assert_eq!(terminal.finish().unwrap(), Some(0));
    let lines = terminal.lines().join("\n");
    assert!(
        !["waiting for", "writing", "building"]
            .iter()
            .any(|live| lines.contains(live)),
        "{lines}"
    );
}

#[test]
fn while_a_model_writes_its_newest_file_its_tokens_and_the_cost_so_far_are_shown() {
    let first = Step::text(BREAKS_THE_BUILD).usage(used());
    let scene = Scene::new(Script::new([
        first,
        Step::text(TWO_FILES).hang(Hang::BeforeEnd),
    ]));
    price(&scene);
    let mut terminal = Terminal::start(scene.keyed(&scene.flags(), &[]), 120).unwrap();
    let shown = "round 2/4  writing src/two.txt (file 2), about 13 tokens, $0.0030 so far";
    let is_shown = terminal.wait_for(shown);
    let lines = terminal.lines();
    terminal.kill().unwrap();
    assert!(is_shown, "{lines:#?}");
}

/// A build that prints this, and then waits for a person.
fn waiting_build(prints: &str) -> Scene {
    let build = format!("#!/bin/sh\n{prints}\nexec sleep 600\n");
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build.as_str()),
    ];
    Scene::with_files(&files, Script::new([Step::text("^^^a.txt\nx\n^^^end\n")]))
}

#[test]
fn while_a_build_runs_its_last_lines_are_shown_and_cannot_write_elsewhere() {
    let prints = r"printf 'zero\none\n\033[2J\033[Htwo\007\nthree 10%%\rthree 99%%\n'; printf '%0300d end' 7";
    for columns in [30, 120] {
        let scene = waiting_build(prints);
        let mut terminal = Terminal::start(
            scene.keyed(&[&scene.flags(), &["-m", "x"][..]].concat(), &[]),
            columns,
        )
        .unwrap();
        let is_shown = terminal.wait_for("00000");
        let live = from_line(&terminal, "  building");
        let above = terminal.lines().join("\n");
        terminal.kill().unwrap();
        assert!(is_shown && above.contains("created a.txt"), "{above}");
        let below: Vec<&str> = live
            .iter()
            .skip(1)
            .map(|line| line.get(..11).unwrap_or(line).trim_end())
            .collect();
        assert_eq!(below, ["  two", "  three 99%", "  000000000"], "{live:#?}");
    }
}

#[test]
fn a_job_of_a_forge_has_no_live_line_even_if_it_has_a_terminal() {
    let drawn = |environment: &[(&str, &str)]| {
        let scene = Scene::with_replies([MENDS_IT]);
        typed::run(&scene, &scene.flags(), environment, "").map(|ran| ran.out)
    };
    let Some(watched) = drawn(&[("NO_COLOR", "1"), ("TERM", "xterm")]) else {
        return;
    };
    let Some(in_job) = drawn(&[("NO_COLOR", "1"), ("TERM", "xterm"), ("CI", "true")]) else {
        return;
    };
    assert!(watched.contains('\u{1b}'), "{watched:?}");
    must_have(&in_job, "the build passes");
    assert!(!in_job.contains(['\u{1b}', '\r']), "{in_job:?}");
}
