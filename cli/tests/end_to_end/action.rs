//! The steps of `action.yml`, run as a runner of GitHub does: inputs in the environment, scripts with `bash -eo pipefail`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use code_commit_fixtures::demo::{FILES, MENDS_IT};
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step as Reply};
use regex::{Captures, Regex};
use serde::Deserialize;

use crate::scenes::program::{Ran, must_have, search_path, tool};

#[derive(Deserialize)]
struct Action {
    inputs: BTreeMap<String, Input>,
    outputs: BTreeMap<String, Output>,
    runs: Runs,
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    default: Option<String>,
}

#[derive(Deserialize)]
struct Output {
    value: String,
}

#[derive(Deserialize)]
struct Runs {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    id: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    run: String,
}

/// A job: a project with a remote, a runner's folder, a `gh` that writes down its arguments, and what expressions stand for.
struct Job {
    project: Project,
    server: Server,
    values: BTreeMap<String, String>,
    has_failed: bool,
}

impl Job {
    fn new(inputs: &[(&str, &str)]) -> Self {
        let project = Project::with(&FILES).unwrap();
        project
            .git(&["init", "--quiet", "--bare", "../hub.git"])
            .unwrap();
        project
            .git(&["remote", "add", "origin", "../hub.git"])
            .unwrap();
        let job = Self {
            server: Server::start(Script::new([Reply::text(MENDS_IT).times(3)])).unwrap(),
            project,
            values: inputs
                .iter()
                .map(|(name, value)| (format!("inputs.{name}"), (*value).to_owned()))
                .collect(),
            has_failed: false,
        };
        // A package like the one that is shipped: a program, and who it is.
        let package = job.beside("package");
        fs::create_dir_all(package.join("bin")).unwrap();
        symlink(
            env!("CARGO_BIN_EXE_code-commit"),
            package.join("bin/code-commit"),
        )
        .unwrap();
        let manifest = r#"{"name": "code-commit", "version": "0.1.0", "bin": {"code-commit": "bin/code-commit"}}"#;
        fs::write(package.join("package.json"), manifest).unwrap();
        let gh = job.beside("gh");
        fs::write(
            &gh,
            format!(
                "#!/bin/sh\nprintf '[%s]' \"$@\" >>{}\n",
                job.beside("gh.log").display()
            ),
        )
        .unwrap();
        fs::set_permissions(gh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(job.beside("runner")).unwrap();
        for file in ["path", "output", "summary"] {
            fs::write(job.beside(file), "").unwrap();
        }
        job
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.project.beside().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.beside(name)).unwrap_or_default()
    }

    /// All steps; the outputs of the action, and what was printed.
    fn run(&mut self) -> (BTreeMap<String, String>, String) {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../action.yml"))
            .unwrap();
        let action: Action = serde_saphyr::from_str(&text).unwrap();
        for (name, input) in &action.inputs {
            let default = input.default.clone();
            self.values
                .entry(format!("inputs.{name}"))
                .or_insert(default.unwrap_or_default());
        }
        self.values
            .insert("github.actor".to_owned(), "somebody".to_owned());
        self.values
            .insert("github.ref_name".to_owned(), "main".to_owned());
        self.values.insert(
            "github.event.pull_request.number".to_owned(),
            "7".to_owned(),
        );
        let mut printed = String::new();
        for step in &action.runs.steps {
            if step
                .condition
                .as_deref()
                .map_or(!self.has_failed, |condition| self.holds(condition))
            {
                let ran = self.step(step);
                self.has_failed |= ran.code != Some(0);
                printed += &format!("{ran}");
            }
        }
        let outputs = action
            .outputs
            .iter()
            .map(|(name, output)| (name.clone(), self.filled(&output.value)));
        (outputs.collect(), printed)
    }

    fn step(&mut self, step: &Step) -> Ran {
        let script = self.beside("script.sh");
        fs::write(&script, &step.run).unwrap();
        let arguments = [
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            script.to_str().unwrap(),
        ];
        let mut command = tool(
            "bash",
            self.project.root(),
            self.project.beside(),
            &arguments,
        );
        let added = self
            .read("path")
            .lines()
            .map(|line| format!("{line}:"))
            .collect::<String>();
        let path = format!(
            "{added}{}:{}",
            self.project.beside().display(),
            search_path().display()
        );
        command
            .env("PATH", path)
            .env("GEMINI_API_KEY", "AIzaSyAction-key-that-opens-nothing")
            .env("GOOGLE_GEMINI_BASE_URL", self.server.origin())
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_PATH", self.beside("path"))
            .env("GITHUB_OUTPUT", self.beside("output"))
            .env("GITHUB_STEP_SUMMARY", self.beside("summary"))
            .env("RUNNER_TEMP", self.beside("runner"))
            .envs(
                step.env
                    .iter()
                    .map(|(name, value)| (name, self.filled(value))),
            );
        let ran = Ran::of(&mut command);
        if let Some(id) = &step.id {
            for line in self.read("output").lines() {
                let (name, value) = line.split_once('=').unwrap();
                self.values
                    .insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
            }
        }
        ran
    }

    /// A text with the values of its expressions: the first of some that is not empty.
    fn filled(&self, text: &str) -> String {
        let value = |found: &Captures<'_>| {
            let names = found[1]
                .split("||")
                .map(|name| self.values.get(name.trim()).cloned().unwrap_or_default());
            names
                .into_iter()
                .find(|value| !value.is_empty())
                .unwrap_or_default()
        };
        Regex::new(r"\$\{\{ (.*?) \}\}")
            .unwrap()
            .replace_all(text, value)
            .into_owned()
    }

    /// A condition: without `always()`, nothing may have failed.
    fn holds(&self, condition: &str) -> bool {
        let value = |name: &str| self.values.get(name.trim()).cloned().unwrap_or_default();
        let terms = condition.split("&&").map(str::trim).collect::<Vec<_>>();
        (terms.contains(&"always()") || !self.has_failed)
            && terms
                .iter()
                .filter(|term| **term != "always()")
                .all(|term| match term.split_once("==") {
                    Some((name, wanted)) => value(name) == wanted.trim().trim_matches('\''),
                    None => !value(term).is_empty(),
                })
    }
}

fn is_missing(program: &str) -> bool {
    let is_there =
        std::env::split_paths(&search_path()).any(|folder| folder.join(program).exists());
    if !is_there {
        eprintln!("SKIPPED: the steps of action.yml, because there is no {program}");
    }
    !is_there
}

#[test]
fn a_query_becomes_a_commit_a_pull_request_and_a_comment() {
    if is_missing("npm") {
        return;
    }
    let mut job = Job::new(&[
        (
            "query",
            "greet $(touch ../made) `touch ../made`\nsecond line",
        ),
        ("model", "gemini/gemini-3.8-flash"),
        ("pull-request", "true"),
        ("comment", "true"),
    ]);
    let package = job.beside("package").display().to_string();
    job.values.insert("inputs.package".to_owned(), package);
    let (outputs, printed) = job.run();
    assert_eq!(
        (outputs["verdict"].as_str(), job.has_failed),
        ("done", false),
        "{outputs:?}\n{printed}"
    );
    assert!(outputs["cost"].parse::<f64>().unwrap() > 0.0, "{outputs:?}");
    let head = job.project.git(&["rev-parse", "--short", "HEAD"]).unwrap();
    let pushed = job
        .project
        .git(&["ls-remote", "--heads", "origin"])
        .unwrap();
    assert!(
        pushed
            .trim()
            .ends_with(&format!("refs/heads/code-commit/{}", head.trim())),
        "{pushed}"
    );
    let asked = job.read("gh.log");
    let title = "[--title][greet $(touch ../made) `touch ../made`]";
    must_have(&asked, title);
    assert!(asked.starts_with("[pr][create][--base][main]"), "{asked}");
    assert!(asked.contains("[pr][comment][7]"), "{asked}");
    assert!(!job.beside("made").exists());
    assert!(job.read("runner/code-commit.md").contains("**done after "));
    assert_eq!(job.read("summary"), job.read("runner/code-commit.md"));
}

#[test]
fn a_refused_start_says_so_and_an_order_has_its_verdict() {
    if is_missing("npm") {
        return;
    }
    for (inputs, verdict) in [
        (&[("query", "x"), ("order", "order.json")][..], ""),
        (&[("query", "x"), ("max-cost", "nothing")][..], "refused"),
        (&[("order", "../order.json")][..], "FAIL"),
    ] {
        let mut job = Job::new(
            &[
                inputs,
                &[("model", "gemini/gemini-3.8-flash"), ("comment", "true")],
            ]
            .concat(),
        );
        let package = job.beside("package").display().to_string();
        job.values.insert("inputs.package".to_owned(), package);
        let order = r#"{"id": "a", "title": "a", "intent": "a", "allowed_files": ["a.txt"], "forbidden": [],
            "acceptance_commands": ["sh build.sh"], "context_files": [], "notes": null}"#;
        fs::write(job.beside("order.json"), order).unwrap();
        let (outputs, printed) = job.run();
        assert_eq!(
            (outputs["verdict"].as_str(), job.has_failed),
            (verdict, true),
            "{inputs:?}: {printed}"
        );
        assert_eq!(
            job.read("gh.log").contains("[comment]"),
            verdict == "FAIL",
            "{printed}"
        );
    }
}
