//! Another run at work, and what a killed one has left.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use code_commit_fixtures::server::{Hang, Script, Step};

use super::{code, proper, transcript};
use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, start_quietly};
use crate::terminal::check;

/// So many files that a program is surely still at it when it is seen to write.
const FILES: usize = 300;
/// How often a program may be too quick to be killed at the right moment.
const TRIES: usize = 30;

#[test]
fn another_run_that_is_at_work() {
    let scene = Scene::new(Script::new([Step::text("").hang(Hang::BeforeHead)]));
    let mut first = start_quietly(&mut scene.keyed(&scene.flags(), &[]));
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
        text.push_str(&transcript("another run", &scene, args).replace(&pid, "[PID]"));
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
        scene.run_keyed(&["apply", "agent-config/old"]).exits(0);
        let mut child = start_quietly(&mut scene.keyed(&["apply", "agent-config/new"], &[]));
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
    let ran = Ran::of(&mut scene.keyed(&["undo", "nothing"], &[]));
    proper("recovery", code(&ran), &ran.err);
    let lines = ran.err.lines();
    let said = lines.take_while(|line| !line.contains("no run named nothing"));
    let said: Vec<&str> = said.collect();
    format!("exit {}\n{}\n", code(&ran), said.join("\n"))
}

/// The command undoes what a killed one has left, and says so.
fn is_undone_by(command: &mut Command, scene: &Scene) {
    Ran::of(command).err_has("its unfinished changes were undone");
    assert!(all_are(scene, "old"), "{command:?}");
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
        let parsed = scene.run_keyed(&["parse", "agent-config/old"]);
        assert_eq!(parsed.err, "", "parse looks at no tree");
        is_undone_by(&mut scene.keyed(args, &[]), &scene);
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
        is_undone_by(command.current_dir(scene.project.beside()), &scene);
    }
}

#[test]
fn a_command_that_only_looks_leaves_the_transaction_of_a_run_at_work_alone() {
    let scene = killed_when(Transaction::is_begun);
    let lock = scene.at(".git/code-commit/lock");
    let held = fs::OpenOptions::new().write(true).open(lock).unwrap();
    held.lock().unwrap();
    let ran = scene.run_keyed(&["runs"]).exits(0);
    assert_eq!(ran.err, "");
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
