//! What `code-commit.toml`, the user's own configuration and flags say of phases too.

use crate::scenes::phase::Scene;

const EVIL: &str =
    "mkdir -p keep; echo evil > keep/new; echo evil > keep/old; echo mine > own; report r";

/// A project whose `src/keep` no model may write.
fn protected(turns: &[(&str, &str)]) -> Scene {
    let scene = Scene::new(turns);
    scene.write("code-commit.toml", "protect = ['src/keep/**']\n");
    scene.write("src/keep/old", "old\n");
    scene
}

fn is_protected(scene: &Scene) -> bool {
    scene.read("src/keep/old") == "old\n" && !scene.project("src/keep/new").exists()
}

#[test]
fn what_the_configuration_protects_no_role_changes() {
    let scene = protected(&[("builder-1", EVIL)]);
    let ran = scene.run(&["run"]).exits(0);
    assert!(is_protected(&scene) && scene.read("src/own") == "mine\n");
    ran.err_has("keep/old may not be changed by the builder: it was restored");
    ran.err_has("the changed version is in backup/left-by-turn-1 of the run's folder");
    let committed = scene.git("src", &["show", "--format=", "--name-only", "HEAD~1"]);
    assert!(committed.contains(&"own".to_owned()) && !committed.contains(&"keep/new".to_owned()));
}

#[test]
fn what_cannot_be_put_back_ends_the_run_with_its_own_exit_code() {
    let scene = protected(&[(
        "builder-1",
        &format!("{EVIL}; rm -r ../.abl/logs/*/backup/before/files/keep"),
    )]);
    let ran = scene.run(&["run"]).exits(5);
    ran.err_has("cannot restore keep/old");
}

#[test]
fn the_sandbox_is_as_the_users_own_configuration_says_unless_a_flag_does() {
    let scene = Scene::new(&[]);
    let own = scene.at("home/.config/code-commit");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("config.toml"), "[sandbox]\nmode = 'off'\n").unwrap();
    let ran = scene.run_with(&["run"], &[]).exits(0);
    ran.err_has("there is no sandbox");
}

#[test]
fn an_address_is_told_to_both_roles() {
    let scene = Scene::new(&[("builder-1", "echo \"$GOOGLE_GEMINI_BASE_URL\" > address")]);
    scene
        .run(&["run", "--base-url", "http://127.0.0.1:1"])
        .exits(0);
    assert_eq!(scene.read("src/address"), "http://127.0.0.1:1\n");
}
