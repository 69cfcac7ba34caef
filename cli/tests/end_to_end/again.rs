//! A supervisor starts a command any number of times, and it is paid for once.

mod power;
mod supervisor;

use std::path::Path;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};

use crate::scenes::commit::Scene as Commit;
use crate::scenes::files;
use crate::scenes::order::{BAD, GOOD, Scene as Order, greet};

#[test]
fn an_unfinished_run_of_another_query_is_named_with_its_ways_out_and_a_new_one_begins() {
    let scene = Commit::stopped(&[MENDS_IT]);
    scene.write("agent-config/query.txt", "Say good bye.\n");
    let ran = scene.commit(&[]);
    assert_eq!((ran.code, scene.runs().len()), (Some(0), 2), "{ran}");
    let named = "for another query or other settings, is not finished: code-commit resume [STAMP]-commit continues it, \
         code-commit undo [STAMP]-commit takes it back";
    ran.err_has(named);
}

#[test]
fn a_finished_run_is_answered_from_the_record_under_its_key_alone() {
    let scene =
        Commit::with_replies([MENDS_IT, TOUCHES_GIT, TOUCHES_GIT, TOUCHES_GIT, TOUCHES_GIT]);
    scene.commit(&["--key", "ticket 7"]).exits(0);
    let again = scene.commit(&["--key", "ticket 7"]);
    assert_eq!((again.code, scene.calls()), (Some(0), 1), "{again}");
    again.err_has("[STAMP]-commit is already finished; no model was called\n");
    again.out_has("✓ done after 1 round: the build passes\n");
    assert_eq!(scene.runs().len(), 1);

    let other = scene.commit(&["--key", "ticket 7", "--max-time", "1h"]);
    assert_eq!((other.code, scene.calls()), (Some(3), 1), "{other}");
    other.err_has("the key was used for other work: [STAMP]-commit\n");

    let person = scene.commit(&[]);
    assert_eq!((person.code, scene.calls()), (Some(1), 5), "{person}");
}

#[test]
fn a_run_that_was_killed_before_its_journal_does_not_use_up_its_key() {
    let scene = Commit::with_replies([MENDS_IT, MENDS_IT]);
    assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
    let is_early = |path: &Path| {
        ["run.json", "1-query.txt"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    for path in files::entries(&scene.runs()[0])
        .into_iter()
        .filter(|path| !is_early(path))
    {
        code_commit_dir::remove(&path).unwrap();
    }
    scene.git(&["add", "README.md"]);
    let again = scene.commit(&["--key", "k"]);
    assert_eq!((again.code, scene.calls()), (Some(0), 2), "{again}");
}

/// As if another program had made the run.
fn edit_plan(root: &Path, run: &Path, from: &str, to: &str) {
    let list = root.join(".git/code-commit/known-runs.json");
    let plan = files::text(&run.join("run.json"));
    let other = plan.replace(from, to);
    assert_ne!(other, plan);
    let hash = |text: &str| code_commit_logging::sha256_hex(text.as_bytes());
    files::write(
        &list,
        files::text(&list).replace(&hash(&plan), &hash(&other)),
    );
    files::write(&run.join("run.json"), other);
}

/// As if a newer program had made the run.
fn recorded_by_a_newer_one(root: &Path, run: &Path) {
    let format = |number: u32| format!("\"record_format\": {number}");
    edit_plan(
        root,
        run,
        &format(code_commit_perform::RECORD_FORMAT),
        &format(99),
    );
}

#[test]
fn a_run_of_another_format_is_shown_and_neither_continued_nor_undone() {
    let scene = Commit::with_replies([BREAKS_THE_BUILD]);
    assert_eq!(scene.commit(&["--max-calls", "1"]).code, Some(4));
    recorded_by_a_newer_one(scene.project.root(), &scene.runs()[0]);
    for command in ["resume", "undo"] {
        let refused = scene.run(&[command]);
        assert!(
            refused.code == Some(3) && refused.err.contains("was recorded by another version"),
            "{command}: {refused}"
        );
    }
    assert_eq!(scene.run(&["show"]).code, Some(0));
}

#[test]
fn a_run_of_another_version_still_answers_under_its_key_if_its_record_has_the_same_format() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let scene = Commit::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
    edit_plan(
        scene.project.root(),
        &scene.runs()[0],
        &version,
        "\"version\": \"0.0.1\"",
    );
    let again = scene.commit(&["--key", "k"]);
    assert_eq!((again.code, scene.calls()), (Some(0), 1), "{again}");
}

#[test]
fn a_key_whose_run_cannot_be_read_any_more_is_refused_and_new_pays_again() {
    let newer = |scene: &Commit, run: &Path| recorded_by_a_newer_one(scene.project.root(), run);
    let changed =
        |_: &Commit, run: &Path| files::write(&run.join("1-response.json"), "another answer");
    for (what, change) in [
        ("another format", &newer as &dyn Fn(&Commit, &Path)),
        ("1-response.json", &changed),
    ] {
        let scene = Commit::with_replies([MENDS_IT, MENDS_IT]);
        assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
        change(&scene, &scene.runs()[0]);
        scene.git(&["add", "README.md"]);
        let refused = scene.commit(&["--key", "k"]);
        assert_eq!(
            (refused.code, scene.calls()),
            (Some(3), 1),
            "{what}: {refused}"
        );
        let says = ["[STAMP]-commit", what, "--new"];
        assert!(
            says.iter().all(|part| refused.err.contains(part)),
            "{refused}"
        );
        assert_eq!(scene.commit(&["--key", "k", "--new"]).code, Some(0));
    }
}

#[test]
fn an_order_that_is_done_is_answered_from_the_record_whatever_its_verdict() {
    for (reply, code, verdict) in [(GOOD, 0, "PASS"), (BAD, 1, "FAIL")] {
        let scene = Order::with(&[&greet(reply), &greet(reply)]);
        let more = ["--max-attempts", "1"];
        let first = scene.run(&more).exits(code);
        let again = scene.run(&more);
        assert_eq!(
            (again.code, scene.calls()),
            (Some(code), 1),
            "{}",
            again.err
        );
        assert_eq!(
            again.out, first.out,
            "before the check that the tree is clean"
        );
        again.err_has(" is already finished; no model was called; --new does it again\n");
        assert!(again.out.contains(verdict) && scene.runs().len() == 1);
    }
}

#[test]
fn the_verdict_of_an_order_does_not_hold_for_another_tree_unless_its_commit_is_in_the_history() {
    let scene = Order::with(&[&greet(GOOD), &greet(GOOD)]);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    scene.write("later.txt", "later\n");
    scene.project.commit("later").unwrap();
    let again = scene.run(&["--commit"]);
    assert_eq!((again.code, scene.calls()), (Some(0), 1), "{}", again.err);
    scene.git(&["reset", "-q", "--hard", "HEAD~2"]);
    let without = scene.run(&["--commit"]);
    assert_eq!(
        (without.code, scene.calls()),
        (Some(0), 2),
        "{}",
        without.err
    );
}
