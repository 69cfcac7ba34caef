//! What a rollback finds that the run has not written: a person's work, ignored files, submodules.

use std::fs::{self};
use std::path::PathBuf;

use serde_json::json;

use crate::scenes::order::{AFTER, BAD, FILES, GOOD, Scene, greet};
use crate::scenes::program::Ran;

/// Runs the order with an acceptance command that does this and then fails.
fn failed(scene: &Scene, does: &str) -> Ran {
    scene.place_order(&json!({ "acceptance_commands": [format!("sh -c '{AFTER}{does}; false'")] }));
    let ran = scene.run(&["--max-attempts", "1"]).exits(1);
    assert_eq!(scene.status(), "");
    ran
}

/// Where the copies of the only rollback are.
fn left(scene: &Scene) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.runs()[0].join("backup"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("left")
        })
        .collect()
}

#[test]
fn what_somebody_writes_while_a_command_runs_is_kept_and_named() {
    let scene = Scene::with(&[&greet(GOOD)]);
    let ran = failed(
        &scene,
        "echo mine > src/other.txt; echo mine > new.txt; echo mine >> src/greet.sh",
    );
    assert_eq!(scene.read("src/other.txt"), "other\n");
    let left = left(&scene);
    assert_eq!(left.len(), 1, "{left:?}");
    for (file, text) in [
        ("src/other.txt", "mine\n"),
        ("new.txt", "mine\n"),
        ("src/greet.sh", &format!("{GOOD}mine\n")),
    ] {
        assert_eq!(fs::read_to_string(left[0].join(file)).unwrap(), text);
    }
    let folder = left[0].strip_prefix(scene.beside("out")).unwrap();
    let named = format!(
        "new.txt, src/greet.sh, src/other.txt; the old content is in {}",
        folder.display()
    );
    ran.err_has(&named);
    let shown = Ran::of(&mut scene.program(&["show"]));
    shown.out_has(&named);
}

#[test]
fn an_ignored_folder_that_a_command_empties_is_named_and_nobody_says_that_the_tree_is_as_it_was() {
    let scene = Scene::with(&[&greet(BAD)]);
    for file in ["ignored/data", "ignored/deep/more", "ignored/same"] {
        scene.write(file, "mine");
    }
    let ran = failed(
        &scene,
        "rm ignored/data ignored/deep/more; echo new > ignored/new",
    );
    ran.err_has("rolled back: what git does not ignore is restored");
    ran.err_has("are not restored: ignored/data, ignored/deep/more");
}

#[test]
fn a_submodule_that_a_command_writes_into_is_put_back_too() {
    let other = Scene::with(&[]);
    let scene = Scene::with(&[&greet(BAD)]);
    scene.add_submodule(&other, "sub");
    let ran = failed(&scene, "echo x > sub/made; echo mine > sub/src/other.txt");
    assert_eq!(scene.read("sub/src/other.txt"), FILES[3].1);
    assert!(!scene.root().join("sub/made").exists());
    assert_eq!(
        fs::read_to_string(left(&scene)[0].join("sub/src/other.txt")).unwrap(),
        "mine\n"
    );
    ran.err_has("sub/made, sub/src/other.txt");
}
