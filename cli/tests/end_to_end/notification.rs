//! `[notify]`: a person who has turned to other work is told the end of a long run.

use std::fs;

use code_commit_fixtures::demo::MENDS_IT;

use crate::scenes::commit::Scene;
use crate::scenes::files;

/// A build that takes more than a second: less than that is never told.
const LONG: &[u8] = b"#!/bin/sh
end=$(($(date +%s) + 2))
while [ \"$(date +%s)\" -lt \"$end\" ]; do :; done
";

/// A project with a long build, and this configuration of the person's own.
fn scene(configuration: &str) -> Scene {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.project.write("build.sh", LONG).unwrap();
    files::write(
        &scene
            .project
            .beside()
            .join(".config/code-commit/config.toml"),
        configuration,
    );
    scene
}

/// The command writes its last argument beside the project.
fn told(scene: &Scene) -> Option<String> {
    fs::read_to_string(scene.project.beside().join("told")).ok()
}

fn configuration(after: &str) -> String {
    format!(
        "[notify]\ncommand = \"sh -c 'printf %s \\\"$1\\\" > ../told' notify\"\nafter = \"{after}\"\n"
    )
}

#[test]
fn the_end_of_a_long_run_is_told_with_its_verdict_and_its_name() {
    let scene = scene(&configuration("1s"));
    let ran = scene.commit(&[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let name = scene.runs().pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    assert_eq!(told(&scene), Some(format!("done: {name}")));
}

#[test]
fn a_shorter_run_is_not_told() {
    let scene = scene(&configuration("1h"));
    assert_eq!((scene.commit(&[]).code, told(&scene)), (Some(0), None));
}

#[test]
fn a_command_that_fails_is_a_warning_and_the_exit_code_is_that_of_the_run() {
    let scene = scene("[notify]\ncommand = \"false\"\nafter = \"1s\"\n");
    let ran = scene.commit(&[]);
    assert!(
        ran.code == Some(0) && ran.err.contains("notify.command: `false` "),
        "{ran}"
    );
}

#[test]
fn a_cloned_repository_starts_no_command() {
    let scene = scene("[notify]\nafter = \"1s\"\n");
    scene
        .project
        .write("code-commit.toml", configuration("1s").as_bytes())
        .unwrap();
    let ran = scene.commit(&[]);
    assert!(
        ran.code == Some(0) && ran.err.contains("notify.command"),
        "{ran}"
    );
    assert_eq!(told(&scene), None);
}
