//! A repository, an order, a service and the program.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::{Value, json};

use crate::order::schemas::{check_folder, check_printed};
use crate::scenes::commit::{self, texts};
use crate::scenes::files;
use crate::scenes::program::{Ran, program, start_quietly};

/// A key that opens nothing; no file that a run leaves may hold it.
pub const KEY: &str = "sk-order-key-that-opens-nothing-88";
/// SHA-256 of no bytes.
pub const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A project whose verification is a script of its own, and whose acceptance test wants a comma.
pub const FILES: [(&str, &str); 5] = [
    (".gitignore", "/ignored/\n/.env.local\n"),
    (
        "scripts/verify.sh",
        "#!/bin/sh\nset -eu\nsh -n src/greet.sh\necho verified\n",
    ),
    ("src/greet.sh", "#!/bin/sh\necho hello $1\n"),
    ("src/other.txt", "other\n"),
    (
        "tests/run.sh",
        "#!/bin/sh\nout=$(sh src/greet.sh you)\ntest \"$out\" = 'hello, you' || { echo \"got: $out\" >&2; exit 3; }\n",
    ),
];
/// What makes the acceptance test pass.
pub const GOOD: &str = "#!/bin/sh\necho \"hello, $1\"\n";
/// What passes the verification only.
pub const BAD: &str = "#!/bin/sh\necho \"hello; $1\"\n";
/// What does not even parse.
pub const BROKEN: &str = "#!/bin/sh\nif\n";

/// The beginning of a shell script that fails before `src/greet.sh` is changed.
pub const AFTER: &str = "grep -q \"[,;]\" src/greet.sh || exit 1; ";

/// Shares what it does with files and git with the scene of the default loop.
pub struct Scene(pub commit::Scene);

impl Deref for Scene {
    type Target = commit::Scene;

    fn deref(&self) -> &commit::Scene {
        &self.0
    }
}

/// [`FILES`] without a verification of their own.
pub fn unverified() -> Vec<(&'static str, &'static str)> {
    let mut files = FILES.to_vec();
    files.retain(|(path, _)| *path != "scripts/verify.sh");
    files
}

/// The SHA-256 of a text.
pub fn sha256(text: &str) -> String {
    code_commit_logging::sha256_hex(text.as_bytes())
}

/// A proposal that replaces `old` by `new` in one file.
pub fn proposal(path: &str, old: Option<&str>, new: &str) -> String {
    let base = old.map_or(NOTHING.to_owned(), sha256);
    json!({ "summary": "a change", "writes": [{ "path": path, "base_sha256": base, "content": new }] })
        .to_string()
}

/// A proposal about `src/greet.sh` of [`FILES`].
pub fn greet(new: &str) -> String {
    proposal("src/greet.sh", Some(FILES[2].1), new)
}

/// An order about `src/greet.sh`, with other fields over it; null takes a field away.
pub fn order(over: &Value) -> Value {
    let mut order = json!({
        "id": "greet-1",
        "title": "Greet with a comma",
        "intent": "Put a comma behind hello.",
        "allowed_files": ["src/greet.sh", "src/new.sh"],
        "forbidden": ["changing the tests"],
        "acceptance_commands": ["sh tests/run.sh"],
        "context_files": ["src/greet.sh"],
    });
    for (field, value) in over.as_object().unwrap() {
        if value.is_null() {
            order.as_object_mut().unwrap().remove(field);
        } else {
            order[field] = value.clone();
        }
    }
    order
}

impl Scene {
    /// The project of [`FILES`] and a service that gives these answers one after another.
    pub fn with(replies: &[&str]) -> Self {
        Self::scripted(&FILES, Script::new(texts(replies)))
    }

    /// The project of [`FILES`] and a service that gives this answer to every question.
    pub fn answering(reply: &str) -> Self {
        Self::scripted(
            &FILES,
            Script::new([]).rule("chat/completions", Step::text(reply)),
        )
    }

    pub fn scripted(files: &[(&str, &str)], script: Script) -> Self {
        let scene = Self(commit::Scene {
            project: Project::with(files).unwrap(),
            server: Server::start(script).unwrap(),
        });
        scene.place_order(&json!({}));
        scene
    }

    pub fn root(&self) -> &Path {
        self.project.root()
    }

    pub fn place_order(&self, over: &Value) {
        self.place("order.json", order(over).to_string().as_bytes());
    }

    pub fn place(&self, name: &str, bytes: &[u8]) {
        fs::write(self.beside(name), bytes).unwrap();
    }

    /// The user's own configuration protects `tests/**`.
    pub fn protect_tests(&self) {
        self.user_file("protect = [\"tests/**\"]\n");
    }

    /// A key file that git does not see.
    pub fn hide_key(&self) {
        fs::write(self.root().join(".git/info/exclude"), "/*-key.txt\n").unwrap();
        fs::write(self.root().join("gemini-key.txt"), KEY).unwrap();
    }

    /// `order run` of `order.json` without a sandbox, which has tests of its own. Whatever it leaves and prints for programs fits its schema.
    #[track_caller]
    pub fn run(&self, more: &[&str]) -> Ran {
        let ran = Ran::of(&mut self.command(more));
        self.runs()
            .iter()
            .filter(|run| run.join("run_summary.json").is_file())
            .for_each(|run| check_folder(run));
        if more.contains(&"--json") {
            check_printed(&ran.out);
        }
        ran
    }

    pub fn command(&self, more: &[&str]) -> Command {
        let (order, out) = (self.beside("order.json"), self.beside("out"));
        let base = format!("{}/v1", self.server.origin());
        let mut args = vec!["order", "run", "--base-url", &base];
        if !more.iter().any(|arg| {
            Path::new(arg)
                .extension()
                .is_some_and(|kind| kind == "json")
        }) {
            args.extend(["--work-order", order.to_str().unwrap()]);
        }
        let defaults = [
            ("--repo", "."),
            ("--out", out.to_str().unwrap()),
            ("--sandbox", "off"),
            ("--llm-model", "openai/test"),
        ];
        for (flag, value) in defaults {
            if !more.contains(&flag) {
                args.extend([flag, value]);
            }
        }
        args.extend(more);
        let mut command = self.program(&args);
        command.env("OPENAI_API_KEY", KEY);
        for (role, name) in [("AUTHOR", "A"), ("COMMITTER", "C")] {
            command
                .env(format!("GIT_{role}_NAME"), name)
                .env(format!("GIT_{role}_EMAIL"), "x@example.invalid");
        }
        command
    }

    /// The program in the repository.
    pub fn program(&self, args: &[&str]) -> Command {
        program(self.root(), self.project.beside(), args, &[])
    }

    /// `order check` of `order.json`.
    pub fn check(&self) -> Command {
        let file = self.beside("order.json");
        self.program(&["order", "check", file.to_str().unwrap()])
    }

    /// A run whose last command has begun, and stands still until `go-on` is there.
    pub fn standing_still(&self, more: &[&str]) -> Child {
        let go_on = self.beside("go-on");
        let wait = format!(
            "sh -c '{AFTER}touch stray; test -e {} || sleep 600'",
            go_on.display()
        );
        self.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", wait] }));
        let mut child = start_quietly(&mut self.command(more));
        while !self.at("stray").exists() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::yield_now();
        }
        child
    }

    /// Adds the other project as a submodule, and commits that.
    pub fn add_submodule(&self, other: &Self, place: &str) {
        let (allow, from) = ("protocol.file.allow=always", other.root().to_str().unwrap());
        self.git(&["-c", allow, "submodule", "add", "-q", from, place]);
        self.project.commit("a submodule").unwrap();
    }

    /// The run folders, by name.
    pub fn runs(&self) -> Vec<PathBuf> {
        files::entries(self.beside("out"))
    }

    /// A file of the only run.
    pub fn recorded(&self, file: &str) -> String {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        files::text(&runs[0].join(file))
    }

    pub fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.recorded(file)).unwrap()
    }

    pub fn summary(&self) -> Value {
        self.json("run_summary.json")
    }

    /// Verdict and stage of the only run.
    pub fn verdict(&self) -> String {
        let summary = self.summary();
        format!(
            "{} {}",
            summary["verdict"].as_str().unwrap(),
            summary["ended_stage"].as_str().unwrap()
        )
    }

    /// Everything about the repository that a rollback has to bring back: every file, link and folder with mode and content, the
    /// index, `HEAD` and where the branches are.
    pub fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        collect(self.root(), self.root(), &mut state);
        for question in [
            &["ls-files", "--stage"][..],
            &["rev-parse", "HEAD"],
            &["rev-parse", "--symbolic-full-name", "HEAD"],
            &["for-each-ref"],
            &["status", "--porcelain", "--untracked-files=all"],
        ] {
            state.insert(
                format!("git {}", question.join(" ")),
                self.project.git(question).unwrap(),
            );
        }
        state
    }
}

fn collect(root: &Path, folder: &Path, state: &mut BTreeMap<String, String>) {
    for path in files::entries(folder) {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if name == ".git" {
            continue;
        }
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else if found.is_dir() {
            collect(root, &path, state);
            "folder".to_owned()
        } else if !found.is_file() {
            "neither file nor folder".to_owned()
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
        };
        state.insert(name, format!("{:o} {content}", found.mode()));
    }
}

/// What `runs` prints, with `[T]` for how long each run took.
pub fn without_durations(listed: &str) -> String {
    let mut text = String::new();
    for line in listed.lines() {
        let (before, title) = line.rsplit_once("  ").unwrap();
        let (before, _) = before.rsplit_once(", ").unwrap();
        text.push_str(&format!("{before}, [T]  {title}\n"));
    }
    text
}
