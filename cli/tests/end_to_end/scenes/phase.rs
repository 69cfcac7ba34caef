//! A project with phases and an agent that does as it is told.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use code_commit_fixtures::project::Project;

use crate::scenes::files;
use crate::scenes::json_schema::Published;
use crate::scenes::program::{Ran, program, tool};

/// A key that opens nothing; nothing that a run leaves may hold it.
pub(crate) const KEY: &str = "AIzaSyPhase-key-that-opens-nothing-42";

/// Speaks as Gemini CLI does. Each turn of a role sources `turns/ROLE-N.sh`, which may write files, call `answer`, or exit.
const AGENT: &str = r#"#!/bin/sh
here=$(dirname "$0")
role=$(basename "$HOME")
n=$(($(cat "$HOME/count" 2>/dev/null || echo 0) + 1))
echo "$n" > "$HOME/count"
printf '%s\n' "$@" > "$HOME/args"
echo '{"type":"init","session_id":"s-'$role-$n'","model":"gemini-test"}'
say() { echo '{"type":"message","role":"assistant","content":"'"$1"'","delta":true}'; }
result() { echo '{"type":"result","status":"success","stats":{"models":{"gemini-test":{"total_tokens":15,"input_tokens":10,"output_tokens":3,"cached":2}}}}'; }
answer() { say "$1"; result; exit 0; }
report() { mkdir -p "${role}_reports"; echo "$1" > "${role}_reports/report-$n.md"; }
fails() { printf 'SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: %s\n' "$1" > failed_specs.md; }
if [ -f "$here/turns/$role-$n.sh" ]; then . "$here/turns/$role-$n.sh"; fi
report "nothing special"
answer "Done."
"#;

/// A project, its agent, and what both are told.
pub(crate) struct Scene {
    pub(crate) project: Project,
}

impl Scene {
    /// A project with one phase; `turns` are pairs such as `("builder-1", "shell lines")`.
    pub(crate) fn new(turns: &[(&str, &str)]) -> Self {
        // Behind a sandbox each role has a `/tmp` of its own.
        let scene = Self {
            project: Project::without_git(Path::new("/var/tmp")).unwrap(),
        };
        files::write_program(&scene.at("bin/gemini"), AGENT);
        for folder in ["bin/turns", "home"] {
            fs::create_dir(scene.at(folder)).unwrap();
        }
        for (name, lines) in turns {
            fs::write(scene.at("bin/turns").join(format!("{name}.sh")), lines).unwrap();
        }
        assert_eq!(scene.run(&["init"]).code, Some(0));
        scene.write(".env", &format!("GEMINI_API_KEY={KEY}\n"));
        scene.write(
            ".abl/specs/phase1.md",
            "# Phase 1: A page\n\n- GET / → 200\n",
        );
        scene
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.project.beside().canonicalize().unwrap().join(path)
    }

    /// A path in the project.
    pub(crate) fn project(&self, path: &str) -> PathBuf {
        self.project.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        files::write(&self.project(path), text);
    }

    /// The spec of a second phase.
    pub(crate) fn add_phase(&self) {
        let spec = "# Phase 2: More\n\n- GET /more → 200\n";
        self.write(".abl/specs/phase2.md", spec);
    }

    /// A person commits in one of the repositories.
    pub(crate) fn commit(&self, folder: &str, args: &[&str]) {
        let person = ["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-q"];
        self.git(folder, &[&person[..], args].concat());
    }

    pub(crate) fn read(&self, path: &str) -> String {
        files::text(&self.project(path))
    }

    /// `code-commit phase ARGS` without a sandbox, which has tests of its own.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(&[args, &["--sandbox", "off"]].concat(), &[])
    }

    /// Every line of `--json` is one that the published schema knows.
    pub(crate) fn run_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Ran {
        let ran = self.code_commit(&[&["phase"], args].concat(), environment);
        if args.contains(&"--json") {
            let schema = Published::read("agents.schema.json");
            for line in ran.out.lines() {
                let found = schema.faults_of("phase-line", &serde_json::from_str(line).unwrap());
                assert!(found.is_empty(), "{found:?}");
            }
        }
        ran
    }

    pub(crate) fn code_commit(&self, args: &[&str], environment: &[(&str, &str)]) -> Ran {
        let top = self.at("").display().to_string();
        Ran::of(&mut self.command(args, environment)).map(|text| text.replace(&top, "[TOP]/"))
    }

    /// The program, ready to be started.
    pub(crate) fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.at("bin").display());
        program(
            self.project.root(),
            &self.at("home"),
            args,
            &[&[("PATH", path.as_str())], environment].concat(),
        )
    }

    /// `phase ARGS --json`, while it runs.
    pub(crate) fn started(&self, args: &[&str]) -> Started {
        let args = [&["phase"], args, &["--json"]].concat();
        let mut harness = self.command(&args, &[]);
        let mut child = harness
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Started {
            child,
            lines: Some(lines),
        }
    }

    /// `phase ARGS --json`, killed without warning as soon as it has printed the first line that `is_last` accepts. Gives the
    /// lines; `false` if it came to its end before.
    pub(crate) fn killed(
        &self,
        args: &[&str],
        environment: &[(&str, &str)],
        mut is_last: impl FnMut(&str) -> bool,
    ) -> (Vec<String>, bool) {
        let args = [&["phase"], args, &["--json"]].concat();
        let mut harness = self.command(&args, environment);
        let mut harness = harness
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = Vec::new();
        let mut is_killed = false;
        for line in BufReader::new(harness.stdout.take().unwrap()).lines() {
            lines.push(line.unwrap());
            if !is_killed && is_last(lines.last().unwrap()) {
                harness.kill().unwrap();
                is_killed = true;
            }
        }
        harness.wait().unwrap();
        (lines, is_killed)
    }

    /// Command lines of the processes that work in the scene's folder.
    pub(crate) fn processes(&self) -> Vec<String> {
        let top = self.at("");
        let processes = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let own = processes
            .filter(|path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&top)));
        own.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
            .collect()
    }

    /// Waits until no process works in the scene's folder.
    pub(crate) fn assert_no_process(&self, when: &str) {
        let end = Instant::now() + Duration::from_secs(10);
        while !self.processes().is_empty() {
            assert!(Instant::now() < end, "{when}: {:?}", self.processes());
            std::thread::yield_now();
        }
    }

    /// Subjects of the commits in a folder of the project, the oldest first.
    pub(crate) fn commits(&self, folder: &str) -> Vec<String> {
        self.git(folder, &["log", "--reverse", "--format=%s"])
    }

    /// The lines that git prints in a folder of the project.
    pub(crate) fn git(&self, folder: &str, args: &[&str]) -> Vec<String> {
        let git = Ran::of(&mut tool(
            "git",
            &self.project(folder),
            &self.at("home"),
            args,
        ));
        git.out.lines().map(str::to_owned).collect()
    }

    /// What the role's agent was last called with, one argument a line.
    pub(crate) fn arguments(&self, role: &str) -> String {
        self.read(&format!(".code-commit/agents/{role}/args"))
    }

    /// How many turns a role had.
    pub(crate) fn turns(&self, role: &str) -> u32 {
        let count =
            fs::read_to_string(self.project(".code-commit/agents").join(role).join("count"));
        count.map_or(0, |text| text.trim().parse().unwrap())
    }

    /// `state.json`'s status and iteration.
    pub(crate) fn state(&self) -> (String, u64) {
        let state: serde_json::Value = serde_json::from_str(&self.read(".abl/state.json")).unwrap();
        let current = |name: &str| {
            state
                .pointer(&format!("/current/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        let status = current("status").as_str().unwrap().to_owned();
        (status, current("verifier_iteration").as_u64().unwrap())
    }

    /// Every file below a folder of the project, its text with it.
    pub(crate) fn files(&self, folder: &str) -> Vec<(PathBuf, String)> {
        files::below(&self.project(folder))
            .into_iter()
            .map(|path| (path.clone(), files::text(&path)))
            .collect()
    }
}

/// A run that goes on.
pub(crate) struct Started {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Started {
    /// What it prints, to the end.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        self.lines.take().unwrap().map_while(Result::ok)
    }

    /// Its exit code, once it is over.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}
