//! A rollback that is killed, interrupted, or meets another git, as a slow git shows it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::order::kills::signal;
use crate::scenes::order::{BAD, FILES, Scene, greet};
use crate::scenes::program::where_mounted;

/// A run that fails, whose git stands still before it resets the tree, until `go-on` is there.
fn in_the_rollback() -> (Scene, Child) {
    let scene = Scene::answering(&greet(BAD));
    let (path, beside) = (
        std::env::var_os("PATH").unwrap().into_string().unwrap(),
        scene.project.beside().display().to_string(),
    );
    let slow = format!(
        "#!/bin/sh\ncase \"$*\" in *'reset --quiet --mixed'*)\nif test -e {beside}/out/*/attempt_1; then\n: > {beside}/resets\nuntil test -e {beside}/go-on; do sleep 0.02; done\nfi;;\nesac\nPATH='{path}' exec git \"$@\"\n",
    );
    fs::create_dir(scene.beside("bin")).unwrap();
    scene.place("bin/git", slow.as_bytes());
    fs::set_permissions(scene.beside("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command: Command = scene.command(&["--max-attempts", "1"]);
    command
        .env("PATH", format!("{beside}/bin:{path}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // As a terminal starts it.
    let mut child = command.process_group(0).spawn().unwrap();
    while !scene.beside("resets").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    (scene, child)
}

#[test]
fn a_rollback_that_was_killed_is_done_at_the_next_start_although_its_git_lived_on() {
    let (scene, mut child) = in_the_rollback();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(scene.root().join(".git/index.lock").exists());
    scene.place("go-on", b"");
    let ran = scene.run(&["--max-attempts", "1"]).exits(1);
    assert_eq!(scene.verdict(), "FAIL acceptance_failed", "{ran}");
    assert_eq!(scene.read("src/greet.sh"), FILES[2].1);
    assert_eq!((scene.status().as_str(), scene.calls()), ("", 1));
    assert!(!scene.root().join(".git/index.lock").exists());
}

#[test]
fn ctrl_c_in_a_terminal_does_not_cut_a_rollback_in_half() {
    let (scene, mut child) = in_the_rollback();
    signal("-INT", &format!("-{}", child.id()));
    scene.place("go-on", b"");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(scene.read("src/greet.sh"), FILES[2].1);
    assert_eq!(scene.status(), "");
    assert_eq!(scene.run(&["--max-attempts", "1"]).code, Some(1));
}

#[test]
fn a_lock_of_another_git_is_refused_before_anything_is_begun_and_left_alone() {
    let scene = Scene::with(&[&greet(BAD)]);
    scene.write(".git/index.lock", "");
    let before = scene.state();
    let ran = scene.run(&[]).exits(3);
    ran.err_has(".git/index.lock exists")
        .err_has("remove that file");
    assert_eq!((scene.state(), scene.calls()), (before, 0));
    assert!(scene.root().join(".git/index.lock").exists());
}

/// Runs the order on a file system of 2 MiB that its command fills.
#[test]
fn a_command_that_fills_the_disk_does_not_keep_the_tree_from_being_put_back() {
    let scene = Scene::with(&[&greet(BAD)]);
    scene.place_order(
        &json!({ "acceptance_commands": ["sh -c 'cat /dev/zero > fill; git add fill; sh tests/run.sh'"] }),
    );
    let small = scene.beside("small");
    fs::create_dir(&small).unwrap();
    let inside = "mount -t tmpfs -o size=2m none \"$0\" || exit 99
        cp -a . \"$0/repo\" && cd \"$0/repo\" || exit 98
        \"$@\"; code=$?
        git status --porcelain; cat src/greet.sh; exit $code";
    let run = scene.command(&["--max-attempts", "1"]);
    let Some(ran) = where_mounted(inside, &small, &run) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err.contains("No space left on device"),
        "the disk was never full: {}",
        ran.err
    );
    assert!(
        ran.out
            .ends_with(&format!("run_summary.json\n{}", FILES[2].1)),
        "{}",
        ran.out
    );
}

#[test]
fn line_ends_are_as_they_were_where_git_would_write_others() {
    let scene = Scene::answering(&greet(BAD));
    scene.write(".gitattributes", "*.sh eol=crlf\n");
    scene.project.commit("line ends").unwrap();
    assert_eq!(scene.status(), "");
    // The second attempt finds the file that its prompt speaks of.
    let ran = scene.run(&["--max-attempts", "2"]);
    assert_eq!(scene.verdict(), "FAIL acceptance_failed", "{ran}");
    assert_eq!(scene.read("src/greet.sh"), FILES[2].1);
    assert_eq!(scene.status(), "");
}
