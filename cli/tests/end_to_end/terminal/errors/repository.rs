//! Folders that are no work tree to run in, and state that cannot be used.

use std::fs;

use super::{case, code, folder, proper, table, transcript, write};
use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, below};
use crate::terminal::check;
use code_commit_fixtures::server::Script;

fn without_git(scene: &Scene) {
    fs::remove_dir_all(scene.at(".git")).unwrap();
}

fn bare(scene: &Scene) {
    scene.git(&["config", "core.bare", "true"]);
}

#[test]
fn repositories_that_cannot_be_worked_in() {
    table(
        "errors_repository",
        &[
            case("none", &["rollup"]).after(&without_git),
            case("a bare one", &["rollup"]).after(&bare),
            case("a link to none", &["rollup"])
                .after(&without_git)
                .after(&write(".git", b"gitdir: /nowhere/at/all\n")),
            case("a broken configuration", &["rollup"]).after(&write(".git/config", b"[core\n")),
            case("a broken index", &["rollup"]).after(&write(".git/index", b"no index")),
            case("state that is a file", &["undo"]).after(&write(".git/code-commit", b"")),
            case("a lock that is a folder", &["undo"]).after(&folder(".git/code-commit/lock")),
            case("a list of runs that is none", &["runs"])
                .after(&write(".git/code-commit/known-runs.json", b"no list")),
        ],
    );
}

#[test]
fn a_repository_of_somebody_else() {
    // Only root may give a folder away; elsewhere git's own test of this is what there is.
    let scene = Scene::new(Script::new([]));
    let git = scene.at(".git");
    let chown = |path: &std::path::Path| std::os::unix::fs::chown(path, Some(4711), None);
    if let Err(error) = chown(scene.project.root()).and_then(|()| chown(&git)) {
        eprintln!("SKIPPED a_repository_of_somebody_else: cannot give a folder away: {error}");
        return;
    }
    let mut text = String::new();
    for args in [["rollup"].as_slice(), &["guard", "a"], &[]] {
        text.push_str(&transcript("a foreign repository", &scene, args));
    }
    check("errors_foreign", &scene, &text);
}

#[test]
fn a_folder_that_is_gone() {
    let scene = Scene::new(Script::new([]));
    let gone = [
        "/bin/sh",
        "-c",
        "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"",
        "sh",
    ];
    let ran = Ran::of(&mut below(gone, &scene.command(&["runs"], &[])));
    proper("a folder that is gone", code(&ran), &ran.err);
    let text = format!("exit {}\n{}", code(&ran), ran.err);
    check("errors_gone", &scene, &text);
}
