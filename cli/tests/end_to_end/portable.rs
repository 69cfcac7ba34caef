//! A record holds no path of the machine it was made on.

use std::path::{Path, PathBuf};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::json;

use crate::scenes::commit::Scene as Commit;
use crate::scenes::order::{BAD, FILES, GOOD, Scene as Order, greet, proposal};
use crate::scenes::phase::Scene as Phase;
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec, all_settings};
use crate::scenes::{files, program::Ran};

/// Fails if the plan, the journal or a pre-image's manifest of the run names one of these folders.
#[track_caller]
fn assert_names_no_place(run: &Path, places: &[&Path]) {
    let is_contract =
        |name: &str| ["run.json", "events.jsonl"].contains(&name) || name.starts_with("backup/");
    let record = files::named(run);
    assert!(
        record.iter().any(|(name, _)| name == "events.jsonl"),
        "{record:?}"
    );
    for (name, text) in record.iter().filter(|(name, _)| is_contract(name)) {
        for place in places
            .iter()
            .flat_map(|place| [place.to_path_buf(), place.canonicalize().unwrap()])
        {
            let line = text
                .lines()
                .find(|line| line.contains(&place.display().to_string()));
            assert_eq!(line, None, "{name} names {}", place.display());
        }
    }
}

#[track_caller]
fn assert_all_name_no_place(runs: &[PathBuf], places: &[&Path]) {
    assert!(!runs.is_empty());
    runs.iter()
        .for_each(|run| assert_names_no_place(run, places));
}

#[test]
fn the_record_of_the_default_loop_names_no_place() {
    let scene = Commit::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, "no fences at all", MENDS_IT]);
    let build = "#!/bin/sh\necho made > gen.txt; echo more >> .gitignore; sh test.sh\n";
    scene.project.write("build.sh", build.as_bytes()).unwrap();
    let beside = scene.project.beside().display().to_string();
    let ran = scene.commit(&[
        "--readable",
        "docs",
        "--writable",
        "cache",
        "--readable",
        &beside,
    ]);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
    let own = [scene.project.root()];
    assert_all_name_no_place(&scene.runs(), &own);
}

#[test]
fn the_record_of_the_first_loop_names_no_place() {
    let scene = Commit::new(Script::new([BREAKS_THE_BUILD, MENDS_IT].map(Step::text)));
    scene
        .project
        .write(
            "agent-config/gemini-system-prompt.txt",
            b"Answer in fences.\n",
        )
        .unwrap();
    let ran = scene.run_keyed(&[
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
    ]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let mut runs = files::entries(scene.project.root().join("logs"));
    runs.retain(|path| path.is_dir());
    assert_all_name_no_place(&runs, &[scene.project.beside()]);
}

#[test]
fn the_record_of_an_order_names_no_place() {
    let outside = proposal("../out/x", None, "x");
    for (replies, more) in [
        (
            vec![outside, greet(BAD), greet(GOOD)],
            &["--max-attempts", "3"][..],
        ),
        (vec![greet(BAD)], &["--max-attempts", "1", "--commit"]),
        (vec![greet(GOOD)], &["--commit"]),
    ] {
        let scene = Order::scripted(
            &FILES,
            Script::new(replies.iter().map(|reply| Step::text(reply))),
        );
        let ran = scene.run(more);
        assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
        assert_all_name_no_place(&scene.runs(), &[scene.project.beside()]);
    }
}

#[test]
fn an_order_whose_undo_folder_is_taken_shows_no_place_to_the_model() {
    let scene = Order::with(&[&greet(BAD), &greet(GOOD)]);
    let command = "sh -c 'sh tests/run.sh || { for run in ../out/*; do mkdir -p $run/backup/2; echo x > $run/backup/2/x; done; exit 1; }'";
    scene.place_order(&json!({ "acceptance_commands": [command] }));
    scene.run(&[]);
    assert_all_name_no_place(&scene.runs(), &[scene.project.beside()]);
}

#[test]
fn the_record_of_a_phase_names_no_place() {
    let scene = Phase::new(&[
        ("builder-1", "echo one > app; echo x > ../../stray"),
        ("verifier-1", "fails 404"),
        ("builder-2", "echo two > app"),
        ("verifier-2", ": > failed_specs.md"),
    ]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut runs = files::entries(scene.project(".abl/logs"));
    runs.retain(|path| path.is_dir());
    assert_all_name_no_place(&runs, &[&scene.at("")]);
}

#[test]
fn the_record_of_a_spec_names_no_place() {
    let scene = Spec::new(&[
        PLAN,
        DONE,
        "echo x > .specs/a.md; tool Read .specs/a.md; say '<APPROVED>good</APPROVED>'",
        APPROVE,
    ]);
    scene.configure(&all_settings());
    let Ran { code, err, .. } = scene.run();
    assert!(matches!(code, Some(0 | 1)), "{err}");
    let mut runs = files::entries(scene.root().join(".git/code-commit/spec"));
    runs.retain(|path| path.join("events.jsonl").is_file());
    assert_all_name_no_place(&runs, &[&scene.root(), &scene.home()]);
}
