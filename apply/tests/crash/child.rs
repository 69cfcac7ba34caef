//! The process to be killed: this test binary, restarted to run one test that is controlled by variables.

use std::path::Path;
use std::process::{Command, ExitStatus};

use code_commit_apply::seam;
use tempfile::TempDir;

use crate::scene::Scene;

/// The child runs `apply`, `undo` or `recover`, and ends itself before the step with this number, if given.
pub(crate) fn run(scratch: &TempDir, task: &str, kill_at: Option<usize>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if let Some(step) = kill_at {
        command.env("CRASH_KILL_AT", step.to_string());
    }
    configured(&mut command, scratch, task)
}

/// The child applies the set, and ends itself before the step with this number.
pub(crate) fn kill(scratch: &TempDir, step: usize) {
    assert!(was_killed(run(scratch, "apply", Some(step))));
}

/// The child under `strace` with these injections; it does not end itself. Gives what strace has noted, too.
pub(crate) fn traced(scratch: &TempDir, task: &str, inject: &str) -> (ExitStatus, String) {
    let log = scratch.path().join("strace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .args(["-e", inject])
        .arg(std::env::current_exe().unwrap());
    let status = configured(&mut command, scratch, task);
    (status, std::fs::read_to_string(log).unwrap())
}

fn configured(command: &mut Command, scratch: &TempDir, task: &str) -> ExitStatus {
    let configured = command
        .args([
            "--exact",
            "child::child",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env("CRASH_CHILD", task)
        .env("CRASH_SCRATCH", scratch.path())
        .env("RUST_BACKTRACE", "0")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    configured.status().unwrap()
}

pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    // strace ends itself with its child's signal.
    status.signal() == Some(9)
}

/// Not a real test: the other tests start it. Without its variables it checks that a complete transaction
/// gives the new tree.
#[test]
fn child() {
    let Ok(task) = std::env::var("CRASH_CHILD") else {
        let (_scratch, scene) = Scene::create();
        scene.apply(&mut |_| ()).unwrap();
        assert_eq!(scene.now(), scene.new);
        return;
    };
    let scene = Scene::at(Path::new(&std::env::var("CRASH_SCRATCH").unwrap()));
    let kill_at = std::env::var("CRASH_KILL_AT")
        .ok()
        .map(|step| step.parse::<usize>().unwrap());
    let mut step = 0;
    let mut steps = |_: &'static str| {
        if Some(step) == kill_at {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
        }
        step += 1;
    };
    let is_done = match task.as_str() {
        "apply" => scene.apply(&mut steps).is_ok(),
        "undo" => scene.undone(&mut steps).is_ok(),
        _ => seam::recover(&scene.lock(), &scene.root, &mut steps).is_ok(),
    };
    std::process::exit(i32::from(!is_done));
}
