//! Ctrl-C while a build runs.

use std::process::Child;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, interrupt, start_heard};

fn start_with(scene: &Scene, args: &[&str]) -> Child {
    start_heard(&mut scene.keyed(args, &[]))
}

fn end(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Waits until a file that the build makes is there.
fn wait_for(path: &std::path::Path) {
    while !path.exists() {
        std::thread::yield_now();
    }
}

/// Presses Ctrl-C while a build runs that would never end, and sees that it is gone.
fn press_while_it_builds(scene: &Scene, args: &[&str]) -> Ran {
    let mark = scene.beside("building");
    let build = format!(
        "#!/bin/sh\ntrap '' INT TERM\necho $$ > {0}.part && mv {0}.part {0}\nwhile :; do sleep 1; done\n",
        mark.display()
    );
    scene.write("build.sh", build.as_bytes());
    let child = start_with(scene, args);
    wait_for(&mark);
    interrupt(&child);
    let ran = end(child).exits(130);
    let pid = std::fs::read_to_string(&mark).unwrap();
    assert!(
        !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(),
        "the build is still there"
    );
    ran
}

#[test]
fn ctrl_c_while_the_build_runs_leaves_the_changes_and_no_process() {
    let scene = Scene::new(Script::new([Step::text(MENDS_IT)]));
    let origin = scene.server.origin();
    let args = [
        "--base-url",
        origin,
        "--sandbox",
        "off",
        "--model",
        "gemini-test",
    ];
    let ran = press_while_it_builds(&scene, &args);
    let run = scene.runs().pop().unwrap();
    let name = files::name(&run);
    let help = format!(
        " help: changed so far: A README.md, M src/greet.sh; continue with: code-commit resume {name}; \
         put them back with: code-commit undo {name}\n"
    );
    ran.err_has(&help);
    assert_eq!(
        scene.status(),
        " M build.sh\n M src/greet.sh\n?? README.md\n"
    );
}
