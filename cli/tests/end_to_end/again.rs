//! A supervisor starts a command any number of times, and it is paid for once.

mod power;
mod supervisor;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Stdio};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Hang, Script, Step};
use serde_json::json;

use crate::scenes::commit::Scene as Commit;
use crate::scenes::files;
use crate::scenes::order::{BAD, FILES, GOOD, Scene as Order, greet, order, proposal};
use crate::scenes::program::{Ran, interrupt};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec};

/// A run of the default loop that Ctrl-C stopped while the model thought about its second prompt; what the model
/// says then.
fn stopped(then: &[&str]) -> Commit {
    let thinks = Step::text("").hang(Hang::BeforeHead);
    let steps = [Step::text(BREAKS_THE_BUILD), thinks]
        .into_iter()
        .chain(then.iter().map(|text| Step::text(text)));
    let scene = Commit::new(Script::new(steps));
    let mut child = started(&scene, &[]);
    scene.server.wait_for_requests(2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    scene
}

fn started(scene: &Commit, more: &[&str]) -> Child {
    let args = [&scene.flags()[..], more].concat();
    scene
        .keyed(&args, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn an_unfinished_run_of_another_query_is_named_with_its_ways_out_and_a_new_one_begins() {
    let scene = stopped(&[MENDS_IT]);
    scene
        .project
        .write("agent-config/query.txt", b"Say good bye.\n")
        .unwrap();
    let ran = scene.commit(&[]);
    assert_eq!((ran.code, scene.runs().len()), (Some(0), 2), "{ran}");
    let named = "for another query or other settings, is not finished: code-commit resume [STAMP]-commit continues it, \
         code-commit undo [STAMP]-commit takes it back";
    assert!(ran.err.contains(named), "{ran}");
}

#[test]
fn new_begins_anew() {
    let scene = stopped(&[MENDS_IT]);
    let ran = scene.commit(&["--new"]);
    assert_eq!((ran.code, scene.runs().len()), (Some(0), 2), "{ran}");
    assert!(!ran.err.contains("not finished"), "{ran}");
}

#[test]
fn a_run_whose_files_were_changed_since_is_not_gone_on_with_by_itself() {
    let scene = stopped(&[MENDS_IT]);
    scene
        .project
        .write("src/greet.sh", b"greet() { echo mine; }\n")
        .unwrap();
    let ran = scene.commit(&[]);
    assert_eq!(scene.runs().len(), 2, "{ran}");
    assert!(
        ran.err.contains("has changed since") && ran.err.contains("so a new run begins"),
        "{ran}"
    );
}

#[test]
fn a_finished_run_is_answered_from_the_record_under_its_key_alone() {
    let scene =
        Commit::with_replies([MENDS_IT, TOUCHES_GIT, TOUCHES_GIT, TOUCHES_GIT, TOUCHES_GIT]);
    let first = scene.commit(&["--key", "ticket 7"]);
    assert_eq!(first.code, Some(0), "{first}");
    let again = scene.commit(&["--key", "ticket 7"]);
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(0), 1),
        "{again}"
    );
    assert!(
        again
            .err
            .contains("[STAMP]-commit is already finished; no model was called\n"),
        "{again}"
    );
    assert!(
        again
            .out
            .contains("✓ done after 1 round: the build passes\n"),
        "{again}"
    );
    assert_eq!(scene.runs().len(), 1);

    let other = scene.commit(&["--key", "ticket 7", "--max-time", "1h"]);
    assert_eq!(
        (other.code, scene.server.requests().len()),
        (Some(3), 1),
        "{other}"
    );
    assert!(
        other
            .err
            .contains("the key was used for other work: [STAMP]-commit\n"),
        "{other}"
    );

    let person = scene.commit(&[]);
    assert_eq!(
        (person.code, scene.server.requests().len()),
        (Some(1), 5),
        "{person}"
    );
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
    scene.project.git(&["add", "README.md"]).unwrap();
    let again = scene.commit(&["--key", "k"]);
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(0), 2),
        "{again}"
    );
}

#[test]
fn a_result_does_not_hold_for_files_that_were_changed_since() {
    let scene = Commit::with_replies([MENDS_IT, MENDS_IT]);
    assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
    scene.project.write("README.md", b"mine\n").unwrap();
    scene.project.git(&["add", "README.md"]).unwrap();
    let again = scene.commit(&["--key", "k"]);
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(0), 2),
        "{again}"
    );
    assert!(
        again
            .err
            .contains("the files are no longer as [STAMP]-commit left them"),
        "{again}"
    );
}

#[test]
fn a_failed_run_under_a_key_is_answered_with_its_exit_code() {
    let scene = Commit::with_replies([TOUCHES_GIT; 4]);
    for _ in 0..2 {
        let ran = scene.commit(&["--key", "k"]);
        assert_eq!(
            (ran.code, scene.server.requests().len()),
            (Some(1), 4),
            "{ran}"
        );
    }
}

#[test]
fn a_run_under_a_key_holds_for_the_whole_tree_also_where_it_was_restored_or_nothing_was_written() {
    let restore = &["--key", "k", "--on-failure", "restore"][..];
    for (more, reply) in [(restore, BREAKS_THE_BUILD), (&restore[..2], TOUCHES_GIT)] {
        let scene = Commit::with_replies([reply; 8]);
        for _ in 0..2 {
            let ran = scene.commit(more);
            assert_eq!(
                (ran.code, scene.server.requests().len()),
                (Some(1), 4),
                "{ran}"
            );
        }
        scene.project.write("README.md", b"mine\n").unwrap();
        let again = scene.commit(more);
        assert_eq!(
            (again.code, scene.server.requests().len()),
            (Some(1), 8),
            "{again}"
        );
        assert!(
            again
                .err
                .contains("the files are no longer as [STAMP]-commit left them"),
            "{again}"
        );
    }
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
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(0), 1),
        "{again}"
    );
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
        scene.project.git(&["add", "README.md"]).unwrap();
        let refused = scene.commit(&["--key", "k"]);
        assert_eq!(
            (refused.code, scene.server.requests().len()),
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
fn an_order_under_a_key_whose_run_cannot_be_read_any_more_is_refused_and_new_pays_again() {
    let newer = |scene: &Order, run: &Path| recorded_by_a_newer_one(scene.root(), run);
    let changed = |_: &Order, run: &Path| {
        files::write(&run.join("attempt_1/response.json"), "another answer");
    };
    for (what, change) in [
        ("another format", &newer as &dyn Fn(&Order, &Path)),
        ("response.json", &changed),
    ] {
        let scene = Order::with(&[&greet(GOOD), &greet(GOOD)]);
        assert_eq!(scene.run(&["--key", "k", "--commit"]).code, Some(0));
        let run = scene.runs()[0].clone();
        change(&scene, &run);
        let refused = scene.run(&["--key", "k", "--commit"]);
        assert_eq!(
            (refused.code, scene.server.requests().len()),
            (Some(3), 1),
            "{what}: {refused}"
        );
        let name = run.file_name().unwrap().to_str().unwrap();
        assert!(
            [name, what, "--new"]
                .iter()
                .all(|part| refused.err.contains(part)),
            "{refused}"
        );
    }
}

#[test]
fn the_verdict_of_an_order_whose_record_was_changed_does_not_count() {
    let scene = Order::with(&[&greet(BAD), &greet(BAD)]);
    let more = ["--max-attempts", "1"];
    assert_eq!(scene.run(&more).code, Some(1));
    let summary = scene.runs()[0].join("run_summary.json");
    let passed = files::text(&summary)
        .replace("\"verdict\": \"FAIL\"", "\"verdict\": \"PASS\"")
        .replace(
            "\"ended_stage\": \"acceptance_failed\"",
            "\"ended_stage\": \"success\"",
        );
    assert_ne!(passed, files::text(&summary));
    files::write(&summary, passed);
    let shown = Ran::of(&mut scene.program(&["runs"]));
    assert!(!shown.out.contains("PASS"), "{}", shown.out);
    let again = Ran::of(&mut scene.command(&more));
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(1), 2),
        "{}",
        again.err
    );
    assert!(
        again
            .err
            .contains("was changed, so its verdict does not count\n"),
        "{}",
        again.err
    );
}

/// An order that Ctrl-C stopped while the model thought about its second attempt; what the model says then.
fn stopped_order(more: &[&str], then: &[&str]) -> Order {
    let thinks = Step::text("").hang(Hang::BeforeHead);
    let then: Vec<String> = then.iter().map(|reply| greet(reply)).collect();
    let steps = [Step::text(&greet(BAD)), thinks]
        .into_iter()
        .chain(then.iter().map(|text| Step::text(text)));
    let scene = Order::scripted(&FILES, Script::new(steps));
    let mut child = scene
        .command(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    scene.server.wait_for_requests(2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    scene
}

#[test]
fn an_order_begins_anew_where_that_is_asked_for() {
    for (more, then, asked) in [(&[][..], &[GOOD][..], 3), (&["--new"], &[BAD, GOOD], 4)] {
        let scene = stopped_order(&[], then);
        let ran = scene.run(more);
        assert_eq!(
            (ran.code, scene.server.requests().len()),
            (Some(0), asked),
            "{}",
            ran.err
        );
        assert_eq!(
            scene.runs().len(),
            1 + more.len(),
            "the unfinished one is kept beside it"
        );
    }
}

#[test]
fn an_order_under_a_key_is_the_work_of_that_key_alone() {
    let key = ["--key", "ticket 7"];
    let scene = stopped_order(&key, &[GOOD, GOOD]);
    for _ in 0..2 {
        let ran = scene.run(&key);
        assert_eq!(
            (ran.code, scene.server.requests().len()),
            (Some(0), 3),
            "{}",
            ran.err
        );
    }
    let other = scene.run(&["--key", "ticket 7", "--max-attempts", "1"]);
    assert_eq!(
        (other.code, scene.server.requests().len()),
        (Some(3), 3),
        "{}",
        other.err
    );
    assert!(
        other.err.contains("the key was used for other work: "),
        "{}",
        other.err
    );
    let without = scene.run(&[]);
    assert_eq!(
        (without.code, scene.server.requests().len()),
        (Some(0), 3),
        "{}",
        without.err
    );

    scene.project.git(&["checkout", "-q", "."]).unwrap();
    let another = scene.run(&["--key", "ticket 8"]);
    assert_eq!(
        (another.code, scene.server.requests().len()),
        (Some(0), 4),
        "{}",
        another.err
    );
}

#[test]
fn several_orders_share_a_key_in_whatever_sequence() {
    let scene = Order::with(&[&greet(GOOD), &proposal("src/new.sh", None, "#!/bin/sh\n")]);
    scene.place(
        "one.json",
        order(&json!({ "id": "one" })).to_string().as_bytes(),
    );
    let test_new = json!({ "id": "two", "acceptance_commands": ["test -e src/new.sh"] });
    scene.place("two.json", order(&test_new).to_string().as_bytes());
    let files = [scene.beside("one.json"), scene.beside("two.json")];
    let [one, two] = files.each_ref().map(|file| file.to_str().unwrap());
    let more = |one, two| [one, two, "--commit", "--key", "tickets"];
    for _ in 0..2 {
        let ran = scene.run(&more(one, two));
        assert_eq!(
            (ran.code, scene.server.requests().len()),
            (Some(0), 2),
            "{}{}",
            ran.out,
            ran.err
        );
    }
    let turned = scene.run(&more(two, one));
    assert_eq!(
        (turned.code, scene.server.requests().len()),
        (Some(0), 2),
        "{}",
        turned.err
    );
}

#[test]
fn an_order_that_is_done_is_answered_from_the_record_whatever_its_verdict() {
    for (reply, code, verdict) in [(GOOD, 0, "PASS"), (BAD, 1, "FAIL")] {
        let scene = Order::with(&[&greet(reply), &greet(reply)]);
        let more = ["--max-attempts", "1"];
        let first = scene.run(&more);
        assert_eq!(first.code, Some(code), "{}", first.err);
        let again = scene.run(&more);
        assert_eq!(
            (again.code, scene.server.requests().len()),
            (Some(code), 1),
            "{}",
            again.err
        );
        assert_eq!(
            again.out, first.out,
            "before the check that the tree is clean"
        );
        assert!(
            again
                .err
                .contains(" is already finished; no model was called; --new does it again\n"),
            "{}",
            again.err
        );
        assert!(again.out.contains(verdict) && scene.runs().len() == 1);
    }
}

#[test]
fn the_verdict_of_an_order_does_not_hold_for_another_tree_unless_its_commit_is_in_the_history() {
    let scene = Order::with(&[&greet(GOOD), &greet(GOOD)]);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    scene.project.write("later.txt", b"later\n").unwrap();
    scene.project.commit("later").unwrap();
    let again = scene.run(&["--commit"]);
    assert_eq!(
        (again.code, scene.server.requests().len()),
        (Some(0), 1),
        "{}",
        again.err
    );
    scene
        .project
        .git(&["reset", "-q", "--hard", "HEAD~2"])
        .unwrap();
    let without = scene.run(&["--commit"]);
    assert_eq!(
        (without.code, scene.server.requests().len()),
        (Some(0), 2),
        "{}",
        without.err
    );
}

#[test]
fn the_same_spec_goes_on_with_its_unfinished_run() {
    for more in [&[][..], &["--new"]] {
        let then = if more.is_empty() {
            [DONE, APPROVE, ""]
        } else {
            [PLAN, DONE, APPROVE]
        };
        let scene = Spec::new(&[&[PLAN, "kill -9 $PPID; exit 1"][..], &then].concat());
        let args = [&["run", "--focus", "Add X"][..], more].concat();
        assert_eq!(scene.spec(&args).code, None);
        let again = scene.spec(&args);
        assert_eq!(again.code, Some(0), "{}", again.err);
        let runs = files::entries(scene.root().join(".git/code-commit/spec"));
        assert_eq!(
            again.err.contains("resuming "),
            more.is_empty(),
            "{}",
            again.err
        );
        assert_eq!(runs.len(), 1 + more.len(), "{}", again.err);
    }
}

#[test]
fn an_order_is_not_answered_after_a_change_of_a_mode_or_of_a_symlink() {
    let scene = Order::with(&[&greet(GOOD)]);
    let (tests, link) = (scene.root().join("tests/run.sh"), scene.root().join("link"));
    let set_mode = |mode| fs::set_permissions(&tests, fs::Permissions::from_mode(mode)).unwrap();
    let lead_to = |target| {
        drop(fs::remove_file(&link));
        symlink(target, &link).unwrap();
    };
    set_mode(0o755);
    lead_to("src/other.txt");
    scene.project.commit("a program and a link").unwrap();
    assert_eq!(scene.run(&[]).code, Some(0));
    let is_answered = || scene.run(&[]).err.contains("already finished");
    assert!(is_answered());
    set_mode(0o644);
    assert!(!is_answered());
    set_mode(0o755);
    lead_to("src/greet.sh");
    assert!(!is_answered());
    lead_to("src/other.txt");
    assert!(is_answered());
}

#[test]
fn an_order_whose_file_changed_while_it_was_verified_is_not_committed() {
    let scene = Order::with(&[&greet(GOOD)]);
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", "sh -c 'echo \"# saved\" >>src/greet.sh'"] }));
    let ran = scene.run(&["--commit"]);
    let commits = scene.project.git(&["rev-list", "--count", "HEAD"]).unwrap();
    assert_eq!((ran.code, commits.trim()), (Some(1), "1"), "{}", ran.err);
    assert!(ran.err.contains("src/greet.sh"), "{}", ran.err);
    let again = scene.run(&["--commit"]);
    assert_eq!(again.code, Some(3), "{}", again.err);
}
