//! The demo's project, a scripted model, and the default loop.

use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_fixtures::demo;
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Hang, Script, Server, Step};
use regex::Regex;
use serde_json::Value;

use crate::scenes::files;
use crate::scenes::program::{Ran, interrupt, program, start_quietly};

/// A key that opens nothing; no file that a run leaves may hold it.
pub const KEY: &str = "AIzaSyE2E-key-that-opens-nothing-77";

/// An answer of each of these texts.
pub fn texts(replies: &[impl AsRef<str>]) -> Vec<Step> {
    replies
        .iter()
        .map(|reply| Step::text(reply.as_ref()))
        .collect()
}

/// A project with a model behind it.
pub struct Scene {
    pub project: Project,
    pub server: Server,
}

impl Scene {
    /// The demo's project with a model that gives these replies one after another.
    pub fn with_replies<'t>(replies: impl IntoIterator<Item = &'t str>) -> Self {
        Self::new(Script::new(replies.into_iter().map(Step::text)))
    }

    /// The demo's project.
    pub fn new(script: Script) -> Self {
        Self::with_files(&demo::FILES, script)
    }

    /// A project of these files, its roll-up made.
    pub fn with_files(files: &[(&str, &str)], script: Script) -> Self {
        let project = Project::with(files).unwrap();
        let scene = Self {
            project,
            server: Server::start(script).unwrap(),
        };
        assert_eq!(scene.run(&["rollup"]).code, Some(0));
        scene
    }

    /// A run of the default loop that Ctrl-C stopped while the model thought about its second prompt; what the model says then.
    pub fn stopped(then: &[&str]) -> Self {
        let thinks = Step::text("").hang(Hang::BeforeHead);
        let steps = [Step::text(demo::BREAKS_THE_BUILD), thinks];
        let scene = Self::new(Script::new(steps.into_iter().chain(texts(then))));
        let mut child = start_quietly(&mut scene.keyed(&scene.flags(), &[]));
        scene.server.wait_for_requests(2);
        interrupt(&child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        scene
    }

    /// How often the service was asked.
    pub fn calls(&self) -> usize {
        self.server.requests().len()
    }

    /// A place beside the project.
    pub fn beside(&self, name: impl AsRef<Path>) -> PathBuf {
        self.project.beside().canonicalize().unwrap().join(name)
    }

    /// A place in the project.
    pub fn at(&self, path: &str) -> PathBuf {
        self.project.root().join(path)
    }

    /// Writes a file of the project, and the folders that it needs.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.project.write(path, content.as_ref()).unwrap();
    }

    /// The text of a file of the project.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        self.project.read(path).unwrap()
    }

    /// What git prints in the project.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.project.git(args).unwrap()
    }

    /// Another work tree of the project, beside it.
    pub fn linked(&self) -> PathBuf {
        let linked = self.beside("linked");
        let place = linked.to_str().unwrap();
        self.git(&["worktree", "add", "-q", place, "-b", "other"]);
        linked
    }

    /// What git says of the project's files.
    #[track_caller]
    pub fn status(&self) -> String {
        self.project.status().unwrap()
    }

    /// The user's own configuration.
    pub fn user_file(&self, text: &str) {
        let home = self.project.beside();
        files::write(&home.join(".config/code-commit/config.toml"), text);
    }

    /// From now on the roll-up counts as one that a script has made.
    pub fn disown_rollup(&self) {
        std::fs::remove_file(self.project.root().join("agent-config/codeRollup.json")).unwrap();
    }

    /// The flags of a run that asks this scene's model, without a sandbox, which has tests of its own.
    pub fn flags(&self) -> [&str; 6] {
        self.flags_in("off")
    }

    /// The flags of a run that asks this scene's model and builds in such a sandbox.
    pub fn flags_in<'s>(&'s self, sandbox: &'s str) -> [&'s str; 6] {
        let [model, name, base_url, origin] = self.model();
        [model, name, base_url, origin, "--sandbox", sandbox]
    }

    /// The flags that name this scene's model.
    pub fn model(&self) -> [&str; 4] {
        ["--model", "gemini-test", "--base-url", self.server.origin()]
    }

    /// The command of the first loop, without a sandbox.
    pub fn implement<'s>(&'s self, more: &[&'s str]) -> Vec<&'s str> {
        let origin = self.server.origin();
        let args = ["implement", "--base-url", origin, "--sandbox", "off"];
        [&args[..], more].concat()
    }

    /// The system prompt that the first loop needs.
    pub fn system_prompt(&self) {
        self.write(
            "agent-config/gemini-system-prompt.txt",
            "Answer in fences.\n",
        );
    }

    /// The default loop with these flags.
    pub fn commit(&self, more: &[&str]) -> Ran {
        self.run_keyed(&[&self.flags(), more].concat())
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    /// With a key for the model's service.
    pub fn run_keyed(&self, args: &[&str]) -> Ran {
        self.ran(&mut self.keyed(args, &[]))
    }

    pub fn run_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Ran {
        self.ran(&mut self.command(args, environment))
    }

    /// Runs a command to its end; what it printed, as a snapshot can hold it.
    pub fn ran(&self, command: &mut Command) -> Ran {
        Ran::of(command).map(|text| self.without_names(text))
    }

    /// The program in this project's root.
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        program(
            self.project.root(),
            self.project.beside(),
            args,
            environment,
        )
    }

    /// The program in this project's root, with a key for the model's service.
    pub fn keyed(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        self.command(args, &[&[("GEMINI_API_KEY", KEY)], environment].concat())
    }

    /// The run folders, oldest first.
    pub fn runs(&self) -> Vec<PathBuf> {
        files::entries(self.project.root().join("agent-config/logs"))
    }

    /// Name and content of every file below the newest run folder.
    pub fn record(&self) -> Vec<(String, String)> {
        files::named(&self.runs().pop().unwrap())
    }

    /// One file of the newest run.
    pub fn recorded(&self, name: &str) -> String {
        files::text(&self.runs().pop().unwrap().join(name))
    }

    /// One JSON file of the newest run.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.recorded(name)).unwrap()
    }

    /// Messages of this code in the newest run's summary.
    pub fn warnings(&self, code: &str) -> Vec<String> {
        let summary = self.json("summary.json");
        let all = summary
            .get("warnings")
            .and_then(|all| all.as_array())
            .cloned()
            .unwrap_or_default();
        let text = |problem: &Value, key: &str| problem.get(key)?.as_str().map(str::to_owned);
        let of_code = all
            .iter()
            .filter(|problem| text(problem, "code").as_deref() == Some(code));
        of_code
            .map(|problem| text(problem, "message").unwrap())
            .collect()
    }

    /// Paths and ports replaced, so that a snapshot can hold the rest.
    pub fn without_places(&self, text: &str) -> String {
        text.replace(&self.project.root().display().to_string(), "[ROOT]")
            .replace(&self.project.beside().display().to_string(), "[BESIDE]")
            .replace(self.server.origin(), "[SERVER]")
    }

    /// Times too.
    fn without_names(&self, text: &str) -> String {
        let text = text
            .replace(&self.project.root().display().to_string(), "[ROOT]")
            .replace(self.server.origin(), "[SERVER]");
        let text = Regex::new(r"\b20\d\d(-\d\d){5}")
            .unwrap()
            .replace_all(&text, "[STAMP]")
            .into_owned();
        Regex::new(r"\d(?:[\d.-]*[\d-])? s")
            .unwrap()
            .replace_all(&text, "[TIME]")
            .into_owned()
    }
}
