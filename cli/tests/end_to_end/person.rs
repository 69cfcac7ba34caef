//! A person saves, stashes and commits in a tree of many files while a run is killed at random system calls and goes on: whatever the
//! project or the person had is still somewhere, what nobody changed is where it was, and nobody has to clean up by hand.
//!
//! `PERSON_KILLS=200 PERSON_FILES=3000` is the whole campaign; `PERSON_SEED` chooses other places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use regex::bytes::Regex;
use serde_json::json;

use crate::scenes::commit::Scene as Commit;
use crate::scenes::kills::{Dice, chosen, places, strace_works, traced};
use crate::scenes::order::{BAD, FILES as ORDER_FILES, GOOD, Scene as Order, greet};
use crate::scenes::program::Ran;

/// Kills of each loop without `PERSON_KILLS`.
const KILLS: usize = 4;
/// Files of the user without `PERSON_FILES`: some are committed, some untracked, some ignored.
const FILES: usize = 90;
/// Of these files a command of the project changes one; of the others it touches half.
const CHANGED_EVERY: usize = 30;
/// Kills of one run, before it may go on to its end.
const KILLS_IN_A_ROW: usize = 3;
/// The person does something this often.
const PACE: Duration = Duration::from_millis(10);

/// The loop that is killed.
enum Work {
    Commit(Box<Commit>, &'static str),
    Order(Box<Order>, &'static str),
}

impl Work {
    fn command(&self) -> Command {
        match self {
            Self::Commit(scene, sandbox) => {
                let model = [
                    "--model",
                    "gemini-test",
                    "--base-url",
                    scene.server.origin(),
                ];
                scene.keyed(&[&model[..], &["--sandbox", sandbox]].concat(), &[])
            }
            Self::Order(scene, sandbox) => {
                scene.command(&["--sandbox", sandbox, "--max-attempts", "2"])
            }
        }
    }

    fn run(&self, args: &[&str]) -> Ran {
        match self {
            Self::Commit(scene, _) => scene.run(args),
            Self::Order(scene, _) => Ran::of(&mut scene.program(args)),
        }
    }

    fn project(&self) -> &Project {
        match self {
            Self::Commit(scene, _) => &scene.project,
            Self::Order(scene, _) => &scene.project,
        }
    }

    fn server(&self) -> &Server {
        match self {
            Self::Commit(scene, _) => &scene.server,
            Self::Order(scene, _) => &scene.server,
        }
    }
}

/// Contents by path, each beginning with a line that no other has.
type Contents = BTreeMap<String, String>;

fn content(number: usize) -> String {
    format!("<<{number}>>\n")
}

/// What the user has before the run. An order wants no untracked files.
fn users_files(count: usize, has_untracked: bool) -> Contents {
    let name = |number: usize| match number % 3 {
        0 => format!("ignored/{}/{number}.o", number % 7),
        1 if has_untracked => format!("untracked/{}/{number}", number % 7),
        _ => format!("committed/{}/{number}", number % 7),
    };
    (0..count)
        .map(|number| (name(number), content(number)))
        .collect()
}

/// The lines of a command of the project.
fn deeds(dice: &mut Dice, users: &Contents) -> String {
    let (mut touched, mut changed) = (String::from("touch"), String::new());
    for (number, name) in users.keys().enumerate() {
        if is_changed(number) {
            changed.push_str(&format!("echo built >> {name}\n"));
        } else if dice.below(2) == 0 {
            touched.push_str(&format!(" {name}"));
        }
    }
    format!("{touched}\n{changed}echo product > product.o\necho made > made\n")
}

fn is_changed(number: usize) -> bool {
    number.is_multiple_of(CHANGED_EVERY)
}

/// Two rounds, or two attempts: the first fails.
fn work(dice: &mut Dice, is_order: bool, users: &Contents) -> Work {
    let sandbox = ["auto", "off"][dice.below(2)];
    let deeds = deeds(dice, users);
    let (work, committed) = if is_order {
        let second = Script::new([]).rule("got: hello; you", Step::text(&greet(GOOD)));
        let scene = Order::scripted(&ORDER_FILES, second.rule("POST ", Step::text(&greet(BAD))));
        scene.place_order(
            &json!({ "acceptance_commands": ["sh tests/deeds.sh", "sh tests/run.sh"] }),
        );
        scene
            .project
            .write(".gitignore", b"/ignored/\n*.o\n")
            .unwrap();
        scene
            .project
            .write("tests/deeds.sh", deeds.as_bytes())
            .unwrap();
        (
            Work::Order(Box::new(scene), sandbox),
            ["tests", ".gitignore", "committed"].as_slice(),
        )
    } else {
        let build = format!("#!/bin/sh\n{deeds}grep good model || {{ echo it is bad; exit 1; }}\n");
        let files = [
            (".gitignore", "/agent-config\n*.o\n"),
            ("build.sh", &*build),
            ("model", "old\n"),
        ];
        let second = Script::new([]).rule("it is bad\\n", Step::text("^^^model\ngood\n^^^end\n"));
        let scene = Commit::with_files(
            &files,
            second.rule("POST ", Step::text("^^^model\nbetter\n^^^end\n")),
        );
        scene
            .project
            .write("agent-config/query.txt", b"make it good\n")
            .unwrap();
        (
            Work::Commit(Box::new(scene), sandbox),
            ["committed"].as_slice(),
        )
    };
    let project = work.project();
    users
        .iter()
        .for_each(|(path, content)| project.write(path, content.as_bytes()).unwrap());
    project.git(&[&["add"], committed].concat()).unwrap();
    project.git(&["commit", "-qm", "the user's files"]).unwrap();
    work
}

/// Works in the tree as soon as the model was asked, until told to stop; what they saved last, by path.
fn person(project: &Project, server: &Server, seed: usize, stop: &Receiver<()>) -> Contents {
    let (mut dice, mut saved) = (Dice::of(seed), Contents::new());
    let mut next = 1_000_000 + 100_000 * (seed % 1000);
    while stop.recv_timeout(PACE).is_err() {
        if server.requests().is_empty() {
            continue;
        }
        next += 1;
        let path = match dice.below(20) {
            // Git refuses while another git, or the harness, has its lock: then the person shrugs.
            0 => {
                let _ = project.git(&["stash", "-q"]);
                continue;
            }
            1 => {
                let _ = project.git(&["commit", "-qam", "what I have"]);
                continue;
            }
            2..12 => format!("person/{next}"),
            12..16 => format!("committed/{}/again-{}", dice.below(7), dice.below(20)),
            _ => format!("ignored/{}/mine-{}.o", dice.below(7), dice.below(20)),
        };
        save(project.root(), &path, &content(next), dice.below(2) == 0);
        saved.insert(path, content(next));
    }
    saved
}

/// As editors do: in place, or by a rename.
fn save(root: &Path, path: &str, content: &str, by_rename: bool) {
    let path = root.join(path);
    let folder = path.parent().unwrap();
    let written = if by_rename {
        folder.join(".being-saved")
    } else {
        path.clone()
    };
    // A rollback may move the folder away at this moment; an editor tries again.
    while fs::create_dir_all(folder)
        .and_then(|()| fs::write(&written, content))
        .is_err()
        || (by_rename && fs::rename(&written, &path).is_err())
    {}
}

/// The first lines of all files below these folders, and of all objects of git, that a person or the user's files began with.
fn found(project: &Project) -> BTreeSet<Vec<u8>> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![project.beside().to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => todo.push(entry.path()),
                kind if kind.is_file() => {
                    found.extend(first_line(&fs::read(entry.path()).unwrap()));
                }
                _ => {}
            }
        }
    }
    let objects = Command::new("git")
        .args(["cat-file", "--batch-all-objects", "--batch", "--unordered"])
        .current_dir(project.root())
        .output()
        .unwrap();
    let blobs = Regex::new(r"(?-u) blob \d+\n(<<\d+>>\n)").unwrap();
    found.extend(
        blobs
            .captures_iter(&objects.stdout)
            .map(|blob| blob[1].to_owned()),
    );
    found
}

fn first_line(content: &[u8]) -> Option<Vec<u8>> {
    content.starts_with(b"<<").then(|| {
        content
            .split_inclusive(|byte| *byte == b'\n')
            .next()
            .unwrap()
            .to_owned()
    })
}

/// Runs the command while the person works, killed a few times, then to its end; the places of the kills.
fn disturbed(
    work: &Work,
    dice: &mut Dice,
    most: usize,
    places: &[(String, usize)],
) -> (Vec<String>, Ran) {
    let log = work.project().beside().join("strace");
    let mut killed = Vec::new();
    while killed.len() < most {
        let (call, count) = &places[dice.below(places.len())];
        let inject = format!("inject={call}:signal=KILL:when={count}");
        let ran = Ran::of(&mut traced(&log, &work.command(), &["-e", &inject]));
        if ran.code.is_some() {
            return (killed, ran);
        }
        killed.push(format!("{call} {count}"));
    }
    let ran = Ran::of(&mut work.command());
    (killed, ran)
}

/// One case; how often it was killed.
fn case(seed: usize, is_order: bool, most: usize, places: &[(String, usize)]) -> usize {
    let mut dice = Dice::of(seed);
    let users = users_files(chosen("PERSON_FILES", FILES), !is_order);
    let work = work(&mut dice, is_order, &users);
    let (stop, stopped) = channel();
    let (killed, ran, saved) = thread::scope(|scope| {
        let person = scope.spawn({
            let work = &work;
            move || person(work.project(), work.server(), seed, &stopped)
        });
        let (killed, ran) = disturbed(&work, &mut dice, most, places);
        stop.send(()).unwrap();
        (killed, ran, person.join().unwrap())
    });
    let case = format!("PERSON_SEED={seed}, killed at {killed:?}: {ran}");
    // A person who stashes and commits may make a change impossible: refused, or a verdict of failure.
    assert!(matches!(ran.code, Some(0 | 1 | 3)), "{case}");
    let undone = work.run(&["undo"]);
    assert!(matches!(undone.code, Some(0 | 3 | 7)), "{case}\n{undone}");
    let checked = work.run(&["rollup"]);
    assert_eq!(checked.code, Some(0), "{case}\n{checked}");
    let found = found(work.project());
    let lost: Vec<_> = users
        .iter()
        .chain(&saved)
        .filter(|(_, content)| !found.contains(content.as_bytes()))
        .collect();
    assert!(lost.is_empty(), "{case}\n{undone}\nlost: {lost:?}");
    // Whoever commits in the middle of a rollback has decided about the tree; then the rest stays in `left-…`.
    let is_decided = ran.err.contains("is not rolled back");
    let moved: Vec<_> = (0..)
        .zip(&users)
        .filter(|(number, (path, content))| {
            // A stash takes what is committed back, so the content alone is compared.
            !is_changed(*number) && work.project().read(path).ok().as_ref() != Some(content)
        })
        .collect();
    assert!(
        is_decided || moved.is_empty(),
        "{case}\n{undone}\nnot where it was: {moved:?}"
    );
    let state = work.project().root().join(".git/code-commit");
    let left = ["txn", "view"]
        .map(|name| state.join(name))
        .into_iter()
        .filter(|path| path.exists());
    assert_eq!(left.count(), 0, "{case}\n{undone}");
    killed.len()
}

fn campaign(is_order: bool) {
    if !strace_works() {
        return;
    }
    let (wanted, first) = (chosen("PERSON_KILLS", KILLS), chosen("PERSON_SEED", 1));
    let users = users_files(chosen("PERSON_FILES", FILES), !is_order);
    let undisturbed = work(&mut Dice::of(first), is_order, &users);
    let places = places(
        &undisturbed.project().beside().join("strace"),
        &undisturbed.command(),
    );
    let mut kills = 0;
    for seed in first.. {
        if kills >= wanted {
            break;
        }
        kills += case(seed, is_order, KILLS_IN_A_ROW.min(wanted - kills), &places);
    }
    eprintln!(
        "{kills} kills, each at one of {} system calls",
        places.len()
    );
}

#[test]
fn a_person_who_works_beside_a_run_that_is_killed_loses_nothing() {
    campaign(false);
}

#[test]
fn a_person_who_works_beside_an_order_that_is_killed_loses_nothing() {
    campaign(true);
}
