//! The harness itself is killed: what it ran behind bubblewrap goes with it.

#![expect(clippy::disallowed_methods, reason = "the test starts a harness of its own and measures time")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runner::Rung;
use support::{Scratch, processes_with, works};

/// `examples/hold.rs`, which cargo builds for the tests.
fn hold() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let hold = tests.ancestors().nth(2).unwrap().join("examples/hold");
    assert!(hold.exists(), "`cargo build -p code-commit-runner --examples` makes {}", hold.display());
    hold
}

#[test]
fn a_killed_harness_leaves_nothing_behind_bubblewrap() {
    if !works(Rung::Bwrap) {
        return;
    }
    let scratch = Scratch::new();
    for evil in ["grandchild", "daemon", "orphan", "shifter"] {
        scratch.compile(evil);
        let token = format!("token-{}-killed-{evil}", std::process::id());
        let mut harness = Command::new(hold());
        harness.arg("bwrap").arg(scratch.at("tree")).arg(scratch.at("output"));
        harness.args([&format!("./src/{evil}"), "stay", &token]).stdout(Stdio::piped());
        let mut harness = harness.spawn().unwrap();
        let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"), "{evil}");
        assert!(!processes_with(&token).is_empty(), "{evil}");
        harness.kill().and_then(|()| harness.wait()).unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while !processes_with(&token).is_empty() {
            assert!(Instant::now() < end, "{evil} survived the harness");
            std::thread::yield_now();
        }
    }
}
