//! What builds do to a tree, and what becomes of it: wherever a check was killed, the old tree is made.
//!
//! `ACCOUNT_KILLS=300` tries more, `ACCOUNT_SEED` others.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use code_commit_fixtures::server::{Hang, Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::{Dice, chosen, is_killed, places, quietly, strace_works, traced};
use crate::scenes::program::where_mounted;

/// Kills without `ACCOUNT_KILLS`.
const KILLS: usize = 6;

/// Each changes one file and makes or changes another.
const REPLIES: [&str; 2] = [
    "^^^model\nnew\n^^^end\n^^^m/model\nnew\n^^^end\n",
    "^^^model\nnewer\n^^^end\n^^^m/other\nnew\n^^^end\n",
];

const PATHS: [&str; 13] = [
    "a",
    "b",
    "d/a",
    "d/b",
    "d/e/a",
    "d/e",
    "d",
    "f/x",
    "f",
    "o/product.o",
    "model",
    "m/model",
    "m",
];
/// Only builds touch the rest, so that the reply can be applied.
const IN_ANY_TREE: usize = 10;

/// One line of a build script. Some fail, as they would in any script without `set -e`.
fn deed(dice: &mut Dice, paths: usize) -> String {
    let path = PATHS[dice.below(paths)];
    let other = PATHS[dice.below(paths)];
    let number = dice.below(1000);
    match dice.below(12) {
        0 | 1 => format!("mkdir -p \"$(dirname {path})\"; echo {number} > {path}"),
        2 => format!("rm -rf {path}"),
        3 => format!("chmod {} {path}", ["755", "600", "444"][number % 3]),
        4 => format!("mv {path} {other}"),
        5 => format!("ln -s /etc/hostname {path}"),
        6 => format!("rm -f {path}; mkdir -p {path}"),
        7 => format!("echo '*' > {path}/.gitignore"),
        8 => format!("git init -q {path}"),
        9 => format!("truncate -s 1M {path}"),
        10 => format!("ln {path} {other}"),
        _ => {
            format!("rm -rf {path}; mkdir {path}; echo {number} > {path}/anew; mkfifo {path}/fifo")
        }
    }
}

fn deeds(dice: &mut Dice, paths: usize) -> String {
    let count = 1 + dice.below(10);
    (0..count).map(|_| deed(dice, paths) + "\n").collect()
}

/// A project with a random tree, a part of it committed, and a random build, which fails.
fn scene(dice: &mut Dice) -> Scene {
    let build = format!(
        "#!/bin/sh\nexec 2>/dev/null\n{}exit 1\n",
        deeds(dice, PATHS.len())
    );
    let files = [
        (".gitignore", "/agent-config\n*.o\n"),
        ("build.sh", &*build),
        ("a", "a\n"),
        ("d/e/a", "e\n"),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new(REPLIES.map(Step::text)));
    scene
        .project
        .write("agent-config/query.txt", b"change a\n")
        .unwrap();
    let makes = deeds(dice, IN_ANY_TREE)
        .replace("/.gitignore", "/x")
        .replace("git init -q", "mkdir -p");
    let mut maker = Command::new("sh");
    maker
        .args(["-c", &format!("exec 2>/dev/null\n{makes}")])
        .current_dir(scene.project.root());
    assert!(maker.status().unwrap().code().is_some());
    scene
}

type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Everything but folders, which git does not track, and what is ignored.
fn tree(root: &Path) -> Tree {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let below = path.strip_prefix(root).unwrap().to_owned();
            let is_ignored = path.extension().is_some_and(|end| end == "o");
            if below == Path::new(".git") || below == Path::new("agent-config") || is_ignored {
                continue;
            }
            if stat.is_dir() {
                todo.push(path);
                continue;
            }
            let content = if stat.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if stat.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(below, (stat.permissions().mode(), content));
        }
    }
    found
}

fn command(scene: &Scene, sandbox: &str) -> Command {
    let model = [
        "--model",
        "gemini-test",
        "--base-url",
        scene.server.origin(),
    ];
    scene.keyed(
        &[&model[..], &["--sandbox", sandbox, "--rounds", "2"]].concat(),
        &[],
    )
}

fn check(scene: &Scene, sandbox: &str) -> Command {
    scene.command(&["check", "--sandbox", sandbox], &[])
}

/// A scene whose check was killed at one of its system calls, the tree before it, and the place.
fn killed(seed: usize, sandbox: &str) -> (Scene, Tree, String) {
    let mut dice = Dice::of(seed);
    let first = scene(&mut dice);
    let log = first.project.beside().join("strace");
    let places = places(&log, &check(&first, sandbox));
    let (call, count) = &places[dice.below(places.len())];
    let scene = scene(&mut Dice::of(seed));
    let before = tree(scene.project.root());
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let killed = is_killed(quietly(&mut traced(
        &log,
        &check(&scene, sandbox),
        &["-e", &inject],
    )));
    (
        scene,
        before,
        format!("killed at {call} {count} ({killed})"),
    )
}

/// A build that leaves a product that git ignores, and changes a file.
fn with_product() -> Scene {
    let build = "#!/bin/sh\nhead -c 5000 /dev/zero > product.o\necho formatted > a\n";
    let files = [
        (".gitignore", "/agent-config\n*.o\n"),
        ("build.sh", build),
        ("a", "a\n"),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text(REPLIES[0])]));
    scene
        .project
        .write("agent-config/query.txt", b"change a\n")
        .unwrap();
    scene
}

#[test]
fn what_a_build_in_a_view_leaves_in_ignored_files_comes_into_the_tree_and_is_counted() {
    let scene = with_product();
    let ran = scene.ran(command(&scene, "auto").arg("--verbose"));
    if !ran.err.contains("sandbox: namespaces") {
        eprintln!("SKIPPED: there is no view without namespaces: {ran}");
        return;
    }
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(scene.project.read("product.o").unwrap().len(), 5000);
    assert!(
        ran.err.contains("the build wrote 5.0 kB of ignored files"),
        "{ran}"
    );
    assert!(
        scene
            .recorded("events.jsonl")
            .contains("\"ignored_bytes\":5000")
    );
    assert!(
        !scene.project.root().join(".git/code-commit/view").exists(),
        "the layer is gone"
    );
}

/// The kernel does not show one file system through another.
#[test]
fn a_tree_with_another_mount_below_it_is_built_without_a_view_and_accounted_for() {
    let scene = with_product();
    let mount =
        "mkdir \"$0/mounted\" && mount -t tmpfs none \"$0/mounted\" || exit 99; exec \"$@\"";
    let Some(ran) = where_mounted(mount, scene.project.root(), &command(&scene, "auto")) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.out.contains("M a +1 −1 (by the build)"), "{ran}");
    assert!(
        !scene.recorded("events.jsonl").contains("ignored_bytes"),
        "its size is unknown"
    );
}
