//! A project, a server and the program, with an environment built from nothing.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fixtures::demo;
use fixtures::project::Project;
use fixtures::server::{Script, Server, Step};

/// A key that opens nothing; no file that a run leaves may hold it.
pub const KEY: &str = "AIzaSyE2E-key-that-opens-nothing-77";

/// A project with a model behind it.
pub struct Scene {
    pub project: Project,
    pub server: Server,
}

/// What a run of the program printed.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Exit code, standard output, standard error, as a snapshot shows them.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("signal".to_owned(), |code| code.to_string());
        write!(f, "exit {code}\n--- out\n{}--- err\n{}", self.out, self.err)
    }
}

impl Scene {
    /// The demo's project, its roll-up made, and a model that gives these replies one after another.
    pub fn with_replies<'t>(replies: impl IntoIterator<Item = &'t str>) -> Self {
        Self::new(&demo::FILES, Script::new(replies.into_iter().map(Step::text)))
    }

    pub fn new(files: &[(&str, &str)], script: Script) -> Self {
        let project = Project::with(files).unwrap();
        let scene = Self { project, server: Server::start(script).unwrap() };
        assert_eq!(scene.run(&["rollup"]).code, Some(0));
        scene
    }

    /// The default loop with this scene's server, without a wall, which has tests of its own.
    pub fn commit(&self, more: &[&str]) -> Ran {
        let mut args = vec!["--base-url", self.server.origin(), "--sandbox", "off", "--model", "gemini-test"];
        args.extend(more);
        self.run_with(&args, &[("GEMINI_API_KEY", KEY)])
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    pub fn run_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Ran {
        let done = self.command(args, environment).output().unwrap();
        let text = |bytes: &[u8]| self.without_names(&String::from_utf8_lossy(bytes));
        Ran { code: done.status.code(), out: text(&done.stdout), err: text(&done.stderr) }
    }

    /// The program in this project's root, with nothing of the caller's environment but PATH.
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_code-commit"));
        command
            .args(args)
            .current_dir(self.project.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.project.beside())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::null());
        command
    }

    /// The run folders, oldest first.
    pub fn runs(&self) -> Vec<PathBuf> {
        let logs = self.project.root().join("agent-config/logs");
        let mut runs: Vec<PathBuf> = std::fs::read_dir(logs)
            .map(|all| all.map(|one| one.unwrap().path()).collect())
            .unwrap_or_default();
        runs.sort();
        runs
    }

    /// Name and content of every file below the newest run folder.
    pub fn record(&self) -> Vec<(String, String)> {
        let folder = self.runs().pop().unwrap();
        let mut files = Vec::new();
        collect(&folder, &folder, &mut files);
        files.sort();
        files
    }

    /// One file of the newest run.
    pub fn recorded(&self, name: &str) -> String {
        self.record()
            .into_iter()
            .find(|(file, _)| file == name)
            .map_or_else(|| panic!("the run has no {name}"), |(_, text)| text)
    }

    /// Messages of this code in the newest run's summary.
    pub fn warnings(&self, code: &str) -> Vec<String> {
        let summary: serde_json::Value = serde_json::from_str(&self.recorded("summary.json")).unwrap();
        let all = summary.get("warnings").and_then(|all| all.as_array()).cloned().unwrap_or_default();
        let text = |problem: &serde_json::Value, key: &str| problem.get(key)?.as_str().map(str::to_owned);
        let of_code = all.iter().filter(|problem| text(problem, "code").as_deref() == Some(code));
        of_code.map(|problem| text(problem, "message").unwrap()).collect()
    }

    /// Times, ports and temporary paths replaced, so that a snapshot can hold the rest.
    fn without_names(&self, text: &str) -> String {
        let root = self.project.root().display().to_string();
        let text = text.replace(&root, "[ROOT]").replace(self.server.origin(), "[SERVER]");
        let mut settings = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            settings.push_str(&steady(line));
        }
        settings
    }
}

/// `0.1 s` → `[TIME]`, `2026-11-21-09-30-00` → `[STAMP]`.
fn steady(line: &str) -> String {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !(c.is_ascii_digit() || ".-".contains(c))).unwrap_or(number.len());
        let (number, behind) = number.split_at(end);
        words.push(before.to_owned());
        if number.trim_end_matches('-').len() == "2026-11-21-09-30-00".len() && number.starts_with("20") {
            words.push("[STAMP]".to_owned());
            words.push(if number.ends_with('-') { "-".to_owned() } else { String::new() });
            rest = behind;
        } else if let Some(behind) = behind.strip_prefix(" s").filter(|_| !number.ends_with('.')) {
            words.push("[TIME]".to_owned());
            rest = behind;
        } else {
            words.push(number.to_owned());
            rest = behind;
        }
    }
    words.push(rest.to_owned());
    words.concat()
}

fn collect(base: &std::path::Path, folder: &std::path::Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(base, &path, files);
        } else {
            let name = path.strip_prefix(base).unwrap().display().to_string();
            files.push((name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()));
        }
    }
}
