//! What a killed or stopped command leaves, and what the next one makes of it.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT};
use code_commit_fixtures::server::{Hang, Script, Step};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::{every, quietly, strace_works, traced};
use crate::scenes::order::{self, AFTER, GOOD, Scene as Order, greet};
use crate::scenes::program::{Ran, if_mounted, interrupt, mounted, program};

const DOOR: &str = "agent-config/door";

/// An order that was killed while its last command waited for a file named `go-on` beside the repository.
fn killed_order() -> Order {
    let scene = Order::scripted(
        &order::FILES,
        Script::new([]).rule("chat/completions", Step::text(&greet(GOOD))),
    );
    let wait = format!("sh -c '{AFTER}touch stray; test -e ../go-on || sleep 600'");
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", wait] }));
    let mut child = quiet(&mut scene.command(&[]));
    while !scene.root().join("stray").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    scene
}

fn quiet(command: &mut Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn name(run: &std::path::Path) -> String {
    run.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A run that was stopped by Ctrl-C in its second round, while the model thinks; what the model says then.
fn stopped(files: &[(&str, &str)], then: &[&str]) -> Scene {
    let thinks = Step::text("").hang(Hang::BeforeHead);
    let steps = [Step::text(BREAKS_THE_BUILD), thinks]
        .into_iter()
        .chain(then.iter().map(|text| Step::text(text)));
    let scene = Scene::with_files(files, Script::new(steps));
    let mut child = quiet(&mut scene.keyed(&scene.flags(), &[]));
    scene.server.wait_for_requests(2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    scene
}

/// The demo, whose build also changes what it may not, and waits while there is a door.
fn meddling() -> Vec<(&'static str, String)> {
    let meddles = "#!/bin/sh
        mkdir -p src/new; echo hidden > src/new/hidden; echo '*' > src/.gitignore
        test ! -p agent-config/door || read _ < agent-config/door
    ";
    let of = |(path, text): &(&'static str, &str)| match *path {
        "build.sh" => (*path, text.replacen("#!/bin/sh\n", meddles, 1)),
        _ => (*path, (*text).to_owned()),
    };
    FILES.iter().map(of).collect()
}

/// Starts the command and kills it in its build.
fn killed_in_its_build(scene: &Scene, command: &mut Command) {
    let (root, door) = (scene.project.root(), scene.project.root().join(DOOR));
    mknodat(CWD, &door, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut child = quiet(command);
    while !root.join("src/.gitignore").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it came to an end");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(door).unwrap();
}

#[test]
fn an_older_run_that_is_killed_in_its_build_is_settled_by_the_next_command() {
    let files = meddling();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    let scene = stopped(&files, &[MENDS_IT, MENDS_IT]);
    let old = name(&scene.runs()[0]);
    assert_eq!(scene.commit(&["--new"]).code, Some(0));
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    killed_in_its_build(&scene, &mut scene.keyed(&["resume", &old, "--force"], &[]));
    let undone = scene.run(&["undo", &old]);
    assert_eq!(undone.code, Some(0), "{undone}");
    assert!(
        undone.err.contains("was killed while a command of it ran"),
        "{undone}"
    );
    assert!(
        !scene.project.root().join("src/.gitignore").exists(),
        "{undone}"
    );
    assert_eq!(scene.project.status().unwrap(), "", "{undone}");
}

/// The repository is mounted by itself, so the state is in the tree.
const APART: &str = "mount --bind .git .git || exit 99; exec \"$@\"";

#[test]
fn a_run_whose_state_is_in_the_tree_is_settled_too() {
    let files = meddling();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    let scene = Scene::with_files(&files, Script::new([Step::text(MENDS_IT)]));
    let root = scene.project.root();
    let mounts = Ran::of(&mut mounted(APART, root, &scene.command(&["doctor"], &[])));
    if if_mounted(mounts).is_none() {
        return;
    }
    killed_in_its_build(
        &scene,
        &mut mounted(APART, root, &scene.keyed(&scene.flags(), &[])),
    );
    assert!(
        root.join(".code-commit/lock").exists(),
        "the state is not in the tree"
    );
    let undone = Ran::of(&mut mounted(APART, root, &scene.command(&["undo"], &[])));
    assert_eq!(undone.code, Some(0), "{undone}");
    assert!(
        undone.err.contains("was killed while a command of it ran"),
        "{undone}"
    );
    assert!(!root.join("src/.gitignore").exists(), "{undone}");
    assert_eq!(scene.project.status().unwrap(), "", "{undone}");
}

/// Calls that change what is on disk.
const CHANGES: &str =
    "trace=/^(mkdir|rename|unlink|rmdir|link|symlink|fsync|fdatasync|ftruncate|connect)";

/// Sends a signal at each [`every`]th of a command's calls that change something, in a scene of its own each; `judge` sees what is left.
/// Without the calls after the first connection: that is to the model.
fn at_each_change(
    signal: &str,
    scene: impl Fn() -> Scene,
    command: impl Fn(&Scene) -> Command,
    mut judge: impl FnMut(&Scene, &str),
) {
    if !strace_works() {
        return;
    }
    let whole = scene();
    let log = whole.project.beside().join("strace");
    quietly(&mut traced(&log, &command(&whole), &["-e", CHANGES]));
    let (trace, mut counts) = (files::text(&log), BTreeMap::new());
    let mut places = Vec::new();
    for line in trace.lines().take_while(|line| !line.contains("AF_INET")) {
        let Some((call, _)) = line.split_once('(') else {
            continue;
        };
        let count: &mut usize = counts.entry(call).or_default();
        *count += 1;
        if !line.contains("= -1 ") {
            places.push((line, call, *count));
        }
    }
    assert!(places.len() > 1, "it changed nothing: {trace}");
    for (line, call, count) in places.into_iter().step_by(every()) {
        let (scene, inject) = (
            scene(),
            format!("inject={call}:signal={signal}:when={count}"),
        );
        quietly(&mut traced(&log, &command(&scene), &["-e", &inject]));
        judge(&scene, line);
    }
}

/// What a project and its state hold besides what belongs there.
fn left_over(scene: &Scene) -> Vec<String> {
    let own = [
        "known-runs.json",
        // The next write replaces it.
        ".known-runs.json.new",
        "lock",
        "runs",
        "view",
        "under-way.json",
        "caches",
        "bearings",
        "trusted",
    ];
    let is_stale = |name: &String| !own.contains(&name.as_str()) && !name.starts_with("20");
    let below = |folder: &str| {
        files::entries(scene.project.root().join(folder))
            .into_iter()
            .map(|path| name(&path))
    };
    let logs = below("agent-config/logs").chain(below(".git/code-commit/runs"));
    below(".git/code-commit")
        .chain(logs)
        .filter(is_stale)
        .collect()
}

#[test]
fn a_clean_that_was_killed_leaves_no_half_of_a_run() {
    at_each_change(
        "KILL",
        || {
            let scene = Scene::with_replies([MENDS_IT]);
            assert_eq!(scene.commit(&[]).code, Some(0));
            scene
        },
        |scene| scene.command(&["clean", "--keep", "0"], &[]),
        |scene, place| {
            if let Some(run) = scene.runs().pop().filter(|run| name(run).starts_with("20")) {
                assert_eq!(
                    scene.run(&["show"]).code,
                    Some(0),
                    "{place}: half of {run:?} is there"
                );
            }
            let cleaned = scene.run(&["clean", "--keep", "0"]);
            assert_eq!(
                (cleaned.code, scene.runs().len()),
                (Some(0), 0),
                "{place}: {cleaned}"
            );
            assert_eq!(left_over(scene), [""; 0], "{place}");
        },
    );
}

#[test]
fn the_copies_of_an_order_that_was_killed_go_with_the_next_command() {
    let scene = killed_order();
    let copies = scene.runs()[0].join("backup/before");
    assert!(copies.exists(), "{:?}", files::names(&scene.runs()[0]));
    let cleaned = Ran::of(&mut program(
        scene.root(),
        scene.project.beside(),
        &["clean", "--keep", "9"],
        &[],
    ));
    assert_eq!(
        (cleaned.code, copies.exists()),
        (Some(0), false),
        "{cleaned}"
    );
}
