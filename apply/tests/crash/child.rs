//! The process to be killed: this test binary, restarted to run one test that is controlled by variables.

use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::scene::{Scene, scratch};

/// The child runs `apply`, `undo` or `recover`, and ends itself before the step with this number, if given.
pub(crate) fn command(scratch: &Path, task: &str, kill_at: Option<usize>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    configure(&mut command, scratch, task, kill_at);
    command
}

/// The child under `strace` with these injections; it does not end itself.
pub(crate) fn traced(scratch: &Path, task: &str, log: &Path, inject: &str) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o"])
        .arg(log)
        .args(["-e", inject])
        .arg(std::env::current_exe().unwrap());
    configure(&mut command, scratch, task, None);
    command
}

fn configure(command: &mut Command, scratch: &Path, task: &str, kill_at: Option<usize>) {
    command
        .args([
            "--exact",
            "child::child",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env("CRASH_CHILD", task)
        .env("CRASH_SCRATCH", scratch)
        .env("RUST_BACKTRACE", "0")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    if let Some(step) = kill_at {
        command.env("CRASH_KILL_AT", step.to_string());
    }
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
        let scratch = scratch();
        let scene = Scene::create(scratch.path());
        code_commit_apply::apply(&scene.lock(), &scene.root, scene.set(), &scene.undo).unwrap();
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
    let lock = scene.lock();
    let done = match task.as_str() {
        "apply" => {
            let undo = &scene.undo;
            code_commit_apply::seam::apply(&lock, &scene.root, scene.set(), undo, &mut steps)
                .map(drop)
                .map_err(|e| format!("{e:?}"))
        }
        "undo" => {
            let folders = std::slice::from_ref(&scene.undo);
            code_commit_apply::seam::undo(
                &lock,
                &scene.root,
                folders,
                code_commit_apply::Force::No,
                &mut steps,
            )
            .map(drop)
            .map_err(|e| format!("{e:?}"))
        }
        _ => code_commit_apply::seam::recover(&lock, &scene.root, &mut steps)
            .map(drop)
            .map_err(|e| format!("{e:?}")),
    };
    std::process::exit(i32::from(done.is_err()));
}
