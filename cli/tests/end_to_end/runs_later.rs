//! What some program runs later without being asked: no command leaves it, unless a person has allowed it; and the
//! programs do run it where nobody guards the tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use code_commit_names::{Name, RUNS_LATER};

use crate::scenes::commit::Scene;

/// Changes nothing that matters.
const REPLY: &str = "^^^new.txt\n1\n^^^end\n";
const MODES: [&str; 2] = ["auto", "off"];

/// A file that a row is about, in a folder of the project.
fn file(row: &Name) -> String {
    let name = row.pattern.replace('*', "evil");
    if row.is_folder() {
        format!("sub/{name}x")
    } else {
        format!("sub/{name}")
    }
}

/// A project whose build leaves these files.
fn scene(files: &[String]) -> Scene {
    let scene = Scene::with_replies([REPLY]);
    let lines: String = files
        .iter()
        .map(|path| format!("mkdir -p \"$(dirname {path})\" && echo x > {path}\n"))
        .collect();
    scene.write(
        "build.sh",
        format!("#!/bin/sh\nset -e\n{lines}echo x > sub/plain\n"),
    );
    scene.project.commit("a build").unwrap();
    scene
}

fn run(scene: &Scene, mode: &str, more: &[&str]) -> String {
    let server = scene.flags_in(mode);
    let ran = scene.run_keyed(&[&server[..], more].concat());
    assert_eq!(ran.code, Some(0), "{mode}: {ran}");
    ran.err.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_build_leaves_what_a_program_runs_later() {
    let files: Vec<String> = RUNS_LATER.iter().map(file).collect();
    for mode in MODES {
        let scene = scene(&files);
        let said = run(&scene, mode, &[]);
        let left: Vec<&String> = files
            .iter()
            .filter(|path| scene.at(path).exists())
            .collect();
        assert_eq!(left, [""; 0], "{mode}");
        assert!(
            scene.at("sub/plain").exists(),
            "{mode}: what is no such name stays"
        );
        assert!(said.contains("--allow-write '"), "{mode}: {said}");
    }
}

#[test]
fn a_file_of_the_project_that_a_program_runs_later_is_restored() {
    for mode in MODES {
        let scene = scene(&["sub/.envrc".to_owned()]);
        scene.write("sub/.envrc", "as it was\n");
        scene.project.commit("settings of a shell").unwrap();
        let said = run(&scene, mode, &[]);
        assert_eq!(scene.read("sub/.envrc"), "as it was\n", "{mode}");
        let hint = "direnv reads sub/.envrc later (shells that enter the folder): --allow-write 'sub/.envrc' lets it stay";
        assert!(said.contains(hint), "{mode}: {said}");
    }
}

#[test]
fn what_a_person_allows_a_build_to_leave_stays_and_a_repository_cannot_allow_it_to_itself() {
    let files = ["sub/.envrc", "sub/.github/workflows/x", "sub/conftest.py"].map(str::to_owned);
    let stays = |scene: &Scene| files.clone().map(|path| scene.at(&path).exists());
    for mode in MODES {
        let allowed = scene(&files);
        run(
            &allowed,
            mode,
            &["--allow-write", "sub/.github/", "--allow-write", ".envrc"],
        );
        assert_eq!(stays(&allowed), [true, true, false], "{mode}");
        assert_eq!(allowed.run(&["undo"]).code, Some(0));
        assert_eq!(stays(&allowed), [false; 3], "{mode}: undone");

        let config = b"[build]\nmay_write = [\"sub/\"]\n";
        let cloned = scene(&files);
        cloned.write("code-commit.toml", config);
        cloned.project.commit("a configuration").unwrap();
        let said = run(&cloned, mode, &[]);
        assert!(said.contains("build.may_write"), "{mode}: {said}");
        assert_eq!(stays(&cloned), [false; 3], "{mode}");

        let own = scene(&files);
        let folder = own.project.beside().join(".config/code-commit");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        run(&own, mode, &[]);
        assert_eq!(stays(&own), [true; 3], "{mode}");
    }
}

/// A row's pattern; the program that is started; files, of which those with `#!` can be executed; a shell line that
/// nobody would take for one that runs them. Whatever runs makes the file `ran`.
type Shown = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const SHOWN: &[Shown] = &[
    (
        ".gitattributes",
        "git",
        &[(".gitattributes", "* filter=own\n"), ("a", "a\n")],
        "git -c filter.own.clean='touch ran; cat' add a",
    ),
    (
        ".githooks/",
        "git",
        &[(".githooks/pre-commit", HOOK)],
        "git -c core.hooksPath=.githooks commit -q --allow-empty -m x",
    ),
    (
        ".husky/",
        "git",
        &[(".husky/pre-commit", HOOK)],
        "git -c core.hooksPath=.husky commit -q --allow-empty -m x",
    ),
    (
        ".cargo/config.toml",
        "cargo",
        &[
            (".cargo/config.toml", WRAPPER),
            ("wrapper", RUSTC),
            MANIFEST,
            MAIN,
        ],
        CHECK,
    ),
    (
        ".cargo/config",
        "cargo",
        &[
            (".cargo/config", WRAPPER),
            ("wrapper", RUSTC),
            MANIFEST,
            MAIN,
        ],
        CHECK,
    ),
    (
        "build.rs",
        "cargo",
        &[
            (
                "build.rs",
                "fn main() { std::fs::write(\"ran\", \"\").unwrap(); }\n",
            ),
            MANIFEST,
            MAIN,
        ],
        CHECK,
    ),
    (
        ".npmrc",
        "npm",
        &[
            (".npmrc", "script-shell=./shell\n"),
            ("shell", HOOK),
            PACKAGE,
        ],
        "npm test",
    ),
    (
        ".pnpmfile.cjs",
        "pnpm",
        &[
            (".pnpmfile.cjs", "require('fs').writeFileSync('ran', '')\n"),
            PACKAGE,
        ],
        "pnpm install --offline",
    ),
    (
        "gnumakefile",
        "make",
        &[
            ("GNUmakefile", "all:\n\ttouch ran\n"),
            ("Makefile", "all:\n"),
        ],
        "make",
    ),
    (
        "conftest.py",
        "pytest-3",
        &[
            ("conftest.py", PYTHON),
            ("test_a.py", "def test_a(): pass\n"),
        ],
        "pytest-3 -q",
    ),
    (
        ".pdbrc",
        "python3",
        &[
            (".pdbrc", "import os; os.system('touch ran')\n"),
            ("a.py", "pass\n"),
        ],
        "echo q | python3 -m pdb a.py",
    ),
    (
        "sitecustomize.py",
        "python3",
        &[("lib/sitecustomize.py", PYTHON)],
        "PYTHONPATH=lib python3 -c pass",
    ),
    (
        "usercustomize.py",
        "python3",
        &[("lib/usercustomize.py", PYTHON)],
        "PYTHONPATH=lib python3 -c pass",
    ),
    (
        "*.pth",
        "python3",
        &[("lib/evil.pth", "import os; os.system('touch ran')\n")],
        SITE,
    ),
];

const HOOK: &str = "#!/bin/sh\ntouch ran\n";
const RUSTC: &str = "#!/bin/sh\ntouch ran\nexec \"$@\"\n";
const WRAPPER: &str = "[build]\nrustc-wrapper = \"./wrapper\"\n";
const PYTHON: &str = "open('ran', 'w')\n";
const CHECK: &str = "cargo check --offline --quiet";
const SITE: &str = "mkdir -p base/lib && site=$(PYTHONUSERBASE=base python3 -m site --user-site); mkdir -p \"$site\"; mv lib/evil.pth \"$site\"; \
                    PYTHONUSERBASE=base python3 -c pass";
const MANIFEST: (&str, &str) = (
    "Cargo.toml",
    "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
);
const MAIN: (&str, &str) = ("src/main.rs", "fn main() {}\n");
const PACKAGE: (&str, &str) = (
    "package.json",
    "{\"name\": \"a\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"true\"}}\n",
);

#[test]
fn programs_run_these_names_where_nobody_guards_the_tree() {
    let path = ["CODE_COMMIT_TEST_TOOLCHAINS", "PATH"]
        .iter()
        .filter_map(std::env::var_os);
    let path =
        std::env::join_paths(path.flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>()))
            .unwrap();
    let mut shown = Vec::new();
    for (pattern, program, files, line) in SHOWN {
        assert!(
            RUNS_LATER.iter().any(|row| row.pattern == *pattern),
            "{pattern}"
        );
        let found = Command::new("which")
            .arg(program)
            .env("PATH", &path)
            .output()
            .unwrap();
        if !found.status.success() {
            eprintln!("SKIPPED: what {program} runs, because it is not installed");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in *files {
            write(&folder.path().join(path), text);
        }
        let script = format!(
            "git init -q . && git config user.name x && git config user.email x@example.com; {line}"
        );
        let ended = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", &path)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(folder.path().join("ran").exists(), "{pattern}: {ended:?}");
        shown.push(*pattern);
    }
    let others = RUNS_LATER
        .iter()
        .filter(|row| !shown.contains(&row.pattern));
    let others: Vec<String> = others
        .map(|row| format!("{} ({})", row.pattern, row.program().unwrap_or_default()))
        .collect();
    println!(
        "{} of {} names are run by their programs; not tried: {}",
        shown.len(),
        RUNS_LATER.len(),
        others.join(", ")
    );
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
