//! Completion as the shells do it: commands that take a run are offered `@` and the names of the newest runs.

use std::path::Path;
use std::process::Command;

use code_commit_fixtures::demo::MENDS_IT;

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, tool};

/// A project with two runs, the second undone, and their names, the newest first.
fn scene() -> (Scene, Vec<String>) {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.commit(&["--new"]).code, Some(0));
    let mut names = files::names(scene.project.root().join("agent-config/logs"));
    names.reverse();
    (scene, names)
}

/// What a shell prints that reads the script for it, as `$SCRIPT`, and then these lines; none, and a loud line, where it is not
/// installed. `code-commit` is on its path.
fn shell(scene: &Scene, name: &str, flags: &[&str], lines: &str) -> Option<Vec<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.exists())
    else {
        eprintln!("SKIPPED: completion by {name}, which is not installed");
        return None;
    };
    let script = scene.project.beside().join("completions");
    files::write(&script, scene.run(&["completions", name]).out);
    let words = [flags, &["-c", lines]].concat();
    let mut command: Command = tool(
        program.to_str().unwrap(),
        scene.project.root(),
        scene.project.beside(),
        &words,
    );
    let built = Path::new(env!("CARGO_BIN_EXE_code-commit"))
        .parent()
        .unwrap();
    let folders = [built.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    command
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("SCRIPT", script);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran}");
    Some(ran.out.lines().map(str::to_owned).collect())
}

/// What bash offers for the last of these words.
fn bash(scene: &Scene, words: &[&str]) -> Vec<String> {
    let typed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let lines = format!(
        r#"source "$SCRIPT"
        COMP_WORDS=({}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        completer=$(complete -p code-commit) completer=${{completer#*-F }}
        "${{completer%% *}}" code-commit "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#,
        typed.join(" ")
    );
    shell(scene, "bash", &["--norc", "--noprofile"], &lines).unwrap()
}

#[test]
fn bash_offers_the_runs_the_newest_first() {
    let (scene, names) = scene();
    let all = [vec!["@".to_owned()], names.clone()].concat();
    for command in ["show", "diff", "undo", "redo", "again", "resume", "page"] {
        assert_eq!(
            bash(&scene, &["code-commit", command, ""]),
            all,
            "{command}"
        );
    }
    assert_eq!(
        bash(&scene, &["code-commit", "--json", "show", &names[0]]),
        [names[0].clone()]
    );
    // Where no run is meant, everything is as before.
    assert!(bash(&scene, &["code-commit", "show", "--js"]).contains(&"--json".to_owned()));
    assert!(bash(&scene, &["code-commit", "und"]).contains(&"undo".to_owned()));
    assert!(!bash(&scene, &["code-commit", "costs", ""]).contains(&"@".to_owned()));
    assert!(
        !bash(&scene, &["code-commit", "undo", "@", ""]).contains(&"@".to_owned()),
        "these are files"
    );
}

#[test]
fn fish_offers_the_runs_too() {
    let (scene, names) = scene();
    let lines = r#"source $SCRIPT; complete -C "code-commit show "; echo ===; complete -C "code-commit costs ""#;
    let Some(offered) = shell(&scene, "fish", &["--no-config"], lines) else {
        return;
    };
    let (show, costs) = offered.split_at(offered.iter().position(|line| line == "===").unwrap());
    for name in [vec!["@".to_owned()], names].concat() {
        assert!(
            show.contains(&name) && !costs.contains(&name),
            "{name}: {offered:?}"
        );
    }
}

#[test]
fn zsh_offers_the_runs_too() {
    let (scene, names) = scene();
    // Outside of a line that is being edited zsh completes nothing: what would be added is printed.
    let lines = r#"compdef() { : }; compadd() { print -l -- "${(@P)@[-1]}" }; _files() { : }
        source "$SCRIPT"; _code-commit_runs; print -- "$(grep -c ':_code-commit_runs' "$SCRIPT")""#;
    let Some(mut offered) = shell(&scene, "zsh", &["-f"], lines) else {
        return;
    };
    assert_eq!(
        offered.pop().as_deref(),
        Some("11"),
        "each command that takes a run"
    );
    assert_eq!(offered, [vec!["@".to_owned()], names].concat());
}

#[test]
fn whoever_presses_tab_outside_of_a_project_is_told_nothing() {
    let scene = Scene::with_replies([]);
    let asked = [("CODE_COMMIT_COMPLETE", "runs")];
    let ran = scene.run_with(&[], &asked);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "@\n", "")
    );
    let mut outside = crate::scenes::program::program(
        scene.project.beside(),
        scene.project.beside(),
        &[],
        &asked,
    );
    let ran = Ran::of(&mut outside);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "@\n", "")
    );
}
