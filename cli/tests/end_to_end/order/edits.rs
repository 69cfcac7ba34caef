//! Proposals that edit lines instead of giving whole files.

use serde_json::{Value, json};

use crate::scenes::order::{FILES, GOOD, Scene, sha256};

const OLD: &str = FILES[2].1;

fn edited(path: &str, base: &str, search: &str, replace: &str) -> String {
    let edits = json!([{ "search": search, "replace": replace }]);
    json!({ "summary": "a change", "writes": [{ "path": path, "base_sha256": base, "edits": edits }] })
        .to_string()
}

/// What makes the acceptance test pass.
fn good() -> String {
    edited(
        "src/greet.sh",
        &sha256(OLD),
        "echo hello $1\n",
        "echo \"hello, $1\"\n",
    )
}

#[test]
fn a_miss_goes_back_to_the_model_with_the_nearest_lines_and_the_next_edit_passes() {
    let miss = edited(
        "src/greet.sh",
        &sha256(OLD),
        "echo  hello $1\n",
        "echo \"hello, $1\"\n",
    );
    let scene = Scene::with(&[&miss, &good()]);
    let ran = scene.run(&["--edits"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(scene.project.read("src/greet.sh").unwrap(), GOOD);
    let brief = scene.json("attempt_1/failure_brief.json");
    assert_eq!(brief["stage"], "llm_output_invalid");
    insta::assert_snapshot!(brief["primary_error_excerpt"].as_str().unwrap(), @"
    `src/greet.sh`, hunk 1: the file does not have its SEARCH lines. Nearest are those from line 2 on (`-` yours, `+` the file's):
        -echo  hello $1
        +echo hello $1
    ");
    assert!(
        scene
            .recorded("attempt_2/prompt.txt")
            .contains("+echo hello $1")
    );
    assert_eq!(
        scene.json("attempt_2/proposed_writes.json"),
        serde_json::from_str::<Value>(&good()).unwrap()
    );
    let asked = scene.server.requests()[0].json().to_string();
    assert!(
        asked.contains("in place of `content` give `edits`") && asked.contains("\"anyOf\""),
        "{asked}"
    );
}

#[test]
fn without_the_flag_no_edit_is_taught_to_the_model_of_an_order() {
    let scene = Scene::with(&[&good()]);
    assert_eq!(
        scene.run(&[]).code,
        Some(0),
        "an edit that is exact is taken"
    );
    assert_eq!(scene.project.read("src/greet.sh").unwrap(), GOOD);
    let asked = scene.server.requests()[0].json().to_string();
    assert!(
        !asked.contains("edits") && !asked.contains("anyOf"),
        "{asked}"
    );
}
