//! Real projects in each sandbox: their own tests, run by `code-commit check`.
//!
//! `cargo test -p code-commit-cli --test end_to_end toolchains:: -- --nocapture` prints the table.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::server::Script;
use code_commit_runner::{Mode, probe};

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, search_path, tool};
use crate::scenes::size::samples;

mod projects;

use projects::{ORDINARY, PROJECTS, Project};

/// Folders with programs that are not installed in the system, as in `PATH`.
const INSTALLED: &str = "CODE_COMMIT_TEST_TOOLCHAINS";

/// The ordinary tests that fail under Landlock, each with the reason.
const NOT_UNDER_LANDLOCK: [(&str, &str); 10] = [
    ("test_host_name", "no loopback"),
    ("test_http_server_on_localhost", "no loopback"),
    ("test_loopback_with_asyncio", "no loopback"),
    ("test_manager", "no unix sockets"),
    (
        "test_new_file_at_the_root",
        "nothing new at the root of the tree",
    ),
    ("test_pool", SHARED_MEMORY),
    ("test_semaphore", SHARED_MEMORY),
    ("test_shared_memory", SHARED_MEMORY),
    ("test_terminal", "no terminals, which are the host's"),
    ("test_unix_socket", "no unix sockets"),
];
const SHARED_MEMORY: &str = "no /dev/shm, which is the host's; `--writable /dev/shm` opens it";

impl Project {
    fn is_ordinary(&self) -> bool {
        self.files.iter().any(|(_, text)| *text == ORDINARY)
    }
}

fn tried() -> impl Iterator<Item = &'static Project> {
    samples("toolchains", PROJECTS.iter().collect()).into_iter()
}

/// Where the programs of the table are looked for.
fn path() -> OsString {
    let installed = std::env::var_os(INSTALLED).unwrap_or_default();
    let system = search_path();
    std::env::join_paths(std::env::split_paths(&system).chain(std::env::split_paths(&installed)))
        .unwrap()
}

fn with_path(mut command: Command) -> Command {
    command.env("PATH", path());
    command
}

/// The tests that failed, by pytest's own summary.
fn failed(ran: &Ran) -> Vec<&str> {
    let lines = ran
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("FAILED ")?.split_once("::"));
    let mut names: Vec<&str> = lines
        .filter_map(|(_, rest)| rest.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names
}

/// Projects that may fail under Landlock, each with the words by which one knows it, and the reason.
const CANNOT: [(&str, &str, &str); 3] = [
    (
        "Maven",
        "Non-readable settings",
        "Debian's settings may hold passwords, and a file cannot be hidden, only closed",
    ),
    (
        "Gradle",
        "usable local IP",
        "it talks to itself over loopback",
    ),
    (
        "Gradle",
        "Failed to create parent directory",
        "Debian's writes to the user's own home, whatever `HOME` says",
    ),
];

/// The line with which a needed program says its version.
fn version((program, args): &(&str, &[&str])) -> Option<String> {
    let mut asked = with_path(tool(
        program,
        Path::new("/"),
        Path::new("/nonexistent"),
        args,
    ));
    let output = asked
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    said.lines()
        .find(|line| line.contains(|letter: char| letter.is_ascii_digit()))
        .map(str::to_owned)
}

/// The versions of what a project needs; none if something is missing, which is said.
fn versions(project: &Project) -> Option<String> {
    let versions: Option<Vec<String>> = project.needs.iter().map(version).collect();
    if versions.is_none() {
        let names: Vec<&str> = project.needs.iter().map(|(program, _)| *program).collect();
        eprintln!(
            "SKIPPED: {}, because one of {} is not installed",
            project.name,
            names.join(", ")
        );
    }
    versions.map(|versions| versions.join(", "))
}

fn works(mode: Mode) -> bool {
    code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    let probed = probe(mode, None);
    if let Err(error) = &probed {
        eprintln!("SKIPPED: toolchains in a sandbox, because {error}");
    }
    probed.is_ok()
}

fn check(scene: &Scene, args: &[&str]) -> Ran {
    scene.ran(&mut with_path(
        scene.command(&[&["check"], args].concat(), &[]),
    ))
}

fn scene(project: &Project) -> Scene {
    let ignored = (".gitignore", "/agent-config\n/target\n");
    let own = project.files.iter().any(|(name, _)| *name == ignored.0);
    let files: Vec<_> = project
        .files
        .iter()
        .copied()
        .chain(Some(ignored).filter(|_| !own))
        .collect();
    let scene = Scene::with_files(&files, Script::new([]));
    for words in project.before {
        let [program, args @ ..] = *words else {
            continue;
        };
        let root = scene.project.root();
        let done = Ran::of(&mut with_path(tool(
            program,
            root,
            scene.project.beside(),
            args,
        )));
        assert_eq!(done.code, Some(0), "{done}");
    }
    scene
}

#[test]
fn init_writes_a_build_script_that_passes_check() {
    if !works(Mode::Auto) {
        return;
    }
    for project in tried().filter(|project| versions(project).is_some()) {
        let scene = scene(project);
        std::fs::remove_file(scene.at("build.sh")).unwrap();
        let made = scene.run(&["init"]);
        assert!(
            made.out.contains("build.sh: builds and tests with "),
            "{}: {made}",
            project.name
        );
        let is_possible = !project.is_ordinary() || works(Mode::Namespaces);
        let ran = check(
            &scene,
            &["--sandbox", if is_possible { "auto" } else { "off" }],
        );
        assert_eq!(ran.code, Some(0), "{}: {ran}", project.name);
    }
}

/// What came of a check: the words for the table, or a fault.
fn verdict(project: &Project, backend: &str, ran: &Ran) -> Result<String, String> {
    let is_weak = backend == "landlock";
    let cannot = CANNOT
        .iter()
        .find(|(name, sign, _)| is_weak && *name == project.name && ran.out.contains(sign));
    let not: Vec<&str> = NOT_UNDER_LANDLOCK
        .iter()
        .filter(|_| is_weak && project.is_ordinary())
        .map(|(name, _)| *name)
        .collect();
    match (ran.code, cannot) {
        (Some(1), Some((.., why))) => Ok(format!("red: {why}")),
        (Some(0), _) if not.is_empty() => Ok("green".to_owned()),
        (Some(1), None) if !not.is_empty() && failed(ran) == not => {
            let all = ORDINARY.matches("\ndef test_").count();
            Ok(format!(
                "{} of {all} tests pass, not {}",
                all - not.len(),
                not.join(", ")
            ))
        }
        _ => Err(format!("{} in {backend}: {ran}", project.name)),
    }
}

#[test]
fn the_tests_of_ordinary_projects_pass_in_every_sandbox() {
    let backends: Vec<_> = [
        ("namespaces", Mode::Namespaces),
        ("landlock", Mode::Landlock),
    ]
    .into_iter()
    .filter(|(_, mode)| works(*mode))
    .collect();
    let mut faults = Vec::new();
    for project in tried() {
        let Some(versions) = versions(project) else {
            continue;
        };
        for (backend, _) in &backends {
            let ran = check(&scene(project), &["--sandbox", backend]);
            let verdict = verdict(project, backend, &ran).unwrap_or_else(|fault| {
                faults.push(fault);
                format!("NOT AS EXPECTED: {:?}", ran.code)
            });
            println!("{:45} {backend:10} ({versions})  {verdict}", project.name);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn under_landlock_shared_memory_works_where_it_is_opened() {
    let ordinary = PROJECTS
        .iter()
        .find(|project| project.is_ordinary())
        .unwrap();
    if versions(ordinary).is_none() || !works(Mode::Landlock) {
        return;
    }
    let ran = check(
        &scene(ordinary),
        &["--sandbox", "landlock", "--writable", "/dev/shm"],
    );
    let expected = NOT_UNDER_LANDLOCK
        .iter()
        .filter(|(_, why)| *why != SHARED_MEMORY)
        .map(|(name, _)| *name);
    assert_eq!(failed(&ran), expected.collect::<Vec<_>>(), "{ran}");
}
