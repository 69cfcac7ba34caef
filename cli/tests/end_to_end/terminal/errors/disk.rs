//! A disk without room.

use std::process::{Command, Stdio};

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use super::proper;
use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, must_have, surrounded};
use crate::terminal::check;

/// Mounts a small disk over `$1`, copies the project `$2` onto it, leaves `$3` pages of it free, and runs the rest there.
const ON_A_SMALL_DISK: &str = r#"
set -eu
small=$1 project=$2 pages=$3
shift 3
mount -t tmpfs -o size=8m tmpfs "$small"
cp -a "$project/." "$small"
cd "$small"
head -c 8m /dev/zero > .git/filler 2> /dev/null || :
truncate -s "-$((pages * 4096))" .git/filler
set +e
"$@" > /dev/null
code=$?
rm .git/filler
echo "runs $(ls agent-config/logs 2> /dev/null)"
cat src/greet.sh
echo "exit $code"
"#;

/// From no room at all to room for everything.
const PAGES: [u32; 9] = [0, 1, 2, 4, 8, 32, 512, 530, 1024];

/// How the program ended, what it said, and what it left.
struct Left {
    code: i32,
    words: String,
    /// Names of the run folders.
    runs: String,
    greet: String,
}

#[test]
fn a_full_disk_is_named_and_leaves_a_file_as_it_was_or_whole() {
    if !may_mount() {
        eprintln!("SKIPPED a_full_disk_is_named: no mount can be had here (unshare --mount)");
        return;
    }
    let new = MENDS_IT
        .split("^^^src/greet.sh\n")
        .nth(1)
        .and_then(|rest| rest.split("^^^end").next())
        .unwrap();
    let old = FILES
        .iter()
        .find(|(path, _)| *path == "src/greet.sh")
        .unwrap()
        .1;
    let (mut refused, mut not_begun) = (0, 0);
    for pages in PAGES {
        let scene = Scene::new(Script::new([Step::text(MENDS_IT)]));
        let Left {
            code,
            words,
            runs,
            greet,
        } = on_a_small_disk(&scene, pages);
        assert!(
            greet == old || greet == new,
            "{pages} pages left half a file: {greet}"
        );
        if code != 0 {
            proper("a full disk", code, &words);
            assert!(
                words.contains("No space left on device"),
                "{pages} pages: exit {code}, {words}"
            );
            refused += 1;
        }
        // A run that has begun can go on; of one that could not begin nothing is left.
        assert_eq!(
            code == 70,
            words.contains("continue with: code-commit resume"),
            "{pages} pages: {words}"
        );
        if code == 3 {
            assert!(
                runs.is_empty() && scene.server.requests().is_empty(),
                "{pages} pages: {runs}"
            );
            must_have(
                &words,
                "help: make sure that you own the folder and that the disk has space",
            );
            not_begun += usize::from(
                ["begin the record", "keep the list"]
                    .iter()
                    .any(|what| words.contains(what)),
            );
        }
        if pages == 0 {
            check(
                "errors_disk_full",
                &scene,
                &format!("exit {code}\n{}", scene.without_places(&words)),
            );
        }
    }
    assert!(refused > 2 && not_begun > 1, "the disk was never full");
}

/// Starts one run twice, the second time on a disk with room; then what git sees.
const TWICE: &str = r#"
"$@"
: > .git/filler
"$@"
echo "second $?" >&2
git status --porcelain >&2
"#;

#[test]
fn the_record_of_implement_is_hidden_from_git_also_after_a_start_on_a_full_disk() {
    if !may_mount() {
        eprintln!(
            "SKIPPED the_record_of_implement_is_hidden: no mount can be had here (unshare --mount)"
        );
        return;
    }
    for pages in 0..4 {
        let scene = Scene::new(Script::new([Step::text(MENDS_IT)]));
        scene.system_prompt();
        let implement = [
            &["/bin/sh", "-c", TWICE, "sh", PROGRAM, "implement"][..],
            &scene.flags(),
        ]
        .concat();
        let (_, words) = there(&scene, pages, &implement);
        assert!(
            words.contains("No space left on device") && words.contains("second 0\n"),
            "{pages}: {words}"
        );
        assert!(
            words.contains("?? README.md\n") && !words.contains("?? logs"),
            "{pages}: {words}"
        );
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_code-commit");

fn may_mount() -> bool {
    let probe = ["--mount", "--map-root-user", "true"];
    let probed = Command::new("unshare")
        .args(probe)
        .stderr(Stdio::null())
        .status();
    probed.is_ok_and(|status| status.success())
}

fn on_a_small_disk(scene: &Scene, pages: u32) -> Left {
    let (out, words) = there(scene, pages, &[&[PROGRAM][..], &scene.flags()].concat());
    let (rest, code) = out.trim_end().rsplit_once("exit ").unwrap();
    let (runs, greet) = rest
        .strip_prefix("runs ")
        .unwrap()
        .split_once('\n')
        .unwrap();
    let (runs, greet) = (runs.to_owned(), greet.to_owned());
    Left {
        code: code.parse().unwrap(),
        words,
        runs,
        greet,
    }
}

/// What is printed where a program runs there, on standard output and on standard error.
fn there(scene: &Scene, pages: u32, argv: &[&str]) -> (String, String) {
    let small = scene.beside("small");
    std::fs::create_dir(&small).unwrap();
    let mut there = Command::new("unshare");
    there
        .args([
            "--mount",
            "--map-root-user",
            "/bin/sh",
            "-c",
            ON_A_SMALL_DISK,
            "sh",
        ])
        .args([&small, scene.project.root()])
        .arg(pages.to_string())
        .args(argv);
    surrounded(&mut there, &scene.keyed(&[], &[]));
    let Ran {
        out, err: words, ..
    } = Ran::of(&mut there);
    assert!(out.contains("exit "), "{words}");
    (out, words)
}

/// The run, and once there is room whatever there is to go on with.
const THEN_GONE_ON_WITH: &str = r#"
"$@"
echo "first $?" >&2
: > .git/filler
"$1" resume
echo "second $?" >&2
"#;

#[test]
fn an_answer_that_was_paid_for_is_kept_however_full_the_disk_is() {
    if !may_mount() {
        eprintln!(
            "SKIPPED an_answer_that_was_paid_for: no mount can be had here (unshare --mount)"
        );
        return;
    }
    let long = format!(
        "^^^long.txt\n{}^^^end\n{MENDS_IT}",
        "a line of many\n".repeat(24_000)
    );
    let mut asked = 0;
    // From 32 KiB on, and around what an answer takes.
    for pages in [8, 16, 40, 80, 160, 300, 520, 560, 700, 1000] {
        let scene = Scene::new(Script::new([Step::text(&long)]));
        let run = [
            &["/bin/sh", "-c", THEN_GONE_ON_WITH, "sh", PROGRAM][..],
            &scene.flags(),
        ]
        .concat();
        let (_, words) = there(&scene, pages, &run);
        let requests = scene.calls();
        if requests == 0 {
            assert!(
                words.contains("No space left on device"),
                "{pages}: {words}"
            );
            assert!(
                words.contains("first 3\n") || words.contains("first 70\n"),
                "{pages}: {words}"
            );
            continue;
        }
        asked += 1;
        let is_done = words.contains("first 0\n") || words.contains("second 0\n");
        assert!(
            is_done && requests == 1,
            "{pages} pages, {requests} requests: {words}"
        );
    }
    assert!(asked > 1, "the disk was always full");
}
