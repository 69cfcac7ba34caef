//! Files of the user that a build touches or replaces, when the harness is killed, or when its disk is full, while it
//! brings them in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use code_commit_fixtures::server::{Script, Step};

use crate::disk_errors::injected;
use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::{every, is_killed, places, quietly, strace_works, traced};
use crate::scenes::program::{Ran, below};

const REPLY: &str = "^^^model\nnew\n^^^end\n";
/// What the user has, and what it may be after the build.
const FILES: [(&str, &[&str]); 4] = [
    ("notes.txt", &["mine\n"]),
    ("notes.o", &["mine\n"]),
    ("a.txt", &["mine\n", "built\n"]),
    ("a.o", &["mine\n", "built\n"]),
];
const BUILD: &str = "#!/bin/sh\ntouch notes.txt notes.o\necho built > a.txt\necho built > a.o\nmkdir -p made && echo > made/x\n";

/// A project with files that git does not know, and others that it ignores.
fn scene() -> Scene {
    let files = [
        (".gitignore", "/agent-config\n*.o\n"),
        ("build.sh", BUILD),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text(REPLY)]));
    scene
        .project
        .write("agent-config/query.txt", b"change the model\n")
        .unwrap();
    for (path, texts) in FILES {
        scene.project.write(path, texts[0].as_bytes()).unwrap();
    }
    scene
}

fn args(scene: &Scene) -> Vec<String> {
    [
        "--model",
        "gemini-test",
        "--base-url",
        scene.server.origin(),
        "--stream=false",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn command(scene: &Scene) -> Command {
    let args = args(scene);
    scene.keyed(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}

/// Whole, and not one of them gone.
fn all_are_whole(scene: &Scene, case: &str) {
    for (path, texts) in FILES {
        let now = scene
            .project
            .read(path)
            .unwrap_or_else(|_| "(gone)".to_owned());
        assert!(texts.contains(&&*now), "{path} is {now:?}: {case}");
    }
}

/// Where the program changes names in folders.
fn renames(scene: &Scene) -> Vec<(String, usize)> {
    let log = scene.project.beside().join("strace");
    let all = places(&log, &command(scene));
    all.into_iter()
        .filter(|(call, _)| call.starts_with("rename") || call.starts_with("unlink"))
        .collect()
}

#[test]
fn a_touched_file_survives_a_kill() {
    if !strace_works() {
        return;
    }
    for (call, count) in renames(&scene()).into_iter().step_by(every()) {
        let scene = scene();
        let inject = format!("inject={call}:signal=KILL:when={count}");
        let log = scene.project.beside().join("strace");
        let case = format!("killed at {call} {count}");
        if !is_killed(quietly(&mut traced(
            &log,
            &command(&scene),
            &["-e", &inject],
        ))) {
            continue;
        }
        all_are_whole(&scene, &case);
        let resumed = scene.run_keyed(&["resume"]);
        all_are_whole(&scene, &format!("{case}, then resumed: {resumed}"));
    }
}

#[test]
fn a_touched_file_survives_a_disk_without_room() {
    let renames = renames(&scene())
        .into_iter()
        .filter(|(call, _)| call.starts_with("rename"));
    for (call, count) in renames.step_by(every()) {
        let scene = scene();
        let case = format!("ENOSPC at {call} {count}");
        let args = args(&scene);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let Some(ran) = injected(&scene, &format!("{call}:error=ENOSPC:when={count}"), &args)
        else {
            return;
        };
        all_are_whole(&scene, &format!("{case}: {}", ran.words));
        let resumed = scene.run_keyed(&["resume"]);
        all_are_whole(&scene, &format!("{case}, then resumed: {resumed}"));
    }
    let scene = scene();
    let ran = scene.ran(&mut command(&scene));
    assert_eq!(
        (
            ran.code,
            fs::metadata(scene.project.root().join("made/x")).is_ok()
        ),
        (Some(0), true),
        "{ran}"
    );
}

/// A build that waits until somebody has saved files while it runs. A view may not show that they are saved.
const WAITS: &str = "#!/bin/sh
echo built > a.txt
echo > d/begun.o
n=0
until [ -e d/saved.o ] || [ $n -gt 100000 ]; do n=$((n + 1)); done
exit 1
";

#[test]
fn what_a_person_saves_while_a_check_runs_survives_it() {
    for sandbox in ["off", "landlock", "auto"] {
        let files = [
            (".gitignore", "/agent-config\n*.o\n"),
            ("build.sh", WAITS),
            ("a.txt", "old\n"),
            ("b.txt", "old\n"),
        ];
        let scene = Scene::with_files(&files, Script::new([]));
        let root = scene.project.root().to_owned();
        let mut check = scene.command(&["check", "--sandbox", sandbox], &[]);
        let log = fs::File::create(scene.project.beside().join("said")).unwrap();
        let mut check = check.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        // In a view the build cannot be watched: then the check ends by itself.
        let view = root.join(".git/code-commit/view/upper");
        let has_begun = |folder: &Path| folder.join("d/begun.o").exists();
        while !has_begun(&root) && !has_begun(&view) && check.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let theirs = ["a.txt", "d/b.txt", "new/notes.txt"];
        for path in theirs {
            scene.project.write(path, b"theirs\n").unwrap();
        }
        fs::write(root.join("d/saved.o"), "").unwrap();
        let code = check.wait().unwrap().code();
        let said = fs::read_to_string(scene.project.beside().join("said")).unwrap();
        if code == Some(3) && said.contains("does not work here") {
            eprintln!("SKIPPED: {sandbox} does not work here");
            continue;
        }
        assert_eq!(code, Some(1), "{sandbox}: {said}");
        // The next command clears up after a check, and leaves what it has kept.
        assert_eq!(scene.run(&["undo"]).code, Some(7));
        let named = said
            .split_whitespace()
            .find(|word| word.ends_with("-check;"))
            .map(|word| word.trim_end_matches(';'));
        let kept = named.map(files::entries).unwrap_or_default();
        for path in theirs {
            let mut places = [root.clone()]
                .into_iter()
                .chain(kept.iter().cloned())
                .map(|place| place.join(path));
            let is_theirs =
                |place: PathBuf| fs::read_to_string(place).is_ok_and(|text| text == "theirs\n");
            assert!(places.any(is_theirs), "{path} is lost, {sandbox}: {said}");
        }
    }
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
    scene
        .project
        .write("agent-config/query.txt", b"change the model\n")
        .unwrap();
    let big = scene.project.root().join("big.bin");
    let len = 128 << 20;
    fs::File::create(&big).unwrap().set_len(len).unwrap();
    let limited = |command: &Command| {
        let limit = ["sh", "-c", "ulimit -v 170000 && exec \"$@\"", "sh"];
        Ran::of(&mut below(limit, command))
    };
    let ran = limited(&command(&scene));
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.out.contains("M big.bin"), "{ran}");
    let undone = limited(&scene.command(&["undo"], &[]));
    assert_eq!(
        (undone.code, fs::metadata(&big).unwrap().len()),
        (Some(0), len),
        "{undone}"
    );
}
