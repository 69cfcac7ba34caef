//! A disk without room.

#![expect(clippy::disallowed_methods, reason = "a shell mounts a small disk for the program")]

use std::process::{Command, Stdio};

use fixtures::demo::{FILES, MENDS_IT};
use fixtures::server::{Script, Step};

use super::{neutral, proper};
use crate::scene::{KEY, Scene, check};

/// Mounts a small disk over `$1`, copies the project `$2` onto it, leaves `$3` pages of it free, and runs the rest there.
const ON_A_SMALL_DISK: &str = r#"
set -eu
small=$1 project=$2 pages=$3
shift 3
mount -t tmpfs -o size=1m tmpfs "$small"
cp -a "$project/." "$small"
cd "$small"
head -c 1000000 /dev/zero > .git/filler 2> /dev/null || :
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
const PAGES: [u32; 9] = [0, 1, 2, 4, 6, 8, 12, 16, 32];

/// How the program ended, what it said, and what it left.
struct Ran {
    code: i32,
    words: String,
    /// Names of the run folders.
    runs: String,
    greet: String,
}

#[test]
fn a_full_disk_is_named_and_leaves_a_file_as_it_was_or_whole() {
    let probe = ["--mount", "--map-root-user", "true"];
    let may_mount = Command::new("unshare").args(probe).stderr(Stdio::null()).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED a_full_disk_is_named: no mount can be had here (unshare --mount)");
        return;
    }
    let new =
        MENDS_IT.split("^^^src/greet.sh\n").nth(1).and_then(|rest| rest.split("^^^end").next()).unwrap();
    let old = FILES.iter().find(|(path, _)| *path == "src/greet.sh").unwrap().1;
    let (mut refused, mut not_begun) = (0, 0);
    for pages in PAGES {
        let scene = Scene::new(Script::new([Step::text(MENDS_IT)]));
        let Ran { code, words, runs, greet } = on_a_small_disk(&scene, pages);
        assert!(greet == old || greet == new, "{pages} pages left half a file: {greet}");
        if code != 0 {
            proper("a full disk", code, &words);
            assert!(words.contains("No space left on device"), "{pages} pages: exit {code}, {words}");
            refused += 1;
        }
        // A run that has begun can go on; of one that could not begin nothing is left.
        assert_eq!(code == 70, words.contains("go on with: code-commit resume"), "{pages} pages: {words}");
        if code == 3 {
            assert!(runs.is_empty() && scene.server.requests().is_empty(), "{pages} pages: {runs}");
            assert!(
                words.contains("help: see that the folder is yours and that the disk has room"),
                "{words}"
            );
            not_begun +=
                usize::from(["begin the record", "keep the list"].iter().any(|what| words.contains(what)));
        }
        if pages == 0 {
            check("errors_disk_full", &scene, &format!("exit {code}\n{}", neutral(&words, &scene)));
        }
    }
    assert!(refused > 2 && not_begun > 1, "the disk was never full");
}

fn on_a_small_disk(scene: &Scene, pages: u32) -> Ran {
    let small = scene.project.beside().join("small");
    std::fs::create_dir(&small).unwrap();
    let done = Command::new("unshare")
        .args(["--mount", "--map-root-user", "/bin/sh", "-c", ON_A_SMALL_DISK, "sh"])
        .args([&small, scene.project.root()])
        .arg(pages.to_string())
        .arg(env!("CARGO_BIN_EXE_code-commit"))
        .args(scene.flags())
        .env("GEMINI_API_KEY", KEY)
        .env("HOME", scene.project.beside())
        .output()
        .unwrap();
    let (out, words) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(out.contains("exit "), "{words}");
    let (rest, code) = out.trim_end().rsplit_once("exit ").unwrap();
    let (runs, greet) = rest.strip_prefix("runs ").unwrap().split_once('\n').unwrap();
    let (runs, greet) = (runs.to_owned(), greet.to_owned());
    Ran { code: code.parse().unwrap(), words: words.into_owned(), runs, greet }
}
