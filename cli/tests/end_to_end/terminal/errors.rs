//! Every message about a failure that a run of the program can bring about: what was done, the exit code, and the words as printed.

mod command_line;
mod config;
mod disk;
mod elsewhere;
mod lock;
mod network;
mod preflight;
mod record;
mod repository;
mod service;
mod sources;
mod tools;

use std::fs::{self, File};

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::{Ran, search_path};
use crate::terminal::check;

/// Should a case get as far as asking a model, it asks nobody.
const NOBODY: [(&str, &str); 2] = [
    ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9"),
    ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
];

/// What is done in a project of its own, and what is run there.
pub struct Case<'c> {
    name: &'c str,
    args: &'c [&'c str],
    replies: &'c [&'c str],
    before: Vec<&'c dyn Fn(&Scene)>,
    environment: Vec<(&'c str, &'c str)>,
    typed: Option<&'c [u8]>,
    word: &'static str,
    below: &'c str,
}

/// A failure of `code-commit ARGS`.
pub fn case<'c>(name: &'c str, args: &'c [&'c str]) -> Case<'c> {
    let environment = NOBODY.to_vec();
    Case {
        name,
        args,
        replies: &[],
        before: Vec::new(),
        environment,
        typed: None,
        word: "error:",
        below: "",
    }
}

impl<'c> Case<'c> {
    /// Does this to the project first.
    pub fn after(mut self, prepare: &'c dyn Fn(&Scene)) -> Self {
        self.before.push(prepare);
        self
    }

    /// A model gives these replies, should it be asked.
    pub fn model(self, replies: &'c [&'c str]) -> Self {
        Self { replies, ..self }
    }

    /// Variables of the environment over the usual ones; `[BESIDE]` is the folder beside the project.
    pub fn env(mut self, environment: &[(&'c str, &'c str)]) -> Self {
        self.environment.extend(environment);
        self
    }

    /// Bytes on standard input.
    pub fn typed(self, bytes: &'c [u8]) -> Self {
        Self {
            typed: Some(bytes),
            ..self
        }
    }

    /// Not a failure: something that is said and gone on with.
    pub fn warns(self) -> Self {
        Self {
            word: "warning:",
            ..self
        }
    }

    /// Begun in a folder of the project.
    pub fn below(self, folder: &'c str) -> Self {
        Self {
            below: folder,
            ..self
        }
    }

    fn run(&self) -> (Scene, String) {
        let scene = Scene::new(Script::new(
            self.replies.iter().map(|reply| Step::text(reply)),
        ));
        self.before.iter().for_each(|prepare| prepare(&scene));
        let beside = scene.project.beside().display().to_string();
        let mut command = scene.keyed(self.args, &[]);
        command.current_dir(scene.at(self.below));
        command.envs(
            self.environment
                .iter()
                .map(|(name, value)| (name, value.replace("[BESIDE]", &beside))),
        );
        if let Some(bytes) = self.typed {
            let path = scene.beside("typed");
            files::write(&path, bytes);
            command.stdin(File::open(path).unwrap());
        }
        let ran = Ran::of(&mut command);
        let (name, code, words) = (self.name, code(&ran), ran.err.trim_end());
        assert!(ran.err.contains(self.word), "{name}: {ran}");
        let is_failure = code != 0 || self.word == "warning:";
        assert!(is_failure, "{name} is no failure: {words}");
        proper(name, code, &ran.err);
        let line = self.args.join(" ");
        let text = format!("## {name}\n$ code-commit {line}\nexit {code}\n{words}\n");
        let text = scene.without_places(&text);
        (scene, text)
    }
}

/// Runs each case and compares what they all printed with one stored snapshot.
pub fn table(name: &str, cases: &[Case<'_>]) {
    let ran: Vec<(Scene, String)> = cases.iter().map(Case::run).collect();
    let text: Vec<&str> = ran.iter().map(|(_, text)| text.as_str()).collect();
    if let Some((scene, _)) = ran.last() {
        check(name, scene, &text.join("\n"));
    }
}

/// The exit code; -1 for a program that a signal ended.
pub fn code(ran: &Ran) -> i32 {
    ran.code.unwrap_or(-1)
}

/// What a command line leads to, as a stored snapshot shows it.
pub fn transcript(case: &str, scene: &Scene, args: &[&str]) -> String {
    let ran = Ran::of(&mut scene.keyed(args, &[]));
    proper(case, code(&ran), &ran.err);
    let line = args.join(" ");
    format!("$ code-commit {line}\nexit {}\n{}\n", code(&ran), ran.err)
}

/// What holds of every message: no key, no panic, no Debug format, a remedy wherever the program itself refuses or fails, and the right
/// number of everything.
pub fn proper(case: &str, code: i32, words: &str) {
    for never in [KEY, "panicked", "Some(", "Err(", "Error {", "Os {", "kind:"] {
        assert!(!words.contains(never), "{case}: `{never}` in {words}");
    }
    for one in [
        "1 files", "1 calls", "1 lines", "1 rounds", "1 specs", "1 tokens", "1 bytes", "1 runs",
    ] {
        let said = words
            .split(one)
            .next()
            .filter(|before| before.len() < words.len());
        let counted =
            said.is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_digit() || c == ','));
        assert!(!counted, "{case}: `{one}` in {words}");
    }
    assert!(
        !matches!(code, 3 | 5 | 70 | 130) || words.contains(" help: "),
        "{case} has no help: {words}"
    );
    let first = words
        .split("error: ")
        .nth(1)
        .unwrap_or_default()
        .split(' ')
        .next()
        .unwrap_or_default();
    // A variable, a file, or a program may begin as it is called.
    let is_name = first.chars().all(|c| !c.is_lowercase())
        || first.contains('.')
        || ["Gemini", "Claude", "Codex"].contains(&first);
    assert!(
        is_name || !first.starts_with(char::is_uppercase),
        "{case} begins with a capital: {words}"
    );
}

/// Removes a file of the project.
pub fn remove(path: &'static str) -> impl Fn(&Scene) {
    move |scene| fs::remove_file(scene.at(path)).unwrap()
}

/// Writes a file of the project.
pub fn write(path: &'static str, content: &'static [u8]) -> impl Fn(&Scene) {
    move |scene| scene.write(path, content)
}

/// Makes a folder of the project where nothing or a file was.
pub fn folder(path: &'static str) -> impl Fn(&Scene) {
    move |scene| {
        let path = scene.at(path);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path).unwrap();
    }
}

/// Runs the program; it must end so.
pub fn ran(args: &'static [&'static str], code: i32) -> impl Fn(&Scene) {
    move |scene| {
        Ran::of(&mut scene.keyed(args, &NOBODY)).exits(code);
    }
}

/// Runs the default loop with this scene's model; it must end so.
pub fn asked(code: i32) -> impl Fn(&Scene) {
    move |scene| {
        scene.commit(&[]).exits(code);
    }
}

/// Links a program of the caller's PATH into `bin/` beside the project.
pub fn link(program: &'static str) -> impl Fn(&Scene) {
    move |scene| {
        let path = search_path();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file());
        let bin = scene.beside("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(found.unwrap(), bin.join(program)).unwrap();
    }
}
