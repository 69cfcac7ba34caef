//! A session of eight steps, two of them killed at a random system call and done again. `SESSIONS=50` plays as many; `SESSION_SEED`
//! chooses other places.

use std::fs;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::kills::{Dice, chosen, places, strace_works, traced};
use crate::scenes::program::Ran;

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
const QUIET: &str = "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nTEN\n";
const LOUD: &str = "ONE!\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nTEN!\n";
/// The kills of a session.
const KILLS: usize = 2;

/// Something that a person does, which can be done again after a kill.
struct Deed {
    words: &'static [&'static str],
    /// What `lines.txt` and `french.txt` hold afterwards.
    then: (&'static str, Option<&'static str>),
}

const MAKE: Deed = deed(&["-m", "Make it pass."], (QUIET, None));
const SAY_IT_LOUD: Deed = deed(&["again", "-m", "Say it loud."], (LOUD, None));
const REDO: Deed = deed(&["redo"], (LOUD, None));
const UNDO_A_FILE: Deed = deed(&["undo", "@", "lines.txt"], (QUIET, None));
const LOOK: Deed = deed(&["diff", "@"], (LOUD, None));
const IN_FRENCH: Deed = deed(&["again", "-m", "In French, too."], (LOUD, Some("un\n")));
const NOT_IN_FRENCH: Deed = deed(&["undo", "@", "french.txt"], (LOUD, None));
const PAGES: Deed = deed(&["page", "--all", "-o", "site"], (LOUD, None));

const fn deed(words: &'static [&'static str], then: (&'static str, Option<&'static str>)) -> Deed {
    Deed { words, then }
}

/// A person at work, who does again what was killed.
struct Session {
    scene: Scene,
    dice: Dice,
    /// The steps that are killed.
    killed: Vec<usize>,
    step: usize,
    story: String,
}

impl Session {
    fn new(seed: usize) -> Self {
        let file = |path: &str, text: &str| format!("^^^{path}\n{text}^^^end\n");
        let french = Script::new([]).rule("In French", Step::text(&file("french.txt", "un\n")));
        let loud = french.rule("Say it loud", Step::text(&file("lines.txt", LOUD)));
        let made = file("lines.txt", QUIET) + &file("made.txt", "made\n");
        let files = [
            (".gitignore", "/agent-config\n/site\n"),
            ("build.sh", "#!/bin/sh\ntest -e made.txt\n"),
            ("lines.txt", LINES),
        ];
        let scene = Scene::with_files(&files, loud.rule("enerateContent", Step::text(&made)));
        let mut dice = Dice::of(seed);
        let killed = (0..KILLS).map(|_| dice.below(8)).collect();
        Self {
            scene,
            dice,
            killed,
            step: 0,
            story: format!("SESSION_SEED={seed}\n"),
        }
    }

    fn command(&self, deed: &Deed) -> std::process::Command {
        let flags = self.scene.flags();
        let words = if deed.words[0].starts_with('-') {
            [&flags[..], deed.words].concat()
        } else if deed.words[0] == "again" {
            [deed.words, &["--sandbox", "off"]].concat()
        } else {
            deed.words.to_vec()
        };
        self.scene.keyed(&words, &[])
    }

    /// The answers in the record, and the calls of the model.
    fn answers_and_calls(&self) -> (usize, usize) {
        let runs = self.scene.runs();
        let journals = runs
            .iter()
            .filter_map(|run| fs::read_to_string(run.join("events.jsonl")).ok());
        let answers = journals
            .map(|text| text.matches("\"what\":\"answered\"").count())
            .sum();
        (answers, self.scene.server.requests().len())
    }

    fn does(&mut self, deed: &Deed) {
        self.step += 1;
        let runs = self.scene.runs().len();
        if self.killed.contains(&self.step) {
            self.is_killed_at(deed);
        }
        let before = self.answers_and_calls();
        // A run that has begun is resumed.
        let has_begun = self.scene.runs().len() > runs;
        let mut command = if has_begun {
            self.scene.keyed(&["resume"], &[])
        } else {
            self.command(deed)
        };
        let mut ran = Ran::of(&mut command);
        // Killed while it wrote a file that was not committed: what was put back there looks like a change of somebody's.
        if has_begun && ran.err.contains("the tree has changed since") {
            ran = Ran::of(&mut self.scene.keyed(&["resume", "--force"], &[]));
        }
        self.story += &format!("{}: {:?}\n{ran}\n", self.step, deed.words);
        let (answers, calls) = self.answers_and_calls();
        assert_eq!(
            answers - before.0,
            calls - before.1,
            "an answer in the record is asked for again: {}",
            self.story
        );
        // What a killed command had done already is not done twice: what counts is how it looks.
        let had_done = self.killed.contains(&self.step) && matches!(ran.code, Some(3 | 7));
        let is_done = ran.code == Some(0) || had_done;
        assert!(is_done, "{}", self.story);
        self.looks(deed.then);
    }

    fn is_killed_at(&mut self, deed: &Deed) {
        // Those of a command that changes nothing are in every command.
        let log = self.scene.project.beside().join("strace");
        let all = places(&log, &self.scene.command(&["undo", "--help"], &[]));
        let (call, _) = &all[self.dice.below(all.len())];
        let inject = format!("inject={call}:signal=KILL:when={}", 1 + self.dice.below(60));
        let ran = Ran::of(&mut traced(&log, &self.command(deed), &["-e", &inject]));
        self.story += &format!("{} with {inject}\n{ran}\n", self.step);
    }

    fn looks(&self, then: (&str, Option<&str>)) {
        let read = |path: &str| fs::read_to_string(self.scene.project.root().join(path)).ok();
        assert_eq!(
            (read("lines.txt").as_deref(), read("french.txt").as_deref()),
            (Some(then.0), then.1),
            "{}",
            self.story
        );
    }
}

#[test]
fn a_session_that_is_killed_twice_loses_nothing_and_pays_for_nothing_twice() {
    if !strace_works() {
        return;
    }
    let first = chosen("SESSION_SEED", 1);
    for seed in first..first + chosen("SESSIONS", 3) {
        let mut session = Session::new(seed);
        for deed in [
            MAKE,
            SAY_IT_LOUD,
            UNDO_A_FILE,
            REDO,
            LOOK,
            IN_FRENCH,
            NOT_IN_FRENCH,
            PAGES,
        ] {
            session.does(&deed);
        }
        let calls = session.scene.server.requests().len();
        assert!(
            (3..=3 + KILLS).contains(&calls),
            "{calls} calls: {}",
            session.story
        );
        assert_eq!(session.scene.runs().len(), 3, "{}", session.story);
    }
}
