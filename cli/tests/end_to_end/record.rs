//! What the record is good for: resume, runs, show.

use std::path::Path;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scenes::commit::Scene;
use crate::scenes::size::every;

/// Replies that can be told apart by what the build prints after each of them, so that a request that comes twice is answered twice alike.
fn four_rounds() -> Script {
    let reply = |number: u32| {
        let line = format!("echo 'round {number} was here' >&2; false");
        format!("^^^src/greet.sh\n{line}\n^^^end\n^^^made/by-{number}.txt\n{number}\n^^^end\n")
    };
    Script::new([])
        .rule(
            "round 3 was here",
            Step::text(&format!("{MENDS_IT}^^^made/by-1.txt\n^^^delete\n")),
        )
        .rule("round 2 was here", Step::text(&reply(3)))
        .rule("round 1 was here", Step::text(&reply(2)))
        .rule("generateContent", Step::text(&reply(1)))
        .rule("GenerateContent", Step::text(&reply(1)))
}

fn lines(journal: &Path) -> usize {
    std::fs::read_to_string(journal).map_or(0, |text| text.matches('\n').count())
}

fn count(text: &str, what: &str) -> usize {
    text.lines()
        .filter(|line| line.contains(&format!("\"what\":\"{what}\"")))
        .count()
}

/// Runs until the journal has `after` lines, kills the program with SIGKILL, and goes on. Whether there was something to go on with.
fn kill_and_resume(after: usize) -> bool {
    let scene = Scene::new(four_rounds());
    let args = scene.flags();
    let mut child = scene
        .keyed(&args, &[])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    loop {
        let journal = scene.runs().pop().map(|run| run.join("events.jsonl"));
        if journal.is_some_and(|journal| lines(&journal) >= after)
            || child.try_wait().unwrap().is_some()
        {
            break;
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let journal = scene.recorded("events.jsonl");
    let (answered, asked) = (count(&journal, "answered"), count(&journal, "asked"));
    let resumed = scene.run_keyed(&["resume"]);
    if journal.contains("\"what\":\"ended\"") {
        assert_eq!(resumed.code, Some(7), "{resumed}");
    } else {
        assert_eq!(
            resumed.code,
            Some(0),
            "killed after {after} lines: {resumed}\n{journal}"
        );
    }
    let asked_in_all = count(&scene.recorded("events.jsonl"), "asked");
    assert_eq!(
        asked_in_all - asked,
        4 - answered,
        "an answered call was asked for again"
    );
    assert!(
        scene.server.requests().len() <= asked_in_all,
        "a call was made that the record does not know of"
    );
    let tree = scene.project.status().unwrap();
    assert_eq!(
        tree, " M src/greet.sh\n?? README.md\n?? made/by-2.txt\n?? made/by-3.txt\n",
        "after {after}"
    );
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.project.status().unwrap(), "", "undone, after {after}");
    !journal.contains("\"what\":\"ended\"")
}

#[test]
fn a_build_that_is_killed_with_its_harness_leaves_nothing() {
    for goes_on in [false, true] {
        let scene = Scene::with_replies([MENDS_IT]);
        let root = scene.project.root();
        // The first time it waits for ever, in the middle of its work; once the door is gone it does its work and passes.
        let build = "#!/bin/sh
            rm -rf tests; mkdir -p planted/.git src/new
            echo 'fsmonitor = ./run' > planted/.git/config
            echo hidden > src/new/hidden; echo formatted >> src/greet.sh
            echo '*' > src/.gitignore
            test ! -p agent-config/door || read _ < agent-config/door
        ";
        scene.project.write("build.sh", build.as_bytes()).unwrap();
        scene.project.commit("a build that waits").unwrap();
        let door = root.join("agent-config/door");
        mknodat(CWD, &door, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let quiet = std::process::Stdio::null;
        let mut child = scene
            .keyed(&scene.flags(), &[])
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .unwrap();
        while !root.join("src/.gitignore").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it came to an end");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(door).unwrap();
        let next = if goes_on {
            scene.run_keyed(&["resume"])
        } else {
            scene.run(&["undo"])
        };
        assert_eq!(next.code, Some(0), "{next}");
        assert!(
            next.err.contains(
                "was killed while a command of it ran; what that had changed was restored"
            ),
            "{next}"
        );
        let tree = scene.project.status().unwrap();
        if goes_on {
            assert!(
                tree.contains(" D tests/") && tree.contains("?? src/new/"),
                "{tree}"
            );
            assert!(!root.join("src/.gitignore").exists() && !root.join("planted").exists());
            assert_eq!(scene.run(&["undo"]).code, Some(0));
        }
        assert_eq!(scene.project.status().unwrap(), "", "undone");
        let left = [
            "src/new",
            "src/new/hidden",
            "planted",
            "planted/.git",
            "planted/.git/config",
        ]
        .map(|path| root.join(path).exists());
        assert_eq!(left, [false; 5], "{next}");
    }
}

#[test]
fn a_run_killed_after_any_line_of_its_journal_goes_on_without_paying_twice() {
    // Four rounds are five lines each (asked, attempted, answered, applied, built) and the end.
    let moments: Vec<usize> = (1..=21).step_by(every()).collect();
    let kills = moments.len();
    let resumed = moments
        .into_iter()
        .filter(|after| kill_and_resume(*after))
        .count();
    println!("killed {kills} times, went on {resumed} times, every answered call paid for once");
    assert!(
        resumed >= kills * 5 / 7,
        "most kills came too late to prove anything: {resumed}"
    );
}

#[test]
fn a_run_whose_journal_was_changed_is_listed_as_damaged() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let forged = scene
        .recorded("events.jsonl")
        .replacen("\"what\"", "\"that\"", 1);
    std::fs::File::create(scene.runs().pop().unwrap().join("events.jsonl"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, forged.as_bytes()))
        .unwrap();
    let listed = scene.run(&["runs"]);
    assert!(listed.out.contains("  damaged, rounds 0  "), "{listed}");
}

#[test]
fn an_empty_list_of_runs_is_not_taken_for_one_of_no_runs() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
    std::fs::File::create(
        scene
            .project
            .root()
            .join(".git/code-commit/known-runs.json"),
    )
    .unwrap();
    let refused = scene.commit(&["--key", "k"]);
    assert_eq!(
        (refused.code, scene.server.requests().len()),
        (Some(3), 1),
        "{refused}"
    );
    assert!(
        refused.err.contains("known-runs.json") && refused.err.contains("remove it"),
        "{refused}"
    );
}

#[test]
fn a_killed_apply_is_not_listed_as_applied_and_not_meant_by_undo() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
        .project
        .write("reply", b"^^^x.txt\nx\n^^^end\n")
        .unwrap();
    assert_eq!(scene.run(&["apply", "reply"]).code, Some(0));
    // As a harness leaves it that was killed before its set was in place.
    let applied = scene
        .runs()
        .into_iter()
        .find(|run| run.display().to_string().ends_with("-apply"))
        .unwrap();
    std::fs::remove_file(applied.join("backup/1/manifest.json")).unwrap();
    let listed = scene.run(&["runs"]);
    assert!(
        listed.out.contains("-apply  nothing was done, rounds 0\n"),
        "{listed}"
    );
    assert!(scene.run(&["undo"]).out.contains("restored src/greet.sh"));
}

#[test]
fn a_run_whose_build_script_is_gone_does_not_go_on_to_pay_for_its_repair() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD]);
    let ran = scene.commit(&["--max-calls", "1"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    std::fs::remove_file(scene.project.root().join("build.sh")).unwrap();
    let resumed = scene.run_keyed(&["resume", "--max-calls", "9", "--force"]);
    assert_eq!(
        (resumed.code, scene.server.requests().len()),
        (Some(3), 1),
        "{resumed}"
    );
    assert!(resumed.err.contains("there is no build.sh"), "{resumed}");
}
