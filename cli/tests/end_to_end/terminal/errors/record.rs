//! Runs that cannot be shown, gone on with or undone.

use std::fs;
use std::path::PathBuf;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};

use super::{asked, case, ran, remove, table, write};
use crate::scenes::commit::Scene;
use crate::scenes::files;

/// The newest run folder.
fn newest(scene: &Scene) -> PathBuf {
    scene.runs().pop().unwrap()
}

/// Replaces words in a file of the newest run.
fn forge(file: &'static str, from: &'static str, to: &'static str) -> impl Fn(&Scene) {
    move |scene| {
        let path = newest(scene).join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} holds no `{from}`: {text}");
        files::write(&path, text.replacen(from, to, 1).as_bytes());
    }
}

/// As if the run had been killed before a fact was written: its line and all behind it are not there.
fn cut(before: &'static str) -> impl Fn(&Scene) {
    move |scene| {
        let path = newest(scene).join("events.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let kept: String = text
            .split_inclusive('\n')
            .take_while(|line| !line.contains(before))
            .collect();
        assert!(kept.len() < text.len(), "no `{before}` in {text}");
        files::write(&path, kept.as_bytes());
    }
}

/// A run folder that nobody here has made.
fn planted(scene: &Scene) {
    files::copy(&newest(scene), &scene.at("logs/2099-01-01-00-00-00"));
}

const OTHER: &str = "2026-01-01-00-00-00-commit";
const PLANTED: &str = "2099-01-01-00-00-00";

#[test]
fn runs_that_cannot_be_found() {
    let done = asked(0);
    table(
        "errors_no_run",
        &[
            case("show without a run", &["show"]),
            case("resume without a run", &["resume"]),
            case("undo without a run", &["undo"]),
            case("show of an unknown run", &["show", OTHER])
                .model(&[MENDS_IT])
                .after(&done),
            case("resume of an unknown run", &["resume", OTHER])
                .model(&[MENDS_IT])
                .after(&done),
            case("undo of an unknown run", &["undo", OTHER])
                .model(&[MENDS_IT])
                .after(&done),
            case(
                "undo of an unknown run where there is none",
                &["undo", OTHER],
            ),
            case("a run that was not made here", &["resume", PLANTED])
                .model(&[MENDS_IT])
                .after(&done)
                .after(&planted),
        ],
    );
}

#[test]
fn runs_that_cannot_be_gone_on_with() {
    let (done, two) = (asked(0), &[BREAKS_THE_BUILD, MENDS_IT]);
    table(
        "errors_resume",
        &[
            case("a run that is over", &["resume"])
                .model(two)
                .after(&done),
            case("a run that was undone", &["resume"])
                .model(two)
                .after(&done)
                .after(&ran(&["undo"], 0)),
            case("a plan that was changed", &["resume"])
                .model(two)
                .after(&done)
                .after(&forge("run.json", "\"stream\": true", "\"stream\":  true")),
            case("a first prompt that was changed", &["resume"])
                .model(two)
                .after(&done)
                .after(&cut("\"what\":\"built\""))
                .after(&forge("1-query.txt", "hello", "good day")),
            case("a journal that cannot be understood", &["resume"])
                .model(two)
                .after(&done)
                .after(&forge("events.jsonl", "\"applied\"", "applied")),
            case("a run that was ended before it asked", &["resume"])
                .model(two)
                .after(&done)
                .after(&|scene| fs::remove_file(newest(scene).join("1-query.txt")).unwrap()),
            case("what was only applied", &["resume"])
                .after(&write("agent-config/reply", MENDS_IT.as_bytes()))
                .after(&ran(&["apply", "agent-config/reply"], 0)),
        ],
    );
}

#[test]
fn runs_that_cannot_be_undone() {
    let (done, one) = (asked(0), &[MENDS_IT]);
    table(
        "errors_undo",
        &[
            case("nothing was changed", &["undo"])
                .model(&[TOUCHES_GIT; 4])
                .after(&asked(1)),
            case("a file that was changed since", &["undo"])
                .model(one)
                .after(&done)
                .after(&write("src/greet.sh", b"# mine\n")),
            case("a file that is a folder now", &["undo"])
                .model(one)
                .after(&done)
                .after(&remove("src/greet.sh"))
                .after(&write("src/greet.sh/mine.txt", b"mine\n")),
            case("the same, by force", &["undo", "--force"])
                .model(one)
                .after(&done)
                .after(&remove("src/greet.sh"))
                .after(&write("src/greet.sh/mine.txt", b"mine\n")),
            case("a list that leads to git", &["undo"])
                .model(one)
                .after(&done)
                .after(&forge(
                    "backup/1/manifest.json",
                    "\"README.md\"",
                    "\".git/hooks/pre-commit\"",
                )),
            case("a list that is none", &["undo"])
                .model(one)
                .after(&done)
                .after(&|scene| files::write(&newest(scene).join("backup/1/manifest.json"), b"{")),
            case("a list that is gone", &["undo"])
                .model(&[BREAKS_THE_BUILD, MENDS_IT])
                .after(&done)
                .after(&|scene| {
                    fs::remove_file(newest(scene).join("backup/1/manifest.json")).unwrap();
                }),
            case("all that was kept is gone", &["undo"])
                .model(one)
                .after(&done)
                .after(&|scene| fs::remove_dir_all(newest(scene).join("backup")).unwrap()),
            case("an old content that is damaged", &["undo"])
                .model(one)
                .after(&done)
                .after(&damage),
            case("an old content that is gone", &["undo"])
                .model(one)
                .after(&done)
                .after(&lose),
        ],
    );
}

/// The kept content of `src/greet.sh`, the one file that was there before.
fn kept(scene: &Scene) -> PathBuf {
    let undo = newest(scene).join("backup/1");
    let others = ["manifest.json"];
    let files = fs::read_dir(undo).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|file| !others.iter().any(|other| file.ends_with(other)))
        .max()
        .unwrap()
}

fn damage(scene: &Scene) {
    files::write(&kept(scene), b"something else\n");
}

fn lose(scene: &Scene) {
    fs::remove_file(kept(scene)).unwrap();
}

#[test]
fn records_that_cannot_be_shown() {
    let (done, one) = (asked(0), &[MENDS_IT]);
    table(
        "errors_show",
        &[
            case("a journal that cannot be understood", &["show"])
                .model(one)
                .after(&done)
                .after(&forge("events.jsonl", "\"applied\"", "applied")),
            case("an answer that is gone", &["show"])
                .model(one)
                .after(&done)
                .after(&|scene| fs::remove_file(newest(scene).join("1-response.txt")).unwrap()),
        ],
    );
}
