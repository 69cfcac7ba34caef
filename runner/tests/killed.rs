//! Kills the harness itself: in namespaces and in a container its command dies with it; otherwise the next
//! harness ends the command.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests start a harness of their own and measure time"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod support;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use code_commit_runner::{Backend, Containers, remove_orphans};
use support::{DOCKER, Scratch, helper, processes_with, works};

const EVIL: [&str; 4] = ["grandchild", "daemon", "orphan", "shifter"];

/// One test at a time: each would find the other's orphans.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A harness whose command, in the sandbox of this backend, has reported that it is ready; and its output.
fn harness(
    scratch: &Scratch,
    backend: Backend,
    argv: &[&str],
) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut harness = Command::new(helper());
    harness
        .arg(backend.to_string())
        .arg(scratch.at("tree"))
        .args(argv);
    harness.envs(std::env::var_os(DOCKER).map(|host| ("DOCKER_HOST", host)));
    let mut harness = harness.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap() == "ready"),
        "{backend} {argv:?}"
    );
    (harness, lines)
}

fn kill((mut harness, _): (Child, Lines<BufReader<ChildStdout>>)) {
    harness.kill().and_then(|()| harness.wait()).unwrap();
}

/// Waits until no process has `token` among its arguments.
fn assert_gone(token: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    while !processes_with(token).is_empty() {
        assert!(Instant::now() < end, "{token} survived the harness");
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_harness_leaves_nothing_behind_in_namespaces_or_in_a_container() {
    let _turn = turn();
    let scratch = Scratch::new();
    EVIL.iter().for_each(|evil| scratch.compile(evil));
    for backend in [Backend::Namespaces, Backend::Docker]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        for evil in EVIL {
            let token = format!("token-{}-{backend}-{evil}", std::process::id());
            let harness = harness(
                &scratch,
                backend,
                &[&format!("./src/{evil}"), "stay", &token],
            );
            assert!(!processes_with(&token).is_empty(), "{backend} {evil}");
            kill(harness);
            assert_gone(&token);
        }
    }
}

/// The markers of the processes with `token` among their arguments; the harness itself has none.
fn markers(token: &str) -> Vec<String> {
    let marker = |process: String| {
        let all = std::fs::read(format!("{process}/environ")).ok()?;
        let mut all = all.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        all.find_map(|line| line.strip_prefix("CODE_COMMIT_RUN=").map(str::to_owned))
    };
    processes_with(token)
        .into_iter()
        .filter_map(marker)
        .collect()
}

#[test]
fn the_next_harness_ends_what_a_killed_one_has_left_and_nothing_of_one_that_lives() {
    let _turn = turn();
    let scratch = Scratch::new();
    for backend in [Backend::Off, Backend::Landlock]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        let token = |name: &str| format!("token-{}-{backend}-{name}", std::process::id());
        let start = |name: &str| {
            harness(
                &scratch,
                backend,
                &["sh", "-c", "echo ready; sleep 60; :", "sh", &token(name)],
            )
        };
        let (dead, alive) = (start("dead"), start("alive"));
        kill(dead);
        assert!(
            !markers(&token("dead")).is_empty(),
            "{backend}: there is something to be ended"
        );
        let orphans = remove_orphans(None);
        assert!(
            orphans.processes >= 2,
            "{backend}: the shell and its child: {orphans:?}"
        );
        assert_gone(&token("dead"));
        assert!(
            !markers(&token("alive")).is_empty(),
            "{backend}: {orphans:?}"
        );
        kill(alive);
        remove_orphans(None);
        assert_gone(&token("alive"));
    }
}

/// A container that does not end with its harness, as after an agent has killed the keeper inside.
fn container(scratch: &Scratch, marker: &str) {
    let client = |words: &[&str]| {
        let host = std::env::var_os(DOCKER)
            .into_iter()
            .flat_map(|host| ["--host".into(), host]);
        let done = Command::new("docker")
            .args(host)
            .args(words)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(done.success(), "{words:?}");
    };
    let label = format!("CODE_COMMIT_RUN={marker}");
    let shell = scratch.at("tree/src/daemon").display().to_string();
    client(&[
        "create",
        "--label",
        &label,
        "--network",
        "none",
        "code-commit-empty:1",
        &shell,
    ]);
}

#[test]
fn the_next_harness_removes_the_containers_of_a_killed_one_and_no_others() {
    let _turn = turn();
    if !works(Backend::Docker) {
        return;
    }
    let scratch = Scratch::new();
    let token = |name: &str| format!("token-{}-container-{name}", std::process::id());
    let start = |name: &str| {
        let stay = ["sh", "-c", "echo ready; sleep 60; :", "sh", &token(name)];
        harness(&scratch, Backend::Off, &stay)
    };
    let (dead, alive) = (start("dead"), start("alive"));
    for name in ["dead", "alive"] {
        container(&scratch, &markers(&token(name))[0]);
    }
    let remove = || remove_orphans(std::env::var_os(DOCKER).as_deref()).containers;
    let removed = |removed| {
        Ok(Containers {
            removed,
            left: Vec::new(),
        })
    };
    assert_eq!(remove(), removed(0), "both live");
    kill(dead);
    assert_eq!(remove(), removed(1));
    kill(alive);
    assert_eq!(remove(), removed(1));
}

#[test]
fn the_next_harness_removes_the_temporary_folder_of_a_killed_one() {
    let _turn = turn();
    if !works(Backend::Landlock) {
        return;
    }
    let scratch = Scratch::new();
    let harness = harness(
        &scratch,
        Backend::Landlock,
        &["sh", "-c", "echo ready; sleep 60; :"],
    );
    let own = format!("code-commit-{}-", harness.0.id());
    let is_own = |name: std::ffi::OsString| name.to_string_lossy().starts_with(&own);
    let folders = || {
        std::fs::read_dir("/tmp")
            .unwrap()
            .filter(|entry| is_own(entry.as_ref().unwrap().file_name()))
            .count()
    };
    remove_orphans(None);
    assert_eq!(folders(), 1, "the harness lives");
    kill(harness);
    remove_orphans(None);
    assert_eq!(folders(), 0);
}
