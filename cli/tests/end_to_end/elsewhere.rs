//! Projects whose repository lies outside of them: behind the wall, a build's git finds it all the same.

use std::path::Path;

use fixtures::server::{Script, Step};

use crate::harness::{KEY, Scene};

const FILES: [(&str, &str); 3] = [
    (".gitignore", "/agent-config\n"),
    ("below/.gitignore", "/agent-config\n"),
    ("below/build.sh", "#!/bin/sh\ngit log -1 --format=%s && ! touch \"$(git rev-parse --git-dir)/x\"\n"),
];

#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped rung must be seen")]
fn check_build_in(scene: &Scene, root: &Path) {
    for sandbox in ["bwrap", "landlock"] {
        std::fs::create_dir_all(root.join("agent-config")).unwrap();
        for input in ["query.txt", "codeRollup.txt"] {
            std::fs::File::create(root.join("agent-config").join(input))
                .and_then(|mut file| std::io::Write::write_all(&mut file, b"say one\n"))
                .unwrap();
        }
        let args = ["--base-url", scene.server.origin(), "--model", "gemini-test", "--sandbox", sandbox];
        let done = scene.command(&args, &[("GEMINI_API_KEY", KEY)]).current_dir(root).output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        if err.contains(&format!("--sandbox {sandbox}")) && done.status.code() == Some(3) {
            eprintln!("SKIPPED: no {sandbox} here: {err}");
            continue;
        }
        assert_eq!(done.status.code(), Some(0), "{sandbox}: {}{err}", String::from_utf8_lossy(&done.stdout));
    }
}

fn scene() -> Scene {
    let reply = Step::text("^^^one.txt\n1\n^^^end\n");
    Scene::new(&FILES, Script::new([]).rule("enerateContent", reply))
}

#[test]
fn a_build_below_the_top_of_a_work_tree_can_ask_git() {
    let scene = scene();
    check_build_in(&scene, &scene.project.root().join("below"));
}

#[test]
fn a_build_in_a_linked_work_tree_can_ask_git() {
    let scene = scene();
    scene.project.git(&["mv", "below/build.sh", "build.sh"]).unwrap();
    scene.project.commit("at the top").unwrap();
    let linked = scene.project.beside().canonicalize().unwrap().join("linked");
    scene.project.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "other"]).unwrap();
    check_build_in(&scene, &linked);
}
