//! A disk that fails once: errors injected into the program's system calls by strace.

use std::path::Path;
use std::process::Command;

use code_commit_fixtures::demo::MENDS_IT;

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, below};
use crate::scenes::size::every;

/// The program with an injection by strace. None where strace cannot trace, which is said.
pub fn injected(scene: &Scene, injection: &str, args: &[&str]) -> Option<Injected> {
    let log = scene.beside("strace");
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

#[test]
fn a_call_that_a_signal_interrupts_is_made_again() {
    for calls in ["openat2", "fsync,fdatasync,syncfs", "openat"] {
        for number in (1..).step_by(4 * every()) {
            let scene = Scene::with_replies([MENDS_IT]);
            let (log, root) = (scene.beside("strace"), scene.project.root());
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
