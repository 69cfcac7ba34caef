//! What builds and people do every day is no fault of the harness.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, in_reach, start_heard};

/// Somebody who is not root, whom no mode stops.
const USER: u32 = 65534;

/// The demo, whose build does this first.
fn with_build(lines: &str, reply: &str) -> Scene {
    let build = format!("#!/bin/sh\n{lines}\n");
    let files = FILES.map(|(path, text)| match path {
        "build.sh" => (path, text.replacen("#!/bin/sh\n", &build, 1)),
        _ => (path, text.to_owned()),
    });
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    Scene::with_files(
        &files,
        Script::new([]).rule("enerateContent", Step::text(reply)),
    )
}

#[test]
fn a_build_may_close_files_of_its_own_also_to_us() {
    let closes =
        "rm -rf made.txt closed; echo made > made.txt; mkdir closed; echo in > closed/in.txt
        chmod 000 made.txt closed/in.txt";
    for sandbox in ["auto", "landlock", "off"] {
        let scene = with_build(closes, MENDS_IT);
        let give_to = |owner: &str| {
            let given = Command::new("chown")
                .args(["-R", owner])
                .arg(scene.project.beside())
                .status();
            assert!(given.unwrap().success());
        };
        let user = |command: &Command| {
            let mut command = in_reach(command, scene.project.beside());
            give_to(&format!("{USER}:{USER}"));
            let ran = Ran::of(command.uid(USER).gid(USER));
            give_to("0:0");
            ran
        };
        let model = scene.flags_in(sandbox);
        let ran = user(&scene.keyed(&model, &[]));
        if ran.code == Some(3) && ran.err.contains("does not work here") {
            eprintln!("SKIPPED: {sandbox} does not work here");
            continue;
        }
        assert_eq!(ran.code, Some(0), "{sandbox}: {ran}");
        let undone = user(&scene.command(&["undo"], &[]));
        assert_eq!(undone.code, Some(0), "{sandbox}: {undone}");
        assert_eq!(scene.status(), "", "{sandbox}: {undone}");
    }
}

/// Waits in the command until the door is gone.
const WAITS: &str =
    "echo here > agent-config/here; test ! -p agent-config/door || read _ < agent-config/door";

/// Starts the command, does something while its build runs, and lets it end.
fn meanwhile(root: &Path, command: &mut Command, deed: impl FnOnce()) -> Ran {
    let door = root.join("agent-config/door");
    fs::create_dir_all(root.join("agent-config")).unwrap();
    files::make_pipe(&door);
    let mut child = start_heard(command);
    while !root.join("agent-config/here").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it came to an end");
        std::thread::yield_now();
    }
    deed();
    let opened = fs::File::options().write(true).open(&door).unwrap();
    fs::remove_file(door).unwrap();
    drop(opened);
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_person_may_stash_or_commit_while_a_build_runs() {
    let deeds: [&[&[&str]]; 3] = [
        &[&["stash", "-q", "-u"]],
        &[&["add", "-A"], &["commit", "-q", "-m", "mine"]],
        &[&["checkout", "-q", "."]],
    ];
    for sandbox in ["off"] {
        for gits in deeds {
            let scene = with_build(&format!("{WAITS}\necho built > built.txt"), MENDS_IT);
            let model = scene.flags_in(sandbox);
            let ran = meanwhile(scene.project.root(), &mut scene.keyed(&model, &[]), || {
                for git in gits {
                    scene.git(git);
                }
            });
            assert!(matches!(ran.code, Some(0 | 1)), "{sandbox} {gits:?}: {ran}");
        }
    }
}
