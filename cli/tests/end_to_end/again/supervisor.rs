//! A supervisor starts the same command until it ends, however often something kills it.
//!
//! `SUPERVISOR_KILLS=300` kills each loop that often, each time at a random system call; `SUPERVISOR_SEED` chooses other places.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};

use crate::scenes::commit::Scene as Commit;
use crate::scenes::kills::{Dice, places, strace_works, traced};
use crate::scenes::order::{BAD, FILES, GOOD, Scene as Order, greet};
use crate::scenes::program::Ran;
use crate::scenes::size::chosen;

/// Kills of each loop without `SUPERVISOR_KILLS`.
const KILLS: usize = 5;
/// A start that is killed early only notes that the run was resumed, so the next one is let go on to its end.
const KILLS_IN_A_ROW: usize = 4;

/// What the supervisor was told to get done.
pub(super) trait Work {
    fn command(&self) -> Command;
    /// Another command in the same project.
    fn program(&self, args: &[&str]) -> Command;
    fn project(&self) -> &Project;
    fn server(&self) -> &Server;
    fn runs(&self) -> Vec<PathBuf>;
}

impl Work for Commit {
    fn command(&self) -> Command {
        self.keyed(&[&self.flags()[..], &["--key", "ticket 7"]].concat(), &[])
    }

    fn program(&self, args: &[&str]) -> Command {
        self.keyed(args, &[])
    }

    fn project(&self) -> &Project {
        &self.project
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn runs(&self) -> Vec<PathBuf> {
        self.runs()
    }
}

/// An order with these flags besides.
pub(super) struct Ordered(Order, &'static [&'static str]);

impl Work for Ordered {
    fn command(&self) -> Command {
        self.0
            .command(&[&["--max-attempts", "2", "--commit"], self.1].concat())
    }

    fn program(&self, args: &[&str]) -> Command {
        self.0.program(args)
    }

    fn project(&self) -> &Project {
        &self.0.project
    }

    fn server(&self) -> &Server {
        &self.0.server
    }

    fn runs(&self) -> Vec<PathBuf> {
        self.0.runs()
    }
}

/// Three rounds: a reply that is refused, one that fails the build, one that passes. The service knows a prompt by what went wrong
/// before it, so that it does not matter how often it is asked.
pub(super) fn commit() -> Commit {
    let third = Script::new([]).rule("got 'Hello, !'", Step::text(MENDS_IT));
    let second = third.rule(".git/hooks/pre-commit", Step::text(BREAKS_THE_BUILD));
    Commit::new(second.rule("POST ", Step::text(TOUCHES_GIT)))
}

/// Two attempts: one that fails its acceptance command, one that passes.
pub(super) fn order(more: &'static [&'static str]) -> Ordered {
    let second = Script::new([]).rule("got: hello; you", Step::text(&greet(GOOD)));
    Ordered(
        Order::scripted(&FILES, second.rule("POST ", Step::text(&greet(BAD)))),
        more,
    )
}

/// Every prompt, in the order in which they came first, and how often each came.
pub(super) fn asked(work: &impl Work) -> Vec<(String, usize)> {
    let mut asked: Vec<(String, usize)> = Vec::new();
    for seen in work.server().requests() {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        match asked.iter_mut().find(|(known, _)| *known == body) {
            Some((_, count)) => *count += 1,
            None => asked.push((body, 1)),
        }
    }
    asked
}

/// How many answers a journal holds.
fn answered(work: &impl Work) -> usize {
    let count = |run: PathBuf| {
        let journal = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
        let whole = journal
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        whole
            .filter(|line| line.contains("\"what\":\"answered\""))
            .count()
    };
    work.runs().into_iter().map(count).max().unwrap_or_default()
}

/// The files of the tree that git does not ignore, and what git says of them.
pub(super) fn tree(work: &impl Work) -> BTreeMap<String, String> {
    let git = |args: &[&str]| work.project().git(args).unwrap();
    let files = git(&["ls-files", "--cached", "--others", "--exclude-standard"]);
    let content = |file: &str| (file.to_owned(), work.project().read(file).unwrap());
    let said = [vec!["status", "--porcelain"], vec!["log", "--format=%s"]];
    files
        .lines()
        .map(content)
        .chain(said.map(|args| (args.join(" "), git(&args))))
        .collect()
}

/// Starts the command until it ends. At most so many starts are killed; no prompt comes again whose answer is in a journal. The first
/// answers, as many as `given`, need no prompt at all.
fn supervised(
    work: &impl Work,
    given: usize,
    most: usize,
    mut place: impl FnMut() -> String,
) -> (Ran, Vec<String>) {
    let log = work.project().beside().join("strace");
    let mut killed = Vec::new();
    loop {
        let (paid, before) = (answered(work).saturating_sub(given), asked(work));
        let at = place();
        let inject = format!("inject={at}");
        let ran = if killed.len() < most {
            Ran::of(&mut traced(&log, &work.command(), &["-e", &inject]))
        } else {
            Ran::of(&mut work.command())
        };
        assert_eq!(
            asked(work)[..paid],
            before[..paid],
            "paid for twice, killed at {killed:?}, {at}: {ran}"
        );
        if ran.code.is_some() {
            return (ran, killed);
        }
        assert!(
            killed.len() < most,
            "killed at {killed:?}, then by itself: {ran}"
        );
        killed.push(at);
    }
}

/// So many `calls` are to be paid for.
fn campaign<W: Work>(calls: usize, scene: impl Fn() -> W) {
    if !strace_works() {
        return;
    }
    let undisturbed = scene();
    let places = places(
        &undisturbed.project().beside().join("strace"),
        &undisturbed.command(),
    );
    let (end, prompts) = (tree(&undisturbed), asked(&undisturbed));
    assert!(
        prompts.len() == calls && prompts.iter().all(|(_, times)| *times == 1),
        "{prompts:?}"
    );
    let given = answered(&undisturbed) - calls;
    let (wanted, seed) = (
        chosen("SUPERVISOR_KILLS", KILLS),
        chosen("SUPERVISOR_SEED", 1),
    );
    let (mut dice, mut kills) = (Dice::of(seed), 0);
    while kills < wanted {
        let work = scene();
        let place = || {
            let (call, count) = &places[dice.below(places.len())];
            format!("{call}:signal=KILL:when={count}")
        };
        let (ran, killed) = supervised(&work, given, KILLS_IN_A_ROW.min(wanted - kills), place);
        let case = format!("SUPERVISOR_SEED={seed}, killed at {killed:?}: {ran}");
        assert_eq!(ran.code, Some(0), "{case}");
        assert_eq!(tree(&work), end, "{case}");
        let came: Vec<String> = asked(&work).into_iter().map(|(body, _)| body).collect();
        assert!(
            came.iter().eq(prompts.iter().map(|(body, _)| body)),
            "{case}"
        );
        kills += killed.len();
    }
    eprintln!(
        "{kills} kills, each at one of {} system calls",
        places.len()
    );
}

#[test]
fn the_default_loop_that_is_killed_and_started_again_comes_to_the_end_of_an_undisturbed_run() {
    campaign(3, commit);
}

#[test]
fn an_order_that_is_killed_and_started_again_comes_to_the_end_of_an_undisturbed_run() {
    campaign(2, || order(&[]));
}
