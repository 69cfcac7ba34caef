//! Replies that edit lines instead of giving whole files.

use code_commit_fixtures::server::Script;

use crate::scenes::commit::{Scene, texts};
use crate::scenes::program::must_have;

const BUILD: &str = "#!/bin/sh\ngrep -q 'answer=42' big.txt && grep -q '^line 999$' big.txt && ! grep -q broken big.txt\n";

fn big() -> String {
    (1..=1000)
        .map(|n| {
            if n == 500 {
                "answer=41\n".to_owned()
            } else {
                format!("line {n}\n")
            }
        })
        .collect()
}

/// A project with a file of 1,000 lines.
fn scene(replies: &[&str]) -> Scene {
    scene_with(BUILD, &[], replies)
}

fn scene_with(build: &str, more: &[(&str, &str)], replies: &[&str]) -> Scene {
    let big = big();
    let files = [
        &[
            (".gitignore", "/agent-config\n"),
            ("build.sh", build),
            ("big.txt", &big),
        ],
        more,
    ]
    .concat();
    Scene::with_files(&files, Script::new(texts(replies)))
}

fn edit(path: &str, search: &str, replace: &str) -> String {
    format!("^^^edit {path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n^^^end\n")
}

#[test]
fn a_line_of_a_thousand_is_changed_by_a_small_answer() {
    let reply = edit("big.txt", "answer=41\n", "answer=42\n");
    let scene = scene(&[&reply]);
    let ran = scene.commit(&["-m", "The answer is 42.", "--edits"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(scene.read("big.txt"), big().replace("=41", "=42"));
    must_have(
        &scene.recorded("1-query.txt"),
        "\n^^^edit src/main.rs\n<<<<<<< SEARCH\n",
    );
    let whole = format!("^^^big.txt\n{}^^^end\n", big());
    assert!(
        whole.len() > 20 * reply.len(),
        "{} against {}",
        whole.len(),
        reply.len()
    );
    ran.out_has("  M big.txt +1 −1");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.read("big.txt"), big());
}

#[test]
fn a_secret_that_the_roll_up_leaves_out_is_neither_edited_nor_shown() {
    let reply =
        edit("big.txt", "answer=41\n", "answer=42\n") + &edit("server.pem", "hunter2\n", "");
    let scene = scene_with(
        BUILD,
        &[("server.pem", "hunter2\nhunter3\n")],
        &[&reply, &reply],
    );
    let ran = scene.commit(&["-m", "42.", "--edits", "--rounds", "2"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    ran.err_has("`server.pem` was not shown, so its lines cannot be edited");
    assert!(!scene.recorded("2-query.txt").contains("hunter3"));
    assert_eq!(scene.read("big.txt"), big());
}
