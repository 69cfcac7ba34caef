//! Agents, files and commands that do not behave.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::scenes::program::{Ran, interrupt, must_have};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene, event, is_alive, names};
use crate::spec::waiting::{states, watch};

#[test]
fn a_marker_in_a_code_fence_counts_and_words_behind_it_do_no_harm() {
    let scene = Scene::new(&[
        PLAN,
        "say '```xml\n<DONE>\nall of it\n</DONE>\n```\nThat was it. <PLAN_COMPLETE>not mine</PLAN_COMPLETE>'",
        APPROVE,
    ]);
    let (code, events) = scene.events();
    assert_eq!(
        (code, &event(&events, "Done")["content"]),
        (Some(0), &json!("all of it"))
    );
}

#[test]
fn an_empty_marker_says_that_nothing_was_said() {
    let scene = Scene::new(&[
        PLAN,
        DONE,
        "say '<REQUEST_CHANGES></REQUEST_CHANGES>'",
        "cat $WIP.review.md > $HOME/review",
    ]);
    scene.run();
    let review = std::fs::read_to_string(scene.home().join("review")).unwrap();
    must_have(&review, "requested changes and did not say which");
    let scene = Scene::new(&["say '<SPEC_ISSUE> </SPEC_ISSUE>'"]);
    assert_eq!(scene.run().code, Some(6));
    let issue = scene.read(&format!(
        ".cuggino/spec-issues/{}",
        scene.stored("spec-issues")[0]
    ));
    assert_eq!(
        issue,
        "The planning agent found a problem in the specs and did not say where.\n"
    );
    let scene = Scene::new(&[PLAN, "echo new > src.txt; say '<DONE></DONE>'", APPROVE]);
    scene.configure(&json!({ "commit": true }));
    scene.run();
    assert_eq!(
        scene.git(&["log", "-1", "--format=%s"]),
        "a task of the plan is done\n"
    );
}

#[test]
fn a_marker_of_a_megabyte_is_committed_with_its_beginning() {
    let long = "echo new > src.txt; line \"{\\\"type\\\":\\\"assistant\\\",\\\"message\\\":{\\\"content\\\":[{\\\"type\\\":\\\"text\\\",\
        \\\"text\\\":\\\"<DONE>big\\n\\nin detail: $(head -c 1000000 /dev/zero | tr '\\0' 'é')\\u0000</DONE>\\\"}]}}\"; last=x";
    let scene = Scene::new(&[PLAN, long, APPROVE]);
    scene.configure(&json!({ "commit": true }));
    let (code, events) = scene.events();
    assert_eq!(
        (code, names(&events).contains(&"CommitFailed")),
        (Some(0), false)
    );
    let message = scene.git(&["log", "-1", "--format=%B"]);
    assert!(message.starts_with("big\n\nin detail: "), "{message}");
    assert!(
        (65_000..70_000).contains(&message.len()),
        "{}",
        message.len()
    );
}

#[test]
fn files_of_the_backlog_that_are_no_tasks_are_named_and_passed_over() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    scene.write(".cuggino/backlog/z\nlast.md", "do Z\n");
    scene.write(".cuggino/backlog/a.md", " \n");
    scene.write(".cuggino/backlog/c.md/inside", "x");
    std::fs::write(scene.root().join(".cuggino/backlog/b.md"), b"\xff\xfe").unwrap();
    symlink(
        scene.root().join("src.txt"),
        scene.root().join(".cuggino/backlog/d.md"),
    )
    .unwrap();
    let (events, _) = watch(&scene, "BacklogEmpty");
    let parked = "ItemParked ItemParked ItemParked ItemParked";
    assert_eq!(
        states(&events),
        format!("{parked} ProcessingItem ItemCompleted BacklogEmpty")
    );
    assert!(scene.prompt(1).contains("do Z"));
    assert_eq!(scene.stored("backlog"), ["a.md", "b.md", "c.md", "d.md"]);
    let parked = events.iter().filter(|event| event["event"] == "ItemParked");
    let parked: Vec<Value> = parked
        .map(|event| json!([event["filename"], event["reason"]]))
        .collect();
    let wanted = json!([
        ["a.md", "is empty"],
        ["b.md", "is not UTF-8"],
        ["c.md", "is not a file"],
        ["d.md", "is not a file"]
    ]);
    assert_eq!(json!(parked), wanted);
}

#[test]
fn a_second_watch_is_refused() {
    let scene = Scene::new(&["sleep 600"]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let args = ["spec", "watch", "--sandbox", "off", "--json"];
    let mut first = scene
        .command(&args, &[])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(first.stdout.as_mut().unwrap()),
        &mut line,
    )
    .unwrap();
    assert!(line.contains("ProcessingItem"), "{line}");
    let second = scene.spec(&["watch"]).exits(3);
    second.err_has("a watch is already running");
    interrupt(&first);
    assert_eq!(first.wait().unwrap().code(), Some(130));
}

#[test]
fn a_watch_that_was_killed_goes_on_with_the_turn_that_it_was_at() {
    let heard = "while ! grep -qs '\"init\"' .git/code-commit/spec/*/2-*output.jsonl; do :; done";
    let scene = Scene::new(&[
        PLAN,
        &format!("{heard}; kill -9 $PPID; exit 1"),
        DONE,
        APPROVE,
    ]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    assert_eq!((scene.spec(&["watch"]).code, scene.calls()), (None, 2));
    let (events, _) = watch(&scene, "BacklogEmpty");
    assert_eq!(
        (states(&events).as_str(), scene.calls()),
        ("ProcessingItem ItemCompleted BacklogEmpty", 4)
    );
    let session = scene
        .arguments(2)
        .split("--session-id\n")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    must_have(&scene.arguments(3), &format!("--resume\n{session}\n"));
}

/// Without a sandbox an agent outlives its harness, and goes on writing.
#[test]
fn whatever_command_comes_after_a_kill_ends_the_agent_that_outlived_its_harness_and_removes_its_folder()
 {
    let outlives =
        "ls $HOME/tmp > $HOME/folders; echo $$ > $HOME/pid; kill -9 $PPID; exec sleep 600";
    let next: [&[&str]; 5] = [
        &["spec", "run", "--resume", "--sandbox", "off"],
        &["spec", "run", "--focus", "Y", "--sandbox", "off"],
        &["spec", "audit", "--sandbox", "off"],
        &["spec", "status"],
        &["runs"],
    ];
    for (args, has_git) in next.into_iter().zip([true, true, true, false, true]) {
        let scene = Scene::new(&[outlives, "exit 1", "exit 1"]);
        if !has_git {
            std::fs::remove_dir_all(scene.root().join(".git")).unwrap();
        }
        let temporary = scene.home().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let environment = [("TMPDIR", temporary.to_str().unwrap())];
        let run = ["spec", "run", "--focus", "X", "--sandbox", "off"];
        let killed = Ran::of(&mut scene.command(&run, &environment));
        assert_eq!(killed.code, None);
        let of_home = |name: &str| std::fs::read_to_string(scene.home().join(name)).unwrap();
        assert!(
            is_alive(of_home("pid").trim()),
            "{args:?}: there is something to be ended"
        );
        assert_eq!(
            of_home("folders").lines().count(),
            1,
            "{args:?}: there is something to be removed"
        );
        scene.command(args, &environment).output().unwrap();
        assert!(!is_alive(of_home("pid").trim()), "{args:?}");
        assert_eq!(
            std::fs::read_dir(&temporary).unwrap().count(),
            0,
            "{args:?}"
        );
    }
}

/// A scene whose agent may change neither `tests` nor the configuration.
fn protected(turns: &[&str]) -> Scene {
    let scene = Scene::new(turns);
    scene.write("tests/t.sh", "mine\n");
    scene.write("code-commit.toml", "protect = ['tests/**']\n");
    scene
}

#[test]
fn what_a_turn_may_not_change_is_put_back_although_the_harness_was_killed_in_it() {
    let evil =
        "echo EVIL > tests/t.sh; echo x > tests/new; echo mine > src.txt; kill -9 $PPID; exit 1";
    let scene = protected(&[
        PLAN,
        evil,
        "cat tests/* src.txt > $HOME/seen; say '<DONE>all</DONE>'",
        APPROVE,
    ]);
    assert_eq!(scene.run().code, None);
    assert_eq!(scene.read("tests/t.sh"), "EVIL\n");
    let ran = scene.spec(&["run", "--resume"]).exits(0);
    let seen = std::fs::read_to_string(scene.home().join("seen")).unwrap();
    assert_eq!(seen, "mine\nmine\n");
    for file in ["tests/t.sh", "tests/new"] {
        ran.err_has(&format!("{file} may not be changed by the agent"));
    }
}

#[test]
fn a_run_does_not_go_on_with_the_configuration_of_an_agent_that_killed_it() {
    let evil = "echo EVIL > tests/t.sh; echo > code-commit.toml; kill -9 $PPID; exit 1";
    let scene = protected(&[PLAN, evil, DONE, APPROVE]);
    assert_eq!(scene.run().code, None);
    let first = scene.spec(&["run", "--resume"]);
    assert_eq!((first.code, scene.calls()), (Some(3), 2), "{}", first.err);
    assert_eq!(scene.read("code-commit.toml"), "protect = ['tests/**']\n");
    assert_eq!(
        (scene.spec(&["run", "--resume"]).code, scene.calls()),
        (Some(0), 4)
    );
    assert_eq!(scene.read("tests/t.sh"), "mine\n");
}

#[test]
fn a_tree_that_an_agent_has_made_hard_to_read_is_put_back() {
    let evil = "echo EVIL > tests/t.sh; chmod 000 tests/t.sh tests; name=$(printf '%0100d' 0); top=$PWD; \
        for i in $(seq 60); do mkdir $name; cd -P $name; done; echo x > deep; cd $top; say '<DONE>all</DONE>'";
    let scene = protected(&[PLAN, evil, APPROVE]);
    let ran = scene.run().exits(0);
    assert_eq!(scene.read("tests/t.sh"), "mine\n");
    ran.err_has("tests/t.sh may not be changed by the implementing agent");
}

/// Without a sandbox an agent can do to the copies what it likes.
#[test]
fn a_tree_that_cannot_be_put_back_ends_the_run_with_its_own_exit_code() {
    let evil = "echo EVIL > tests/t.sh; echo EVIL > tests/u.sh; rm .git/code-commit/spec/*/backup/before/files/tests/t.sh.before; say '<DONE>all</DONE>'";
    let scene = protected(&[PLAN, evil]);
    scene.write("tests/u.sh", "mine\n");
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(5), 2), "{}", ran.err);
    ran.err_has("cannot restore tests/t.sh");
    assert_eq!(scene.read("tests/u.sh"), "mine\n");
    assert_eq!(
        (scene.spec(&["run", "--resume"]).code, scene.calls()),
        (Some(5), 2)
    );
}

#[test]
fn a_check_that_hangs_or_goes_into_the_background_is_ended() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    scene.configure(&json!({ "checkCommand": "setsid sleep 600 & echo $! >> .git/children; test -e slow && sleep 600; touch slow" }));
    let ran = scene.spec(&["run", "--focus", "X", "--command-timeout", "1s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out_has("[Check] Completed (exit 0)\n")
        .out_has("[Check] Failed: it ");
    must_have(&scene.prompt(3), "The check command ");
    let children = scene.read(".git/children");
    assert_eq!(
        (children.lines().count(), children.lines().any(is_alive)),
        (2, false)
    );
}

/// Without a sandbox an agent can do to `.git` what it likes.
#[test]
fn a_reviewer_that_resets_the_work_tree_has_it_put_back() {
    let evil = "git reset -q --hard; git clean -qfd; say '<APPROVED>good</APPROVED>'";
    let scene = Scene::new(&[PLAN, DONE, evil]);
    scene.write("mine.txt", "mine\n");
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(0), 3), "{}", ran.err);
    assert_eq!(
        (scene.read("src.txt"), scene.read("mine.txt")),
        ("new\n".to_owned(), "mine\n".to_owned())
    );
}

#[test]
fn hooks_of_an_agent_are_not_run_by_our_commits() {
    let hook = "mkdir hooks; printf '#!/bin/sh\\ntouch %s/hooked\\n' $HOME > hooks/pre-commit; chmod +x hooks/pre-commit; \
        cp hooks/pre-commit .git/hooks/post-commit; git config core.hooksPath hooks";
    let scene = Scene::new(&[PLAN, &format!("{hook}; {DONE}"), APPROVE]);
    scene.configure(&json!({ "commit": true }));
    assert_eq!(scene.run().code, Some(0));
    assert_eq!(scene.git(&["log", "--format=%s"]), "the last task\nfirst\n");
    assert!(!scene.home().join("hooked").exists());
}

#[test]
fn an_agent_that_cleans_the_work_tree_does_not_lose_the_plan() {
    let scene = Scene::new(&[
        PLAN,
        "git clean -qfdx; say '<NOTE>seen</NOTE>'; rm -r .cuggino; say '<PROGRESS>one</PROGRESS>'; rm -r .cuggino",
        "cat $WIP.md > $HOME/session; echo new > src.txt; say '<DONE>all</DONE>'",
        APPROVE,
    ]);
    scene.run().exits(0);
    let session = std::fs::read_to_string(scene.home().join("session")).unwrap();
    assert_eq!(
        session,
        "# Plan\n- [ ] one\n\n# Progress Log\n\n<NOTE>\nseen\n</NOTE>\n\n<PROGRESS>\none\n</PROGRESS>\n\n"
    );
}
