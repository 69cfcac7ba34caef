//! `why`: where the lines of a file come from, through later edits, commits, renames and a rebase.

use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::Script;
use serde_json::{Value, json};

use crate::scenes::commit::Scene;
use crate::scenes::order::{FILES as ORDER, GOOD, Scene as Order, greet};
use crate::scenes::program::{Ran, program};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec};

/// The build passes once some file says so.
const FILES: [(&str, &str); 3] = [
    (".gitignore", "/agent-config\n"),
    (
        "build.sh",
        "#!/bin/sh\ngrep -qr '^whole$' text || { echo not whole; exit 1; }\n",
    ),
    ("agent-config/query.txt", "Write more.\n"),
];

const MODEL: &str = "scripted/agent-config/replies.txt";

/// A file whose every line says in its first word who wrote it.
struct Text(Vec<String>);

impl Text {
    /// Puts lines in behind the line `behind`.
    fn put(&mut self, who: &str, count: usize, behind: usize) {
        let serial = self.0.len();
        let lines = (0..count).map(|number| format!("{who} {}", serial + number));
        self.0.splice(behind..behind, lines);
    }

    fn text(&self) -> String {
        self.0.iter().map(|line| format!("{line}\n")).collect()
    }

    fn reply(&self, path: &str) -> String {
        format!("^^^{path}\n{}^^^end\n", self.text())
    }
}

/// Runs the default loop with these replies; gives the name of the run.
fn run(scene: &Scene, replies: &[String], code: i32) -> String {
    run_with(scene, replies, code, &[])
}

fn run_with(scene: &Scene, replies: &[String], code: i32, more: &[&str]) -> String {
    let rounds = replies.len().to_string();
    let script = replies.join("--- next reply ---\n");
    scene
        .project
        .write("agent-config/replies.txt", script.as_bytes())
        .unwrap();
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    let words = [
        "--new",
        "--model",
        MODEL,
        "--sandbox",
        "off",
        "--rounds",
        &rounds,
    ];
    let ran = scene.run(&[&words, more].concat());
    assert_eq!(ran.code, Some(code), "{ran}");
    scene
        .runs()
        .pop()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// For every line: the run and the round, or neither.
fn origins(ran: &Ran) -> Vec<(Option<String>, Option<u64>)> {
    let mut origins = Vec::new();
    for line in ran.out.lines() {
        let range: Value = serde_json::from_str(line).unwrap();
        let at = |place: usize| usize::try_from(range["lines"][place].as_u64().unwrap()).unwrap();
        assert_eq!(at(0), origins.len() + 1, "{range}");
        let origin = (
            range["run"].as_str().map(str::to_owned),
            range["round"].as_u64(),
        );
        origins.resize(at(1), origin);
    }
    origins
}

fn commit(project: &Project, message: &str) {
    project.commit(message).unwrap();
}

#[test]
fn two_hundred_lines_are_traced_through_edits_commits_renames_and_a_rebase() {
    let scene = Scene::with_files(&FILES, Script::new([]));
    let write =
        |path: &str, text: &Text| scene.project.write(path, text.text().as_bytes()).unwrap();
    let mut text = Text(Vec::new());
    text.put("human", 95, 0);
    write("text/story.txt", &text);
    commit(&scene.project, "a story");

    // Two rounds, of which the first one fails; a person has not committed a part of the file.
    text.put("human", 5, 95);
    write("text/story.txt", &text);
    let mut replies = Vec::new();
    text.put("first:1", 20, 30);
    text.put("first:1", 10, 10);
    replies.push(text.reply("text/story.txt"));
    text.put("first:2", 20, 50);
    text.0.push("whole".to_owned());
    replies.push(text.reply("text/story.txt"));
    let first = run(&scene, &replies, 0);
    // And another part afterwards.
    text.put("human", 5, 40);
    text.0.remove(12);
    write("text/story.txt", &text);
    commit(&scene.project, "a longer story");

    // Another name, and edits.
    scene
        .project
        .git(&["mv", "text/story.txt", "text/tale.txt"])
        .unwrap();
    for at in [0, 35, 70] {
        text.0[at] = format!("human anew {at}");
    }
    write("text/tale.txt", &text);
    commit(&scene.project, "a tale");

    // A run that fails and whose changes stay, then one that edits; both go into one commit with a person's lines.
    let mut failed = Text(text.0.clone());
    failed.0.retain(|line| line != "whole");
    failed.put("second:1", 15, 20);
    let second = run(&scene, &[failed.reply("text/tale.txt")], 1);
    text = failed;
    let anchor = text.0[80].clone();
    let third = ["third:1 a", "third:1 b", "third:1 c", &anchor, "whole"].join("\n");
    let edit = format!(
        "^^^edit text/tale.txt\n<<<<<<< SEARCH\n{anchor}\n=======\n{third}\n>>>>>>> REPLACE\n^^^end\n"
    );
    scene
        .project
        .write("code-commit.toml", b"edits = true\n")
        .unwrap();
    let third = run(&scene, &[edit], 0);
    text.0.splice(
        80..81,
        ["third:1 a", "third:1 b", "third:1 c", &anchor, "third:1"].map(str::to_owned),
    );
    let on_disk = |text: &Text| {
        Text(
            text.0
                .iter()
                .map(|line| {
                    if line == "third:1" {
                        "whole".to_owned()
                    } else {
                        line.clone()
                    }
                })
                .collect(),
        )
    };
    text.put("human", 8, 100);
    write("text/tale.txt", &on_disk(&text));
    commit(&scene.project, "a longer tale");

    // The same on top of what somebody else has done, under another name.
    let git = |args: &[&str]| scene.project.git(args).unwrap();
    git(&["checkout", "-q", "-b", "other", "HEAD~2"]);
    let mut theirs: Vec<String> = scene
        .project
        .read("text/story.txt")
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let more = (0..7).map(|number| format!("human of another branch {number}"));
    theirs.splice(5..5, more.clone());
    write("text/story.txt", &Text(theirs));
    commit(&scene.project, "more of the story");
    git(&["checkout", "-q", "main"]);
    git(&["rebase", "-q", "other"]);
    text.0.splice(5..5, more);
    assert_eq!(
        scene.project.read("text/tale.txt").unwrap(),
        on_disk(&text).text()
    );

    // Not committed: a run, and a person behind it.
    let mut last = on_disk(&text);
    last.put("fourth:1", 12, 120);
    let fourth = run(&scene, &[last.reply("text/tale.txt")], 0);
    text.0.splice(120..120, last.0[120..132].to_vec());
    text.put("human", 6, 60);
    write("text/tale.txt", &on_disk(&text));

    let names = [
        ("first", first),
        ("second", second),
        ("third", third),
        ("fourth", fourth),
    ];
    let expected = |line: &String| {
        let who = line.split(' ').next().unwrap_or_default();
        let (who, round) = who.split_once(':').unwrap_or((who, ""));
        let run = names
            .iter()
            .find(|(name, _)| *name == who)
            .map(|(_, run)| run.clone());
        (run, round.parse().ok())
    };
    let expected: Vec<_> = text.0.iter().map(expected).collect();
    assert!(expected.len() >= 200, "{}", expected.len());
    let ran = Ran::of(&mut scene.command(&["why", "text/tale.txt", "--json"], &[]));
    assert_eq!(ran.code, Some(0), "{ran}");
    let found = origins(&ran);
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "line {}: {}", number + 1, text.0[number]);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn one_line_is_explained_with_what_was_refused_and_built_before() {
    let scene = Scene::with_replies([
        code_commit_fixtures::demo::TOUCHES_GIT,
        code_commit_fixtures::demo::BREAKS_THE_BUILD,
        code_commit_fixtures::demo::MENDS_IT,
    ]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let greet = scene.project.read("src/greet.sh").unwrap();
    let number = greet
        .lines()
        .position(|line| line.contains("world"))
        .unwrap()
        + 1;
    let ran = scene.run(&["why", &format!("src/greet.sh:{number}")]);
    insta::assert_snapshot!(ran);
    let whole = scene.run(&["why", "src/greet.sh"]);
    let commit = regex::Regex::new("commit [0-9a-f]{10}").unwrap();
    insta::assert_snapshot!(whole.map(|text| commit.replace_all(text, "commit [ID]").into_owned()));
}

#[test]
fn a_line_of_an_order_names_its_verdict_also_after_another_commit() {
    let scene = Order::with(&[&greet(GOOD)]);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    scene
        .project
        .git(&["commit", "-q", "--amend", "-m", "said otherwise"])
        .unwrap();
    let ran = Ran::of(&mut scene.program(&["why", "src/greet.sh:2", "--json"]));
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    let names = |key: &str| said[key].clone();
    assert_eq!(
        (names("loop"), names("verdict"), names("round")),
        (json!("order"), json!("PASS"), json!(1))
    );
    assert_eq!(names("query"), json!("Greet with a comma"));
    let first = Ran::of(&mut scene.program(&["why", "src/greet.sh:1"]));
    assert!(
        first.out.contains("no run recorded here made it, commit "),
        "{}",
        first.out
    );
    assert_eq!(ORDER[2].0, "src/greet.sh");
}

#[test]
fn a_line_that_an_agent_wrote_is_known_by_the_commit_of_its_run() {
    let scene = Spec::new(&[PLAN, DONE, APPROVE]);
    scene.configure(&json!({ "commit": true }));
    assert_eq!(scene.run().code, Some(0));
    let ran = Ran::of(&mut scene.command(&["why", "src.txt", "--json"], &[]));
    let said: Value = serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap();
    assert_eq!(
        (&said["loop"], &said["outcome"]),
        (&json!("spec"), &json!("done")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(
        said["by"]
            .as_str()
            .is_some_and(|by| by.starts_with("turn ")),
        "{said}"
    );
}

#[test]
fn what_is_no_line_of_a_file_is_refused() {
    let scene = Scene::with_replies([]);
    for (place, why) in [
        ("src/greet.sh:0", "and none is 0"),
        ("src/greet.sh:999", "and none is 999"),
        ("src", "is not a regular file"),
        ("nowhere.txt", "cannot read nowhere.txt"),
        ("no/where.txt", "cannot find no/where.txt"),
        ("/etc/passwd", "/etc/passwd is not in [ROOT]"),
        (".git/config:1", "no run recorded here made it"),
    ] {
        let ran = scene.run(&["why", place]);
        let code = if place.starts_with(".git") { 0 } else { 3 };
        assert!(ran.code == Some(code), "{place}: {ran}");
        assert!(
            ran.err.contains(why) || ran.out.contains(why),
            "{place}: {ran}"
        );
    }
    scene.project.write("new:1", b"mine\n").unwrap();
    let new = scene.run(&["why", "new:1"]);
    assert_eq!(new.out, "1  no run recorded here made it, not committed\n");
}

#[test]
fn a_record_that_was_changed_says_nothing() {
    let scene = Scene::with_replies([code_commit_fixtures::demo::MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let run = scene.runs().pop().unwrap();
    std::fs::write(run.join("1-response.txt"), "other").unwrap();
    let ran = scene.run(&["why", "src/greet.sh"]);
    assert!(
        ran.err.contains("was changed, so it says nothing here\n"),
        "{ran}"
    );
    assert!(!ran.out.contains("round 1"), "{ran}");
}

const STORY: &str = "text/story.txt";
/// What git is told once, so that it takes notes along.
const REWRITE: [&str; 2] = ["-c", "notes.rewriteRef=refs/notes/code-commit"];

const ALONE_OR_NOT: [&str; 2] = ["--single-branch", "--no-single-branch"];

/// A story of a person, to which two runs have each added lines, and committed them.
struct Noted {
    scene: Scene,
    text: Text,
    runs: [String; 2],
}

impl Noted {
    fn new() -> Self {
        let scene = Scene::with_files(&FILES, Script::new([]));
        for (key, value) in [("user.name", "n"), ("user.email", "e@example.invalid")] {
            scene.project.git(&["config", key, value]).unwrap();
        }
        let mut text = Text(Vec::new());
        text.put("human", 40, 0);
        text.0.push("whole".to_owned());
        scene.project.write(STORY, text.text().as_bytes()).unwrap();
        commit(&scene.project, "a story");
        let mut add = |who: &str, count: usize, behind: usize| {
            text.put(who, count, behind);
            run_with(&scene, &[text.reply(STORY)], 0, &["--commit"])
        };
        let runs = [add("first", 3, 30), add("second", 2, 10)];
        Self { scene, text, runs }
    }

    fn git(&self, args: &[&str]) {
        self.scene.project.git(args).unwrap();
    }

    /// Puts lines of a person into the file that is checked out, and stages them.
    fn put(&self, lines: &[&str], behind: usize) {
        let mut text = Text(
            self.scene
                .project
                .read(STORY)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
        );
        text.0
            .splice(behind..behind, lines.iter().map(|line| (*line).to_owned()));
        self.scene
            .project
            .write(STORY, text.text().as_bytes())
            .unwrap();
        self.git(&["add", STORY]);
    }

    /// A clone of a branch, with or without the commits of the others.
    fn cloned(&self, branch: &str, alone: &str) -> std::path::PathBuf {
        let folder = self.scene.project.beside().join(format!("{branch}{alone}"));
        self.git(&[
            "clone",
            "-q",
            "--no-local",
            alone,
            "-b",
            branch,
            ".",
            folder.to_str().unwrap(),
        ]);
        folder
    }

    fn fetch(&self, folder: &std::path::Path) {
        let notes = "refs/notes/code-commit:refs/notes/code-commit";
        self.git(&[
            "-C",
            folder.to_str().unwrap(),
            "fetch",
            "-q",
            "origin",
            notes,
        ]);
    }

    fn why(&self, folder: &std::path::Path, words: &[&str]) -> Ran {
        Ran::of(&mut program(
            folder,
            self.scene.project.beside(),
            &[&["why"], words].concat(),
            &[],
        ))
    }

    #[track_caller]
    fn check(&self, branch: &str) {
        for alone in ALONE_OR_NOT {
            self.check_in(branch, alone);
        }
    }

    /// In a clone of the branch, each line that begins with the word of a run is that run's, and no other.
    #[track_caller]
    fn check_in(&self, branch: &str, alone: &str) {
        let folder = self.cloned(branch, alone);
        self.fetch(&folder);
        let text = std::fs::read_to_string(folder.join(STORY)).unwrap();
        let run = |line: &str| {
            let at = ["first", "second"]
                .iter()
                .position(|who| line.starts_with(who));
            (at.map(|at| self.runs[at].clone()), None)
        };
        let expected: Vec<_> = text.lines().map(run).collect();
        assert!(expected.iter().any(|(run, _)| run.is_some()), "{text}");
        let ran = self.why(&folder, &[STORY, "--json"]);
        assert_eq!(origins(&ran), expected, "{branch}: {ran}");
        // The same for one line alone.
        let number = expected.iter().position(|(run, _)| run.is_some()).unwrap() + 1;
        let one = self.why(&folder, &[&format!("{STORY}:{number}"), "--json"]);
        let said: Value = serde_json::from_str(&one.out).unwrap();
        assert_eq!(
            (said["run"].as_str(), &said["model"]),
            (expected[number - 1].0.as_deref(), &json!(MODEL))
        );
    }
}

#[test]
fn a_clone_without_records_learns_from_notes_which_run_made_a_line_also_of_rewritten_commits() {
    let noted = Noted::new();
    noted.check("main");

    noted.git(&["checkout", "-q", "-b", "amended"]);
    noted.put(&["human, before the commit was amended"], 20);
    noted.git(
        &[
            &REWRITE[..],
            &["commit", "-q", "--amend", "-m", "other words"],
        ]
        .concat(),
    );
    noted.check("amended");

    noted.git(&["checkout", "-q", "-b", "folded", "main"]);
    let fold = [
        "-c",
        "sequence.editor=sed -i 2s/pick/fixup/",
        "rebase",
        "-q",
        "-i",
        "HEAD~2",
    ];
    noted.git(&[&REWRITE[..], &fold].concat());
    noted.check("folded");

    // Nothing took the notes along.
    noted.git(&["checkout", "-q", "-b", "picked", "main~2"]);
    noted.put(&["human, in front", "of it all"], 0);
    noted.git(&["commit", "-q", "-m", "more of the story"]);
    noted.git(&["cherry-pick", "main~1", "main"]);
    noted.check("picked");

    noted.git(&["checkout", "-q", "-b", "squashed", "main~2"]);
    noted.git(&["merge", "-q", "--squash", "main"]);
    noted.put(&["human, in the same commit"], 5);
    noted.git(&["commit", "-q", "-m", "all at once"]);
    noted.check("squashed");
}

#[test]
fn a_line_that_a_person_copied_from_a_run_is_not_the_runs() {
    let noted = Noted::new();
    let lines: Vec<&str> = noted
        .text
        .0
        .iter()
        .filter(|line| line.starts_with("second"))
        .map(String::as_str)
        .collect();
    noted.put(&lines, 43);
    noted.git(&["commit", "-q", "-m", "said twice"]);
    let folder = noted.cloned("main", ALONE_OR_NOT[0]);
    noted.fetch(&folder);
    let copied = noted.why(&folder, &[&format!("{STORY}:44"), "--json"]);
    assert!(copied.out.contains("\"run\":null"), "{copied}");
}

#[test]
fn a_clone_without_notes_says_how_to_fetch_them_and_asks_nobody() {
    let noted = Noted::new();
    let folder = noted.cloned("main", ALONE_OR_NOT[0]);
    let place = format!("{STORY}:11");
    let fetch = "git fetch origin refs/notes/code-commit:refs/notes/code-commit";
    let without = noted.why(&folder, &[&place]);
    assert!(
        without.out.contains("no run recorded here made it") && without.err.contains(fetch),
        "{without}"
    );
    noted.fetch(&folder);
    let with = noted.why(&folder, &[&place]);
    assert!(
        with.out.contains(&noted.runs[1]) && with.out.contains(MODEL) && with.err.is_empty(),
        "{with}"
    );
    let person = noted.why(&folder, &[&format!("{STORY}:1")]);
    assert!(
        person.out.contains("no run recorded here made it") && person.err.is_empty(),
        "{person}"
    );
}

#[test]
fn of_a_noted_line_no_other_record_is_read() {
    let noted = Noted::new();
    let place = format!("{STORY}:11");
    let before = noted.scene.run(&["why", &place]);
    let other = noted
        .scene
        .runs()
        .into_iter()
        .find(|run| run.ends_with(&noted.runs[0]))
        .unwrap();
    std::fs::write(other.join("1-response.txt"), "other").unwrap();
    let after = noted.scene.run(&["why", &place]);
    assert!(
        after.err.is_empty() && after.out.contains("round 1"),
        "{after}"
    );
    assert_eq!(after.out, before.out);
}

#[test]
fn doctor_names_the_command_that_lets_a_rebase_take_notes_along() {
    let noted = Noted::new();
    let command = "git config --add notes.rewriteRef refs/notes/code-commit";
    let lost = noted.scene.run(&["doctor"]);
    assert!(lost.out.contains(command), "{lost}");
    noted.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    let kept = noted.scene.run(&["doctor"]);
    assert!(
        !kept.out.contains(command) && kept.out.contains("notes"),
        "{kept}"
    );
}
