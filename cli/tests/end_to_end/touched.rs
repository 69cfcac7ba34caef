//! Files of the user that a build touches or replaces, and builds that no view can have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{Scene, texts};
use crate::scenes::files;
use crate::scenes::program::{Ran, below};

const REPLY: &str = "^^^model\nnew\n^^^end\n";

fn args(scene: &Scene) -> Vec<&str> {
    [&scene.model()[..], &["--stream=false"]].concat()
}

fn command(scene: &Scene) -> Command {
    scene.keyed(&args(scene), &[])
}

/// The harness may use less memory than the file is long.
#[test]
fn a_file_larger_than_the_memory_is_changed_and_undone() {
    let build = "#!/bin/sh\necho built >> big.bin\n";
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text(REPLY)]));
    scene.write("agent-config/query.txt", "change the model\n");
    let big = scene.at("big.bin");
    let len = 128 << 20;
    fs::File::create(&big).unwrap().set_len(len).unwrap();
    let limited = |command: &Command| {
        let limit = ["sh", "-c", "ulimit -v 170000 && exec \"$@\"", "sh"];
        Ran::of(&mut below(limit, command))
    };
    let ran = limited(&command(&scene)).exits(0);
    ran.out_has("M big.bin");
    let undone = limited(&scene.command(&["undo"], &[]));
    assert_eq!(
        (undone.code, fs::metadata(&big).unwrap().len()),
        (Some(0), len),
        "{undone}"
    );
}

/// How a sandbox is asked for; each with a view of the tree or without.
const SANDBOXES: [&str; 4] = ["namespaces", "landlock", "auto", "off"];

/// A run or a check in a sandbox; `None`, said aloud, if that does not work here.
fn in_sandbox(scene: &Scene, sandbox: &str, is_run: bool) -> Option<Ran> {
    let mut words = if is_run { args(scene) } else { vec!["check"] };
    words.extend(["--sandbox", sandbox]);
    let ran = scene.run_keyed(&words);
    if ran.code == Some(3) && ran.err.contains("does not work here") {
        eprintln!("SKIPPED: {sandbox} does not work here");
        return None;
    }
    Some(ran)
}

/// A project with this build, and a model that gives these replies.
fn built_by(build: &str, rules: &str, replies: &[&str]) -> Scene {
    let rules = format!("/agent-config\n{rules}");
    let files = [
        (".gitignore", &*rules),
        ("build.sh", build),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new(texts(replies)));
    let query = b"change the model\n";
    scene.write("agent-config/query.txt", query);
    scene
}

/// Every file that is kept below a folder has this text somewhere.
fn holds(folder: &Path, text: &str) -> bool {
    files::named(folder)
        .iter()
        .any(|(_, content)| content == text)
}

#[test]
fn no_text_that_a_build_replaces_by_what_git_ignores_is_nowhere() {
    let build =
        "#!/bin/sh\ncd w\nrm build .env && mkdir build && echo x > build/x && echo new > key.pem\n";
    for sandbox in SANDBOXES {
        for is_run in [true, false] {
            let scene = built_by(build, "build/\n.env\nkey.pem\n", &[REPLY]);
            for path in ["build", ".env", "key.pem"] {
                let text = format!("the only {path}\n");
                scene.write(&format!("w/{path}"), text.as_bytes());
            }
            let Some(ran) = in_sandbox(&scene, sandbox, is_run) else {
                continue;
            };
            let case = format!("{sandbox}, run: {is_run}: {ran}");
            assert_eq!(ran.code, Some(0), "{case}");
            assert_eq!(scene.read("w/build"), "the only build\n", "{case}");
            let kept = [scene.at("agent-config/logs"), scene.at(".git/code-commit")];
            for path in [".env", "key.pem"] {
                let text = format!("the only {path}\n");
                assert!(
                    kept.iter().any(|folder| holds(folder, &text)),
                    "{path}: {case}"
                );
                assert!(ran.err.contains(path), "{path}: {case}");
            }
        }
    }
}

/// As cargo does it, each time.
#[test]
fn a_build_that_links_its_products_anew_accuses_nobody() {
    let build = "#!/bin/sh\nmkdir -p target/debug/deps && cd target/debug\n\
        date +%N > deps/x-1.tmp && mv deps/x-1.tmp deps/x-1 && ln -f deps/x-1 x\ntest \"$(cat ../../model)\" = good\n";
    let good = "^^^model\ngood\n^^^end\n";
    for sandbox in SANDBOXES {
        let scene = built_by(build, "target/\n", &[REPLY, REPLY, good]);
        fs::create_dir_all(scene.at("target/debug/deps")).unwrap();
        scene.write("target/debug/deps/x-1", "old\n");
        let debug = scene.at("target/debug");
        fs::hard_link(debug.join("deps/x-1"), debug.join("x")).unwrap();
        let Some(ran) = in_sandbox(&scene, sandbox, true) else {
            continue;
        };
        assert_eq!(ran.code, Some(0), "{sandbox}: {ran}");
        assert!(!ran.err.contains("somebody changed"), "{sandbox}: {ran}");
        let names = files::entries(scene.runs().pop().unwrap().join("backup"));
        let is_left = |path: &PathBuf| path.to_string_lossy().contains("/left");
        assert!(!names.iter().any(is_left), "{sandbox}: {names:?}");
    }
}

/// Renames a folder of the tree and back, exchanges two, and says how it went.
const RENAMES: &str = r#"#!/bin/sh
cd w
echo one more >> "count.log"
python3 - <<'END' || exit 1
import ctypes, os
os.rename("dir", "other")
os.rename("other", "dir")
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, b"dir", -100, b"dir2", 2):
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
END
test "$(cat ../model)" = good
"#;

#[test]
fn a_build_that_cannot_rename_folders_in_a_view_runs_in_the_tree_from_then_on() {
    let good = "^^^model\ngood\n^^^end\n";
    for sandbox in SANDBOXES {
        let scene = built_by(RENAMES, "count.log\n", &[REPLY, good]);
        for path in ["w/dir/a", "w/dir2/b"] {
            scene.write(path, "mine\n");
        }
        let Some(ran) = in_sandbox(&scene, sandbox, true) else {
            continue;
        };
        assert_eq!(ran.code, Some(0), "{sandbox}: {ran}");
        let told = ran.err.matches("failed with EXDEV").count();
        assert!(
            told == 0 || (told == 1 && sandbox != "off"),
            "{sandbox}: {ran}"
        );
        // Once a round in the tree, whatever was tried before in a view.
        assert_eq!(scene.read("w/count.log").lines().count(), 2, "{sandbox}");
        let undone = scene.run(&["undo"]);
        assert_eq!(undone.code, Some(0), "{sandbox}: {undone}");
        assert!(scene.at("w/dir/a").exists(), "{sandbox}: {undone}");
    }
}
