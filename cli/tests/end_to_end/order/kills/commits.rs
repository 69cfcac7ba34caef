//! `order run --commit` that is killed around its commit: the same command goes on, no reply is paid for twice, nothing is left to a hand.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::server::{Script, Step};
use serde_json::json;

use crate::scenes::kills::{is_killed, quietly};
use crate::scenes::order::{FILES, GOOD, Scene, greet, order, proposal};
use crate::scenes::program::Ran;

/// Orders, by their titles, and the files that they are about.
const ORDERS: [(&str, &str); 3] = [
    ("Order a", "src/greet.sh"),
    ("Order b", "src/b.txt"),
    ("Order c", "src/c.txt"),
];

/// The service knows a question by the title of its order, so that it does not matter how often it is asked.
fn scene() -> Scene {
    let reply = |file: &str| {
        if file == "src/greet.sh" {
            greet(GOOD)
        } else {
            proposal(file, None, file)
        }
    };
    let rule =
        |script: Script, (title, file): (&str, &str)| script.rule(title, Step::text(&reply(file)));
    let scene = Scene::scripted(&FILES, ORDERS.into_iter().fold(Script::new([]), rule));
    for (title, file) in ORDERS {
        let over = json!({
            "id": title, "title": title, "allowed_files": [file], "context_files": [file],
            "acceptance_commands": [format!("test -f {file}")],
        });
        scene.place(&file_of(title), order(&over).to_string().as_bytes());
    }
    scene
}

fn file_of(title: &str) -> String {
    format!("{}.json", title.replace(' ', "-"))
}

/// The first of the orders, as many as these.
fn command(scene: &Scene, count: usize) -> Command {
    let files: Vec<String> = ORDERS
        .iter()
        .take(count)
        .map(|(title, _)| scene.beside(file_of(title)).display().to_string())
        .collect();
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--max-attempts", "1", "--commit"]);
    scene.command(&args)
}

fn resume(scene: &Scene) -> Ran {
    let mut resume = scene.program(&["resume"]);
    resume.envs(
        command(scene, 1)
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Ran::of(&mut resume)
}

/// How often the service was asked about each order.
fn asked(scene: &Scene) -> BTreeMap<&'static str, usize> {
    let bodies: Vec<String> = scene
        .server
        .requests()
        .iter()
        .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
        .collect();
    let count = |title: &str| bodies.iter().filter(|body| body.contains(title)).count();
    ORDERS
        .iter()
        .map(|(title, _)| (*title, count(title)))
        .collect()
}

/// The orders of which some journal holds an answer.
fn answered(scene: &Scene) -> Vec<&'static str> {
    let runs = scene.runs();
    let holds = |run: &Path, title: &str| {
        let read = |file: &str| fs::read_to_string(run.join(file)).unwrap_or_default();
        read("work_order.json").contains(title)
            && read("events.jsonl")
                .lines()
                .any(|line| line.contains("\"what\":\"answered\""))
    };
    let titles = ORDERS.iter().map(|(title, _)| *title);
    titles
        .filter(|title| runs.iter().any(|run| holds(run, title)))
        .collect()
}

/// Whoever starts the same command again gets what it was to do, each order's file in a commit of its own, and pays for no answer that is
/// on record.
#[track_caller]
fn goes_on(scene: &Scene, count: usize, where_killed: &str) -> Ran {
    let (answered, before) = (answered(scene), asked(scene));
    let ran = Ran::of(&mut command(scene, count));
    assert_eq!(ran.code, Some(0), "{where_killed}: {ran}");
    let after = asked(scene);
    for title in answered {
        assert_eq!(
            after[title], before[title],
            "{where_killed}: {title} was paid for twice"
        );
    }
    let log = scene.git(&["log", "--reverse", "--format=%s", "--name-only"]);
    let log: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    let wanted: Vec<&str> = ORDERS
        .iter()
        .take(count)
        .flat_map(|(title, file)| [*title, *file])
        .collect();
    assert_eq!(&log[log.len() - wanted.len()..], wanted, "{where_killed}");
    assert_eq!(
        log.iter().filter(|line| line.starts_with("Order ")).count(),
        count,
        "{where_killed}"
    );
    assert_eq!(scene.status(), "", "{where_killed}");
    ran
}

/// The message of each order's commit names its run.
#[track_caller]
fn assert_named(scene: &Scene, where_killed: &str) {
    let log = scene.project.git(&["log", "--format=%B", "--grep=^Order "]);
    let runs: Vec<String> = scene
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_string_lossy().into())
        .collect();
    let log = log.unwrap();
    let named: Vec<&str> = log
        .lines()
        .filter_map(|line| line.strip_prefix("Run: "))
        .collect();
    assert!(!named.is_empty(), "{where_killed}: {log}");
    for run in named {
        assert!(
            runs.iter().any(|known| known == run),
            "{where_killed}: {run}"
        );
    }
}

/// A git that kills whoever has started it to commit, before it does so, after it has, or at once when it begins.
fn killed_by_git(scene: &Scene, count: usize, script: &str) {
    let git = Ran::of(Command::new("sh").args(["-c", "command -v git"]))
        .out
        .trim()
        .to_owned();
    let folder = scene.beside("bin");
    fs::create_dir_all(&folder).unwrap();
    let once = scene.beside("killed").display().to_string();
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *' commit '*) test -e {once} || {{ : > {once}; {script}; }};; esac\nexec {git} \"$@\"\n"
    );
    scene.place("bin/git", text.replace("GIT", &git).as_bytes());
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let killed = quietly(command(scene, count).env("PATH", format!("{}:{path}", folder.display())));
    assert!(is_killed(killed), "{killed:?}");
}

#[test]
fn a_kill_around_the_commit_leaves_nothing_to_a_hand() {
    for script in [
        "kill -9 $PPID; exit 1",
        "GIT \"$@\"; kill -9 $PPID; exit 0",
        "kill -9 $PPID",
    ] {
        for count in [1, 3] {
            let scene = scene();
            killed_by_git(&scene, count, script);
            let ran = goes_on(&scene, count, script);
            assert!(ran.out.contains("PASS"), "{script}: {}", ran.out);
            assert_named(&scene, script);
        }
    }
}

#[test]
fn what_a_person_commits_behind_the_commit_of_a_killed_order_stays() {
    let scene = scene();
    killed_by_git(&scene, 1, "GIT \"$@\"; kill -9 $PPID; exit 0");
    scene.write("mine.txt", "mine\n");
    scene.project.commit("mine").unwrap();
    let head = scene.git(&["rev-parse", "HEAD"]);
    resume(&scene).exits(0);
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), head);
    assert_eq!((asked(&scene)["Order a"], scene.status().as_str()), (1, ""));
}
