//! Another run at work, and what a killed one has left.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use code_commit_fixtures::server::{Hang, Script, Step};

use super::{code, proper};
use crate::scenes::commit::Scene;
use crate::terminal::check;

/// So many files that a program is surely still at it when it is seen to write.
const FILES: usize = 300;
/// How often a program may be too quick to be killed at the right moment.
const TRIES: usize = 30;

#[test]
fn another_run_that_is_at_work() {
    let scene = Scene::new(Script::new([Step::text("").hang(Hang::BeforeHead)]));
    let mut first = scene
        .keyed(&scene.flags(), &[])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    scene.server.wait_for_requests(1);
    let pid = first.id().to_string();
    let mut text = String::new();
    for args in [
        ["undo"].as_slice(),
        &["resume"],
        &["apply", "agent-config/reply"],
        &["--sandbox", "off"],
    ] {
        scene.write("agent-config/reply", "^^^a\na\n^^^end\n");
        let done = scene.keyed(args, &[]).output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr).replace(&pid, "[PID]");
        proper("another run", code(&done), &words);
        text.push_str(&format!(
            "$ code-commit {}\nexit {}\n{words}\n",
            args.join(" "),
            code(&done)
        ));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    check("errors_locked", &scene, &text);
}

/// Whether a program that is killed now leaves what is wanted.
type Moment = fn(&Transaction) -> bool;

/// The transaction of a project, seen from outside.
struct Transaction {
    folder: PathBuf,
    first: PathBuf,
}

impl Transaction {
    fn is_begun(&self) -> bool {
        self.folder.join("journal").exists()
    }

    fn is_through(&self) -> bool {
        self.folder.join("manifest.json").exists()
    }

    fn has_written(&self) -> bool {
        self.is_begun() && fs::read(&self.first).is_ok_and(|text| text == b"new\n")
    }
}

/// A project in which `apply` was killed at that moment.
fn killed_when(moment: Moment) -> Scene {
    let scene = Scene::new(Script::new([]));
    let file = |number: usize, text: &str| format!("^^^many/{number}.txt\n{text}\n^^^end\n");
    let reply = |text: &str| {
        (0..FILES)
            .map(|number| file(number, text))
            .collect::<String>()
    };
    for text in ["old", "new"] {
        scene.write(&format!("agent-config/{text}"), reply(text).as_bytes());
    }
    let root = scene.project.root();
    let transaction = Transaction {
        folder: root.join(".git/code-commit/txn"),
        first: root.join("many/0.txt"),
    };
    for _ in 0..TRIES {
        assert!(
            scene
                .keyed(&["apply", "agent-config/old"], &[])
                .output()
                .unwrap()
                .status
                .success()
        );
        let mut command = scene.keyed(&["apply", "agent-config/new"], &[]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        while !moment(&transaction) && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if moment(&transaction) {
            return scene;
        }
    }
    panic!("in {TRIES} tries the program was never killed at the right moment")
}

fn all_are(scene: &Scene, text: &str) -> bool {
    (0..FILES).all(|number| scene.read(&format!("many/{number}.txt")) == format!("{text}\n"))
}

/// What the next command says; that there is nothing to undo for it is another matter.
fn next(scene: &Scene) -> String {
    let done = scene.keyed(&["undo", "nothing"], &[]).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    proper("recovery", code(&done), &words);
    let said = words
        .lines()
        .take_while(|line| !line.contains("no run named nothing"));
    format!(
        "exit {}\n{}\n",
        code(&done),
        said.collect::<Vec<_>>().join("\n")
    )
}

#[test]
fn a_run_that_was_killed_while_it_wrote_is_taken_back() {
    let scene = killed_when(Transaction::is_begun);
    check("errors_taken_back", &scene, &next(&scene));
    assert!(all_are(&scene, "old"));
}

#[test]
fn whatever_command_comes_next_finds_no_half_written_tree() {
    let demo = ["demo", "--sandbox", "off"];
    for args in [
        ["guard", "a"].as_slice(),
        &["runs"],
        &["spec", "status"],
        &["order", "new", "-"],
        &demo,
    ] {
        let scene = killed_when(Transaction::is_begun);
        let parsed = scene
            .keyed(&["parse", "agent-config/old"], &[])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&parsed.stderr),
            "",
            "parse looks at no tree"
        );
        let done = scene.keyed(args, &[]).output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(
            words.contains("its unfinished changes were undone"),
            "{args:?}: {words}"
        );
        assert!(all_are(&scene, "old"), "{args:?}");
    }
}

#[test]
fn an_order_puts_the_repository_right_that_it_names() {
    let order = [
        "order",
        "run",
        "none.json",
        "--out",
        "out",
        "--llm-model",
        "scripted/none",
        "--repo",
    ];
    for args in [&["order", "check", "none.json", "--repo"][..], &order] {
        let scene = killed_when(Transaction::is_begun);
        let root = scene.project.root().to_str().unwrap();
        let mut command = scene.keyed(&[args, &[root]].concat(), &[]);
        let done = command
            .current_dir(scene.project.beside())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(
            words.contains("its unfinished changes were undone"),
            "{args:?}: {words}"
        );
        assert!(all_are(&scene, "old"), "{args:?}");
    }
}

#[test]
fn a_command_that_only_looks_leaves_the_transaction_of_a_run_at_work_alone() {
    let scene = killed_when(Transaction::is_begun);
    let lock = scene.at(".git/code-commit/lock");
    let held = fs::OpenOptions::new().write(true).open(lock).unwrap();
    held.lock().unwrap();
    let done = scene.keyed(&["runs"], &[]).output().unwrap();
    assert_eq!(
        (
            code(&done),
            String::from_utf8_lossy(&done.stderr).into_owned()
        ),
        (0, String::new())
    );
    assert!(scene.at(".git/code-commit/txn/journal").exists());
    drop(held);
}

#[test]
fn a_run_that_was_killed_behind_its_last_write_is_whole() {
    let scene = killed_when(Transaction::is_through);
    check("errors_finished", &scene, &next(&scene));
    assert!(all_are(&scene, "new"));
}

#[test]
fn what_was_changed_after_the_kill_is_left_alone_and_named() {
    let scene = killed_when(Transaction::has_written);
    scene.write("many/0.txt", "mine\n");
    check("errors_left_alone", &scene, &next(&scene));
    assert_eq!(scene.read("many/0.txt"), "mine\n");
}

#[test]
fn a_transaction_of_a_root_that_is_gone_is_not_guessed_at() {
    let scene = killed_when(Transaction::is_begun);
    let root = scene.project.root();
    let (elsewhere, kept) = (scene.beside("elsewhere"), scene.beside("kept"));
    fs::create_dir(&elsewhere).unwrap();
    // The new root has another inode; its git directory is the old one, with the transaction in it.
    fs::rename(root.join(".git"), elsewhere.join(".git")).unwrap();
    fs::rename(root, &kept).unwrap();
    fs::rename(&elsewhere, root).unwrap();
    fs::remove_dir_all(&kept).unwrap();
    check("errors_root_gone", &scene, &next(&scene));
}
