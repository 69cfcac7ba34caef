//! A disk that fails once: errors injected into the program's system calls by strace.

use std::process::Command;

use fixtures::demo::{FILES, MENDS_IT};

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, below};

/// The program with an injection by strace. None where strace cannot trace, which is said.
pub fn injected(scene: &Scene, injection: &str, args: &[&str]) -> Option<Injected> {
    let probe = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: errors at system calls because strace cannot trace here");
        return None;
    }
    let log = scene.project.beside().join("strace");
    let strace = ["strace", "-qq", "-o", log.to_str().unwrap(), "-e", &format!("inject={injection}")];
    let Ran { code, err: words, .. } = Ran::of(&mut below(strace, &scene.keyed(args, &[])));
    let was_hit = std::fs::read_to_string(log).unwrap().contains("(INJECTED)");
    Some(Injected { code, was_hit, words })
}

pub struct Injected {
    pub code: Option<i32>,
    /// False where the program made fewer such calls.
    pub was_hit: bool,
    pub words: String,
}

#[test]
fn a_file_that_cannot_be_looked_at_once_is_not_taken_for_one_that_the_build_changed() {
    let build = FILES.iter().find(|(path, _)| *path == "build.sh").unwrap().1;
    let mut stopped = 0;
    for number in 1.. {
        let scene = Scene::with_replies([MENDS_IT]);
        let args = [&scene.flags()[..], &["--no-stream"]].concat();
        let Some(ran) = injected(&scene, &format!("fstat:error=EIO:when={number}"), &args) else { return };
        assert_eq!(
            scene.project.read("build.sh").unwrap_or_default(),
            build,
            "fstat {number}: {}",
            ran.words
        );
        match ran.code {
            // What is read twice may be read the second time.
            Some(0 | 3) => {}
            Some(70) => {
                assert!(ran.words.contains("Input/output error"), "fstat {number}: {}", ran.words);
                let resumed = scene.run_keyed(&["resume"]);
                // The last of it may have been the summary.
                let is_done = resumed.code == Some(0) || resumed.err.contains("is over");
                assert!(is_done, "fstat {number}: {}\n{resumed}", ran.words);
                assert_eq!(scene.server.requests().len(), 1, "fstat {number}: {}", ran.words);
                stopped += 1;
            }
            other => panic!("fstat {number}: exit {other:?}, {}", ran.words),
        }
        if !ran.was_hit {
            break;
        }
    }
    assert!(stopped > 3, "the seal was not looked at");
}
