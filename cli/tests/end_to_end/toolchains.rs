//! Real projects in each sandbox: their own tests, run by `code-commit check`.
//!
//! `cargo test -p code-commit-cli --test end_to_end toolchains:: -- --nocapture` prints the table.

use std::path::Path;

use fixtures::server::Script;
use runner::{Mode, probe};

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, tool};

/// A project with tests that pass, in one toolchain.
struct Project {
    name: &'static str,
    /// Without these, the row is skipped: a program with the argument that makes it say its version.
    needs: &'static [(&'static str, &'static [&'static str])],
    /// Run in the project before the check, without a sandbox, as its user would.
    before: &'static [&'static [&'static str]],
    files: &'static [(&'static str, &'static str)],
}

const PYTEST: (&str, &[&str]) = ("/usr/bin/python3", &["-m", "pytest", "--version"]);

/// Sockets, processes, shared memory, a terminal and temporary files, as ordinary tests use them.
const ORDINARY: &str = "\
import multiprocessing, os, pathlib, socket, subprocess, sys, tempfile, threading

def test_files(tmp_path):
    (tmp_path / 'a').write_text('x')
    with tempfile.NamedTemporaryFile() as file:
        assert pathlib.Path(file.name).exists()

def test_processes():
    assert subprocess.check_output([sys.executable, '-c', 'print(1)']) == b'1\\n'

def test_pairs_of_sockets():
    one, other = socket.socketpair()
    one.send(b'x')
    assert other.recv(1) == b'x'
";
/// Not where there is no loopback and no `/dev/shm`.
const WITH_NAMESPACES: &str = "\
import multiprocessing, os, pty, socket
from multiprocessing import shared_memory

def test_loopback_by_every_name():
    for name in ['127.0.0.1', 'localhost', socket.gethostname()]:
        with socket.create_server((name, 0)) as server:
            with socket.create_connection(server.getsockname()):
                server.accept()[0].close()

def test_unix_sockets(tmp_path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / 's'))
    server.listen()
    socket.socket(socket.AF_UNIX).connect(str(tmp_path / 's'))

def test_pool():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]

def test_shared_memory():
    memory = shared_memory.SharedMemory(create=True, size=16)
    memory.close()
    memory.unlink()

def test_terminal():
    master, slave = pty.openpty()
    os.write(slave, b'x')
    assert os.read(master, 1) == b'x'

def test_a_new_file_at_the_root_of_the_tree():
    with open('report.xml', 'w') as file:
        file.write('x')
";

const PROJECTS: [Project; 9] = [
    Project {
        name: "cargo",
        needs: &[("cargo", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ncargo test -q\n"),
            ("Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
            ("src/lib.rs", "#[test]\nfn holds() {}\n"),
            ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ],
    },
    Project {
        name: "cargo, a dependency that no lock file knows",
        needs: &[("cargo", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ncargo test -q\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nb = { path = \"b\" }\n",
            ),
            ("src/lib.rs", "#[test]\nfn holds() { assert_eq!(b::one(), 1); }\n"),
            ("b/Cargo.toml", "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
            ("b/src/lib.rs", "pub fn one() -> u8 { 1 }\n"),
            // As git has it once somebody has built the project without the dependency.
            ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ],
    },
    Project {
        name: "pytest",
        needs: &[PYTEST],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\n/usr/bin/python3 -m pytest -q -p no:cacheprovider tests\n"),
            ("tests/test_ordinary.py", ORDINARY),
            ("pyproject.toml", "[project]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ],
    },
    Project {
        name: "pytest, with a loopback",
        needs: &[PYTEST],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\n/usr/bin/python3 -m pytest -q -p no:cacheprovider tests\n"),
            ("tests/test_namespaces.py", WITH_NAMESPACES),
            ("pyproject.toml", "[project]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ],
    },
    Project {
        name: "pytest, environment in the project",
        needs: &[PYTEST],
        before: &[&["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", ".venv"]],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\n.venv/bin/python -m pytest -q -p no:cacheprovider tests\n"),
            (".gitignore", "/agent-config\n/.venv\n"),
            ("tests/test_ordinary.py", ORDINARY),
            ("pyproject.toml", "[project]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ],
    },
    Project {
        name: "npm test",
        needs: &[("npm", &["--version"]), ("node", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\nnpm test\n"),
            ("package.json", r#"{ "name": "a", "version": "1.0.0", "scripts": { "test": "node --test" } }"#),
            ("test/a.test.js", "require('node:test')('holds', () => {})\n"),
        ],
    },
    Project {
        name: "Go",
        needs: &[("go", &["version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ngo vet ./...\ngo test ./...\n"),
            ("go.mod", "module a\n\ngo 1.19\n"),
            ("a.go", "package a\n\nfunc One() int { return 1 }\n"),
            ("a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) { One() }\n"),
        ],
    },
    Project {
        name: "CMake and CTest",
        needs: &[("cmake", &["--version"]), ("c++", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ncmake -S . -B build\ncmake --build build\ncd build && ctest\n"),
            (".gitignore", "/agent-config\n/build/*\n!/build/.keep\n"),
            ("build/.keep", ""),
            (
                "CMakeLists.txt",
                "cmake_minimum_required(VERSION 3.10)\nproject(a CXX)\nenable_testing()\nadd_executable(a a.cpp)\nadd_test(NAME a COMMAND a)\n",
            ),
            ("a.cpp", "#include <thread>\nint main() { std::thread([] {}).join(); }\n"),
        ],
    },
    Project {
        name: "make",
        needs: &[("make", &["--version"])],
        before: &[],
        files: &[("build.sh", "#!/bin/sh\nset -e\nmake test\n"), ("Makefile", "test:\n\ttest 1 = 1\n")],
    },
];

/// Rows that a sandbox cannot pass, with the reason.
fn cannot(name: &str, rung: &str) -> Option<&'static str> {
    (rung == "landlock" && name == "pytest, with a loopback")
        .then_some("no loopback, no sockets but pairs, no /dev/shm, nothing new at the root of the tree")
}

/// The first line with which a needed program describes itself.
fn version(program: &str, args: &[&str]) -> Option<String> {
    let mut asked = tool(program, Path::new("/"), Path::new("/nonexistent"), args);
    let output = asked.output().ok().filter(|output| output.status.success())?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    said.lines().next().map(str::to_owned)
}

fn checked(project: &Project, rung: &str) -> Ran {
    scene(project).run(&["check", "--sandbox", rung])
}

fn scene(project: &Project) -> Scene {
    let ignored = (".gitignore", "/agent-config\n/target\n");
    let own = project.files.iter().any(|(name, _)| *name == ignored.0);
    let files: Vec<_> = project.files.iter().copied().chain(Some(ignored).filter(|_| !own)).collect();
    let scene = Scene::with_files(&files, Script::new([]));
    for words in project.before {
        let [program, args @ ..] = *words else { continue };
        let done = Ran::of(&mut tool(program, scene.project.root(), scene.project.beside(), args));
        assert_eq!(done.code, Some(0), "{done}");
    }
    scene
}

fn is_installed(project: &Project) -> bool {
    project.needs.iter().all(|(program, args)| version(program, args).is_some())
}

#[test]
fn init_writes_a_build_script_that_passes_check() {
    if let Err(error) = probe(Mode::Auto, None) {
        eprintln!("SKIPPED: build scripts in a sandbox, because {error}");
        return;
    }
    for project in PROJECTS.iter().filter(|project| is_installed(project)) {
        let scene = scene(project);
        std::fs::remove_file(scene.project.root().join("build.sh")).unwrap();
        let made = scene.run(&["init"]);
        assert!(made.out.contains("build.sh: builds and tests with "), "{}: {made}", project.name);
        // Weaker sandboxes have no loopback, see below.
        let rung =
            if project.files.iter().any(|(_, text)| *text == WITH_NAMESPACES) { "off" } else { "auto" };
        let ran = scene.run(&["check", "--sandbox", rung]);
        assert_eq!(ran.code, Some(0), "{}: {ran}", project.name);
    }
}

#[test]
fn the_tests_of_ordinary_projects_pass_in_every_sandbox() {
    runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    let works = |(_, mode): &(&str, Mode)| match probe(*mode, None) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("SKIPPED: toolchains in a sandbox, because {error}");
            false
        }
    };
    let rungs: Vec<_> =
        [("namespaces", Mode::Namespaces), ("bwrap", Mode::Bwrap), ("landlock", Mode::Landlock)]
            .into_iter()
            .filter(works)
            .collect();
    let (mut table, mut faults) = (String::new(), Vec::new());
    for project in &PROJECTS {
        let versions: Option<Vec<String>> =
            project.needs.iter().map(|(program, args)| version(program, args)).collect();
        let Some(versions) = versions else {
            let names: Vec<&str> = project.needs.iter().map(|(program, _)| *program).collect();
            eprintln!("SKIPPED: {}, because one of {} is not installed", project.name, names.join(", "));
            continue;
        };
        for (rung, _) in &rungs {
            let ran = checked(project, rung);
            let cannot = cannot(project.name, rung);
            let verdict = match (ran.code, cannot) {
                (Some(0), None) => "green".to_owned(),
                (Some(1), Some(why)) => format!("red: {why}"),
                _ => {
                    faults.push(format!("{} in {rung}: {ran}", project.name));
                    format!("NOT AS EXPECTED: {:?}", ran.code)
                }
            };
            table.push_str(&format!("{:45} {rung:9} {verdict}  ({})\n", project.name, versions.join(", ")));
        }
    }
    println!("{table}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
