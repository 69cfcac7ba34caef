//! A disk that fails once: errors injected into the program's system calls by strace.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::every;
use crate::scenes::program::{Ran, below};
use crate::scenes::spec;

/// The program with an injection by strace. None where strace cannot trace, which is said.
pub fn injected(scene: &Scene, injection: &str, args: &[&str]) -> Option<Injected> {
    let log = scene.project.beside().join("strace");
    injected_into(
        &scene.keyed(args, &[]),
        &log,
        &["-e", &format!("inject={injection}")],
    )
}

/// Runs any command below strace with these options.
fn injected_into(command: &Command, log: &Path, options: &[&str]) -> Option<Injected> {
    let probe = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: errors at system calls because strace cannot trace here");
        return None;
    }
    let strace = [&["strace", "-qq", "-o", log.to_str().unwrap()], options].concat();
    let Ran {
        code, err: words, ..
    } = Ran::of(&mut below(strace, command));
    let was_hit = std::fs::read_to_string(log).unwrap().contains("(INJECTED)");
    Some(Injected {
        code,
        was_hit,
        words,
    })
}

pub struct Injected {
    pub code: Option<i32>,
    /// False where the program made fewer such calls.
    pub was_hit: bool,
    pub words: String,
}

/// A set of pre-images that is in no answer is one that no undo follows.
#[test]
fn a_manifest_that_cannot_be_opened_once_costs_no_undo() {
    let scene = || {
        let files = [
            (".gitignore", "/agent-config\n"),
            ("build.sh", "#!/bin/sh\nrm b\necho built > made\n"),
            ("a", "a\n"),
            ("b", "b\n"),
        ];
        let scene = Scene::with_files(&files, Script::new([Step::text("^^^a\nnew\n^^^end\n")]));
        scene
            .project
            .write("agent-config/query.txt", b"change a\n")
            .unwrap();
        scene
    };
    let run = |scene: &Scene, options: &[&str]| {
        let args = [&scene.flags()[..], &["--stream=false", "--rounds", "1"]].concat();
        injected_into(
            &scene.keyed(&args, &[]),
            &scene.project.beside().join("strace"),
            options,
        )
    };
    let whole = scene();
    if run(&whole, &["-s", "4096", "-e", "trace=openat"]).is_none() {
        return;
    }
    let trace = files::text(&whole.project.beside().join("strace"));
    let opens = trace.lines().filter(|line| line.starts_with("openat("));
    let numbers = (1..)
        .zip(opens)
        .filter(|(_, line)| line.contains("manifest.json\""));
    // A folder may be listed in another order, and another file be opened in between.
    let numbers: BTreeSet<usize> = numbers
        .flat_map(|(number, _)| number - 1..=number + 1)
        .collect();
    assert!(numbers.len() > 1, "no set was recorded: {trace}");
    for number in numbers {
        let scene = scene();
        let ran = run(
            &scene,
            &["-e", &format!("inject=openat:error=EIO:when={number}")],
        )
        .unwrap();
        assert!(ran.was_hit, "openat {number}: {}", ran.words);
        assert_eq!(
            scene.run(&["rollup"]).code,
            Some(0),
            "openat {number}: {}",
            ran.words
        );
        let undone = scene.run(&["undo"]);
        assert!(
            matches!(undone.code, Some(0 | 7)),
            "openat {number}: {}\n{undone}",
            ran.words
        );
        let left = ["a", "b", "made"].map(|path| scene.project.read(path).ok());
        let old = [Some("a\n".to_owned()), Some("b\n".to_owned()), None];
        assert_eq!(left, old, "openat {number}: {}\n{undone}", ran.words);
    }
}

#[test]
fn a_git_directory_that_cannot_be_inspected_once_does_not_move_the_state_into_the_tree() {
    let check = || {
        let scene = Scene::with_replies([]);
        (scene.command(&["check"], &[]), scene.project)
    };
    // Agents may work without a repository.
    let spec_run = || {
        let scene = spec::Scene::new(&[]);
        let args = ["spec", "run", "--focus", "Add X", "--sandbox", "off"];
        (scene.command(&args, &[]), scene.project)
    };
    let commands: [fn() -> (Command, Project); 2] = [check, spec_run];
    let places = [".", ".git", ".git/HEAD"];
    for (begin, place) in commands
        .into_iter()
        .flat_map(|begin| places.map(|place| (begin, place)))
    {
        // The repository is looked for at the start.
        for number in 1..16 {
            let (command, project) = begin();
            let (root, log) = (project.root(), project.beside().join("strace"));
            let injection = format!("inject=statx:error=EIO:when={number}");
            let watched = root.join(place);
            let options = ["-P", watched.to_str().unwrap(), "-e", &injection];
            let Some(ran) = injected_into(&command, &log, &options) else {
                return;
            };
            assert!(
                !root.join(".code-commit").exists(),
                "statx {number} of {place}: {}",
                ran.words
            );
            if !ran.was_hit {
                assert!(number > 2 || place != ".git", "{place} was never inspected");
                break;
            }
        }
    }
}

#[test]
fn a_call_that_a_signal_interrupts_is_made_again() {
    for calls in ["openat2", "fsync,fdatasync,syncfs", "openat"] {
        for number in (1..).step_by(4 * every()) {
            let scene = Scene::with_replies([MENDS_IT]);
            let (log, root) = (scene.project.beside().join("strace"), scene.project.root());
            let inject = format!("inject={calls}:error=EINTR:when={number}");
            // Not the libraries of the program, which its loader opens.
            let options = ["-P", root.to_str().unwrap(), "-e", &inject];
            let options = if calls == "openat" {
                &options[..]
            } else {
                &options[2..]
            };
            let command = scene.keyed(&scene.flags(), &[]);
            let Some(ran) = injected_into(&command, &log, options) else {
                return;
            };
            assert_eq!(ran.code, Some(0), "{inject}: {}", ran.words);
            if !ran.was_hit {
                assert!(number > 1, "{calls} was not made");
                break;
            }
        }
    }
}
