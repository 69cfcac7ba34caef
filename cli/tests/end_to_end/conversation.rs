//! What a person says to finished runs: which one, what of it stays, what comes next.

use std::fs;

use code_commit_fixtures::server::{Script, Step};
use serde_json::Value;

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, must_have};

const BEFORE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
const AFTER: &str = "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nTEN\n";

/// A project whose build is always red before `made.txt`, and a model that changes three files.
fn scene() -> Scene {
    let reply =
        format!("^^^lines.txt\n{AFTER}^^^end\n^^^made.txt\nmade\n^^^end\n^^^gone.txt\n^^^delete\n");
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", "#!/bin/sh\ntest -e made.txt\n"),
        ("lines.txt", BEFORE),
        ("gone.txt", "gone\n"),
        ("agent-config/query.txt", "Make it pass.\n"),
    ];
    Scene::with_files(
        &files,
        Script::new([]).rule("enerateContent", Step::text(&reply)),
    )
}

/// The objects that a command prints under `--json`.
fn objects(scene: &Scene, words: &[&str]) -> Vec<Value> {
    Ran::of(&mut scene.command(&[words, &["--json"]].concat(), &[]))
        .exits(0)
        .objects()
}

fn names(scene: &Scene) -> Vec<String> {
    files::names(scene.at("agent-config/logs"))
}

fn tree(scene: &Scene) -> [Option<String>; 3] {
    ["lines.txt", "made.txt", "gone.txt"].map(|path| fs::read_to_string(scene.at(path)).ok())
}

fn state(lines: &str, made: Option<&str>, gone: Option<&str>) -> [Option<String>; 3] {
    [Some(lines), made, gone].map(|text| text.map(str::to_owned))
}

#[test]
fn a_run_is_meant_by_at_its_place_or_the_beginning_of_its_name() {
    let scene = scene();
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.commit(&["--new"]).code, Some(0));
    let (older, newer) = (names(&scene)[0].clone(), names(&scene)[1].clone());
    let name = |run: &str| {
        objects(&scene, &["show", run])[0]["run"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (name("@"), name("@-1"), name(&newer), name(&older)),
        (newer.clone(), older.clone(), newer, older.clone())
    );
    let many = scene.run(&["show", "20"]).exits(3);
    many.err_has("20 could be any of");
    for none in ["@-2", "@2", "@x", "zzz"] {
        let ran = scene.run(&["show", none]).exits(3);
        ran.err_has(&format!("no run named {none}"));
    }
    scene.run(&["clean", "--keep", "1"]);
    assert_eq!(name("20"), name("@"), "one name begins so");
}

#[test]
fn runs_are_listed_by_what_they_are() {
    let scene = scene();
    assert_eq!(scene.commit(&["-m", "Make it PASS now."]).code, Some(0));
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.commit(&["-m", "Another one."]).code, Some(0));
    let count = |words: &[&str]| objects(&scene, &[&["runs"], words].concat()).len();
    assert_eq!(
        (
            count(&[]),
            count(&["--loop", "commit"]),
            count(&["--loop", "order"])
        ),
        (2, 2, 0)
    );
    assert_eq!(
        (count(&["--status", "undone"]), count(&["--status", "good"])),
        (1, 1)
    );
    assert_eq!(
        (
            count(&["--status", "failed"]),
            count(&["--status", "unfinished"])
        ),
        (0, 0)
    );
    assert_eq!(
        (
            count(&["--grep", "make it pass"]),
            count(&["--grep", "nowhere"])
        ),
        (1, 0)
    );
    assert_eq!(
        (count(&["--model", "gemini"]), count(&["--model", "gpt"])),
        (2, 0)
    );
    assert_eq!(
        (
            count(&["--since", "1h"]),
            count(&["--since", "2d"]),
            count(&["--since", "2999-01-01"])
        ),
        (2, 2, 0)
    );
    let all = objects(&scene, &["runs"]);
    assert!(
        all[0]["began_ms"].as_i64() > all[1]["began_ms"].as_i64()
            && all[0]["query"] == "Another one.",
        "{all:?}"
    );
    let wrong = scene.run(&["runs", "--since", "yesterday"]).exits(2);
    wrong.err_has("90m, 12h or 7d");
    let wrong = scene.run(&["runs", "--loop", "build"]).exits(2);
    wrong.err_has("commit, implement, order");
}

#[test]
fn one_file_is_undone_and_redone_without_the_others() {
    let scene = scene();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let whole = state(AFTER, Some("made\n"), None);
    assert_eq!(tree(&scene), whole);
    let undone = scene.run(&["undo", "@", "./gone.txt"]).exits(0);
    assert!(undone.out.starts_with("restored gone.txt\n"), "{undone}");
    assert_eq!(tree(&scene), state(AFTER, Some("made\n"), Some("gone\n")));
    assert_eq!(objects(&scene, &["runs"])[0]["undone"], false);
    let again = scene.run(&["undo", "@", "gone.txt"]).exits(3);
    again.err_has("left no change in gone.txt");
    scene.run(&["undo", "@", "lines.txt", "made.txt"]).exits(0);
    assert_eq!(tree(&scene), state(BEFORE, None, Some("gone\n")));
    assert_eq!(
        objects(&scene, &["runs"])[0]["undone"],
        true,
        "nothing of it is left"
    );
    scene.run(&["redo"]).exits(0);
    assert_eq!(
        (
            tree(&scene),
            objects(&scene, &["runs"])[0]["undone"].clone()
        ),
        (whole.clone(), false.into())
    );
    let nothing = scene.run(&["redo"]).exits(7);
    nothing.err_has("nothing of");
    // And once more, the whole run.
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(tree(&scene), state(BEFORE, None, Some("gone\n")));
    assert_eq!(scene.run(&["redo", "@"]).code, Some(0));
    assert_eq!(tree(&scene), whole);
}

#[test]
fn a_new_run_goes_on_from_a_finished_one() {
    let scene = scene();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let silent = scene.run_keyed(&["again", "--sandbox", "off"]).exits(3);
    silent.err_has("what should be different");
    let parent = names(&scene)[0].clone();
    let again = scene.run_keyed(&[
        "again",
        "--sandbox",
        "off",
        "-m",
        "Not like that: say it loud.",
    ]);
    assert_eq!(
        again.code,
        Some(0),
        "the model's flags are those of the run before: {again}"
    );
    let asked = scene.recorded("1-query.txt");
    let (query, diff) = (
        asked.find("Make it pass.").unwrap(),
        asked.find("+ONE").unwrap(),
    );
    let (verdict, words) = (
        asked.find("It ended like this: done").unwrap(),
        asked.find("say it loud").unwrap(),
    );
    assert!(query < diff && diff < verdict && verdict < words, "{asked}");
    let plan = scene.json("run.json");
    assert_eq!(plan["parent"].as_str(), Some(&*parent));
    assert_eq!(
        objects(&scene, &["show"])[0]["parent"].as_str(),
        Some(&*parent)
    );
    // What an undone run did is not in the code.
    assert_eq!(scene.run(&["undo", "--force", &parent]).code, Some(0));
    scene
        .run_keyed(&["again", &parent, "--sandbox", "off", "-m", "Another way."])
        .exits(0);
    must_have(&scene.recorded("1-query.txt"), "made and taken back");
}

#[test]
fn a_diff_shows_no_key() {
    let key = "AIzaSyE2E-key-that-a-model-has-made-up-7";
    let reply = format!("^^^made.txt\n{key}\n^^^end\n");
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", "#!/bin/sh\ntest -e made.txt\n"),
        ("agent-config/query.txt", "Make it pass.\n"),
    ];
    let scene = Scene::with_files(
        &files,
        Script::new([]).rule("enerateContent", Step::text(&reply)),
    );
    assert_eq!(scene.commit(&[]).code, Some(0));
    for words in [&["diff"][..], &["diff", "--json"]] {
        let ran = scene.run_with(words, &[("GEMINI_API_KEY", key)]).exits(0);
        ran.out_has("made.txt");
        assert!(!ran.out.contains(key), "{ran}");
    }
}

#[test]
fn git_applies_a_diff_with_modes_carriage_returns_and_bytes_that_are_no_text() {
    let build = "#!/bin/sh\nprintf 'a\\r\\nB\\rb\\r\\nend' >crlf.txt\nprintf 'a\\0B\\n' >nul.txt\n\
        printf '\\351\\350\\n' >latin.txt\nchmod +x tool\n: >empty\nprintf '#!/bin/sh\\n' >\"a program\"\nchmod +x \"a program\"\nrm gone\n";
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build),
        ("crlf.txt", "a\r\nb\r\n"),
        ("nul.txt", "a\0b\n"),
        ("tool", "#!/bin/sh\n"),
        ("gone", ""),
        ("agent-config/query.txt", "Change nothing.\n"),
    ];
    let reply = Step::text("$$$start\nIt is all there.\n$$$end\n");
    let scene = Scene::with_files(&files, Script::new([reply]));
    let root = scene.project.root();
    fs::write(root.join("latin.txt"), b"\xe9\n").unwrap();
    scene.project.commit("bytes").unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let diff = scene.run(&["diff"]);
    diff.out_has("old mode 100644\nnew mode 100755\n");
    let files = objects(&scene, &["diff"])[0]["files"].clone();
    let in_json: String = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["diff"].as_str().unwrap())
        .collect();
    assert_eq!(in_json, diff.out);
    let after = scene
        .project
        .git(&["add", "--all"])
        .and_then(|_| scene.project.git(&["write-tree"]));
    scene.git(&["reset", "-q", "--hard"]);
    let patch = scene.beside("patch");
    fs::write(&patch, &diff.out).unwrap();
    let apply = ["apply", "--index", patch.to_str().unwrap()];
    scene.git(&apply);
    assert_eq!(scene.git(&["write-tree"]), after.unwrap());
}
