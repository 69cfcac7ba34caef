//! What the record is good for: resume, replay, runs, show.

use std::os::unix::fs::symlink;
use std::path::Path;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::Ran;

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
    let mut resumed = 0;
    // Four rounds are five lines each (asked, attempted, answered, applied, built) and the end.
    for after in 1..=21 {
        resumed += u32::from(kill_and_resume(after));
    }
    println!("killed 21 times, went on {resumed} times, every answered call paid for once");
    assert!(
        resumed >= 15,
        "most kills came too late to prove anything: {resumed}"
    );
}

#[test]
fn a_finished_run_comes_out_the_same_when_it_is_replayed() {
    let scene = Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let before = scene.server.requests().len();
    insta::assert_snapshot!(scene.run(&["replay"]), @"
    exit 0
    --- out
    the same prompts, the same files, the same end
    changed files: 2, SHA-256 over their paths and hashes b167faf040b0bf78ee6784e3931ce44635a3d1a65d2e249837fd336ff6684171
    --- err
    ");
    assert_eq!(scene.server.requests().len(), before);
    assert_eq!(scene.runs().len(), 1, "a replay makes no run of its own");
}

#[test]
fn a_record_that_somebody_has_changed_is_not_replayed() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let run = scene.runs().pop().unwrap();
    // Somebody edits the record: the prompt of the second round held another build output then.
    let forged = scene.recorded("1-build.txt").replace("FAILED", "FOILED");
    std::fs::File::create(run.join("1-build.txt"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, forged.as_bytes()))
        .unwrap();
    let ran = scene.run(&["replay"]);
    assert_ne!(ran.code, Some(0), "{ran}");
    assert!(
        ran.err.contains("is not the file that was recorded"),
        "{ran}"
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
fn a_replay_without_a_place_for_its_copy_is_refused_with_a_hint() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ran = scene.run_with(&["replay"], &[("TMPDIR", "/nonexistent")]);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(
        ran.err
            .contains(" help: check that TMPDIR or /tmp is writable"),
        "{ran}"
    );
    assert_eq!(scene.run(&["replay"]).code, Some(0));
}

#[test]
fn each_run_that_is_listed_says_which_loop_made_it() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
        .project
        .write(
            "agent-config/gemini-system-prompt.txt",
            b"Answer with files.\n",
        )
        .unwrap();
    let args = [
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
        "--model",
        "gemini-test",
    ];
    let ran = scene.run_keyed(&args);
    assert_eq!(ran.code, Some(0), "{ran}");
    scene
        .project
        .write("agent-config/reply.txt", BREAKS_THE_BUILD.as_bytes())
        .unwrap();
    assert_eq!(
        scene.run(&["apply", "agent-config/reply.txt"]).code,
        Some(0)
    );
    let listed = scene.run(&["runs", "--json"]);
    let loops: Vec<String> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["loop"].to_string())
        .collect();
    assert_eq!(
        loops,
        ["\"apply\"", "\"implement\"", "\"commit\""],
        "{listed}"
    );
    let shown: serde_json::Value =
        serde_json::from_str(&scene.run(&["show", "--json"]).out).unwrap();
    assert_eq!(shown["loop"], "apply");
}

/// A run of two rounds, and what somebody does to the project or to the record behind it.
fn replayed_after(change: impl Fn(&Scene)) -> Ran {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    change(&scene);
    scene.run(&["replay"])
}

#[test]
fn what_a_build_changes_between_two_rounds_is_no_difference() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    let build = "#!/bin/sh\necho '# formatted' >> src/greet.sh\nexec sh tests/greet_test.sh\n";
    scene.project.write("build.sh", build.as_bytes()).unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ran = scene.run(&["replay"]);
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn what_a_path_was_refused_for_is_in_the_replayed_project_too() {
    let names = ["link/x", "pipe", "twin.sh", "nested/x", "excluded.txt"];
    let refused = names.map(|name| format!("^^^{name}\nx\n^^^end\n"));
    let replies = refused.iter().map(String::as_str).take(3).chain([MENDS_IT]);
    let scene = Scene::with_replies(replies);
    let root = scene.project.root();
    symlink("/etc", root.join("link")).unwrap();
    scene.project.commit("a link").unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        pipe,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    std::fs::hard_link(root.join("build.sh"), root.join("twin.sh")).unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ran = scene.run(&["replay"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let scene = Scene::with_replies(refused.iter().map(String::as_str).skip(3).chain([MENDS_IT]));
    scene.project.git(&["init", "-q", "nested"]).unwrap();
    scene
        .project
        .write(".git/info/exclude", b"excluded.txt\n")
        .unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ran = scene.run(&["replay"]);
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn a_path_that_is_ignored_now_is_the_first_difference() {
    let ran = replayed_after(|scene| {
        scene
            .project
            .write(".gitignore", b"/agent-config\n/README.md\n")
            .unwrap()
    });
    insta::assert_snapshot!(ran, @"
    exit 1
    --- out
    what the reply changed of round 2 differs
    recorded: src/greet.sh: b04e19cec7400e272a321493531163985824459ed2eea8efc31cb4268f43ae13 -> f21e8a370868a4ecd31630888a6e297ee41b04d6e642e6c745bd859145ee9485
    now:      ignored: `README.md` is ignored by git; leave it as it is.
    --- err
    ");
}

#[test]
fn what_has_the_place_of_a_file_or_a_folder_now_does_not_stand_in_the_way_of_a_replay() {
    let ran = replayed_after(|scene| {
        let root = scene.project.root();
        std::fs::remove_file(root.join("README.md")).unwrap();
        scene
            .project
            .write("README.md/mine.txt", b"mine\n")
            .unwrap();
        std::fs::remove_dir_all(root.join("src")).unwrap();
        scene.project.write("src", b"mine\n").unwrap();
    });
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn a_tree_that_cannot_be_put_back_as_it_was_is_the_first_difference() {
    let ran = replayed_after(|scene| {
        std::fs::remove_dir_all(scene.runs().pop().unwrap().join("undo")).unwrap();
    });
    insta::assert_snapshot!(ran, @"
    exit 1
    --- out
    what the reply changed of round 1 differs
    recorded: src/greet.sh: 338dc264e495200f9d5ad0a5d567d6636c22b8037b704f69a72386fe3a78e082 -> b04e19cec7400e272a321493531163985824459ed2eea8efc31cb4268f43ae13
    now:      src/greet.sh: f21e8a370868a4ecd31630888a6e297ee41b04d6e642e6c745bd859145ee9485 -> b04e19cec7400e272a321493531163985824459ed2eea8efc31cb4268f43ae13
    --- err
    ");
}

#[test]
fn a_difference_as_json_is_one_object() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
        .project
        .write(".gitignore", b"/agent-config\n/README.md\n")
        .unwrap();
    insta::assert_snapshot!(scene.run(&["replay", "--json"]), @r#"
    exit 1
    --- out
    {"now":"ignored: `README.md` is ignored by git; leave it as it is.","recorded":"src/greet.sh: b04e19cec7400e272a321493531163985824459ed2eea8efc31cb4268f43ae13 -> f21e8a370868a4ecd31630888a6e297ee41b04d6e642e6c745bd859145ee9485","round":2,"same":false,"what":"what the reply changed"}
    --- err
    "#);
}

#[test]
fn what_the_project_holds_elsewhere_has_no_say_in_a_replay() {
    let ran = replayed_after(|scene| {
        scene
            .project
            .write("build.sh", b"#!/bin/sh\necho something else; exit 7\n")
            .unwrap();
        scene
            .project
            .write("src/greet.sh", b"# mine, since the run\n")
            .unwrap();
        scene
            .project
            .write("agent-config/query.txt", b"something else\n")
            .unwrap();
    });
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.out
            .contains("the same prompts, the same files, the same end"),
        "{ran}"
    );
}

#[test]
fn a_prompt_that_was_changed_in_the_record_is_named_and_nothing_is_replayed() {
    for prompt in ["1-query.txt", "2-query.txt"] {
        let ran = replayed_after(|scene| {
            let path = scene.runs().pop().unwrap().join(prompt);
            let text = scene.recorded(prompt).replacen("the", "THE", 1);
            std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes())
                .unwrap();
        });
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran}");
        assert!(
            ran.err
                .contains(&format!("{prompt} is not the file that was recorded")),
            "{ran}"
        );
    }
}

#[test]
fn another_reply_to_the_last_round_is_judged_and_built_on_what_came_before() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ask = |reply: &str| {
        scene
            .project
            .write("agent-config/other", reply.as_bytes())
            .unwrap();
        scene.run(&[
            "replay",
            "--from-round",
            "2",
            "--reply",
            "agent-config/other",
        ])
    };
    insta::assert_snapshot!("what_if_refused", ask(TOUCHES_GIT));
    insta::assert_snapshot!("what_if_no_reply", ask("^^^src/greet.sh\necho\n"));
    insta::assert_snapshot!("what_if_broken", ask("^^^src/greet.sh\necho bye\n^^^end\n"));
    insta::assert_snapshot!("what_if_passes", ask(MENDS_IT));
    scene
        .project
        .write("build.sh", b"#!/bin/sh\necho the build of today; exit 7\n")
        .unwrap();
    let today = ask(MENDS_IT);
    assert_eq!(today.code, Some(1), "{today}");
    assert!(
        today.out.contains("the build of today\nexit code: 7"),
        "{today}"
    );
    scene.project.git(&["checkout", "-q", "build.sh"]).unwrap();
    assert_eq!(
        scene.project.status().unwrap(),
        " M src/greet.sh\n?? README.md\n",
        "the tree was touched"
    );
    assert_eq!((scene.runs().len(), scene.server.requests().len()), (1, 2));
}

#[test]
fn what_if_the_model_had_answered_otherwise() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
        .project
        .write("agent-config/other", MENDS_IT.as_bytes())
        .unwrap();
    scene
        .project
        .write("agent-config/bad", TOUCHES_GIT.as_bytes())
        .unwrap();
    let args = |file| ["replay", "--from-round", "1", "--reply", file];
    let better = scene.run(&args("agent-config/other"));
    insta::assert_snapshot!(better, @"
    exit 0
    --- out
    round 1  wrote src/greet.sh
    round 1  created README.md
    round 1  build: exit code 0, 1-build.txt
    ok: a name is greeted
    ok: nobody is the world
    exit code: 0
    --- err
    sandbox: OFF, commands run with all your rights (asked for)
    ");
    let worse = scene.run(&args("agent-config/bad"));
    assert_eq!(worse.code, Some(1), "{worse}");
    assert_eq!(
        scene.project.status().unwrap(),
        " M src/greet.sh\n?? README.md\n"
    );
}

#[test]
fn another_reply_is_tried_without_the_model_that_gave_the_first_one() {
    let scene = Scene::with_replies([]);
    scene
        .project
        .write("agent-config/replies.txt", MENDS_IT.as_bytes())
        .unwrap();
    scene
        .project
        .write("agent-config/other", TOUCHES_GIT.as_bytes())
        .unwrap();
    assert_eq!(
        scene
            .run(&[
                "--model",
                "scripted/agent-config/replies.txt",
                "--sandbox",
                "off"
            ])
            .code,
        Some(0)
    );
    std::fs::remove_file(scene.project.root().join("agent-config/replies.txt")).unwrap();
    let ask = |more: &[&str]| {
        scene.run(
            &[
                &[
                    "replay",
                    "--from-round",
                    "1",
                    "--reply",
                    "agent-config/other",
                ],
                more,
            ]
            .concat(),
        )
    };
    assert!(ask(&[]).out.ends_with("the reply would be refused\n"));
    let refused: serde_json::Value = serde_json::from_str(&ask(&["--json"]).out).unwrap();
    assert_eq!(
        (&refused["applied"]["what"], &refused["built"]),
        (&"rejected".into(), &serde_json::Value::Null)
    );
    scene
        .project
        .write("agent-config/other", MENDS_IT.as_bytes())
        .unwrap();
    assert_eq!(ask(&[]).code, Some(0));
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
fn nothing_behind_a_link_is_copied_for_a_replay() {
    let scene = Scene::with_replies(["^^^up/deep/x.txt\nx\n^^^end\n", MENDS_IT]);
    let elsewhere = scene.project.beside().join("elsewhere/deep");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::File::create(elsewhere.join("x.txt")).unwrap();
    symlink("../elsewhere", scene.project.root().join("up")).unwrap();
    scene.project.commit("a link").unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let scratch = scene.project.beside().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let ran = scene.run_with(&["replay"], &[("TMPDIR", scratch.to_str().unwrap())]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
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
    std::fs::remove_file(applied.join("undo/1/manifest.json")).unwrap();
    let listed = scene.run(&["runs"]);
    assert!(
        listed.out.contains("-apply  nothing was done, rounds 0\n"),
        "{listed}"
    );
    assert!(scene.run(&["undo"]).out.contains("restored src/greet.sh"));
}

#[test]
fn runs_and_show_tell_that_a_run_was_undone() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    insta::assert_snapshot!(scene.run(&["runs"]), @"
    exit 0
    --- out
    [STAMP]-commit  done, rounds 1, cost unknown, [TIME], undone since  The tests in tests/greet_test.sh fail. Make greet say the na…
    --- err
    ");
    assert!(
        scene
            .run(&["show"])
            .out
            .starts_with("[STAMP]-commit, undone since\n")
    );
    for command in ["runs", "show"] {
        let line: serde_json::Value =
            serde_json::from_str(&scene.run(&[command, "--json"]).out).unwrap();
        assert_eq!(line["undone"], true, "{command}");
    }
}

#[test]
fn runs_and_show_tell_what_happened() {
    let scene = Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    insta::assert_snapshot!(scene.run(&["runs"]), @"
    exit 0
    --- out
    [STAMP]-commit  done, rounds 3, cost unknown, [TIME]  The tests in tests/greet_test.sh fail. Make greet say the na…
    --- err
    ");
    insta::assert_snapshot!(scene.run(&["show"]), @r#"
    exit 0
    --- out
    [STAMP]-commit
    The tests in tests/greet_test.sh fail. Make greet say the na…
    round 1  asked: 1-query.txt, 3.1 kB
    round 1  gemini-test replied: 1-response.txt, 815 tokens in, 51 out, cost unknown
    round 1  refused: `.git/hooks/pre-commit` is or looks like git's own folder; leave it as it is. [dot-git]
    round 2  asked: 2-query.txt, 3.5 kB
    round 2  gemini-test replied: 2-response.txt, 937 tokens in, 24 out, cost unknown
    round 2  wrote src/greet.sh
    round 2  build: exit code 1, 2-build.txt
    round 3  asked: 3-query.txt, 3.6 kB
    round 3  gemini-test replied: 3-response.txt, 958 tokens in, 100 out, cost unknown
    round 3  wrote src/greet.sh
    round 3  created README.md
    round 3  build: exit code 0, 3-build.txt
    round 3  build without the changes: exit code 1
    ended: done
    files: agent-config/logs/[STAMP]-commit
    --- /dev/null
    +++ b/README.md
    @@ -0,0 +1,3 @@
    +# greet
    +
    +`greet NAME` says hello to NAME. Without a name it says hello to the world.
    --- a/src/greet.sh
    +++ b/src/greet.sh
    @@ -1,4 +1,4 @@
    -# greet NAME: says hello to somebody.
    +# greet [NAME]: says hello to somebody, or to the world.
     greet() {
    -    echo "Hello!"
    +    echo "Hello, ${1:-world}!"
     }
    --- err
    "#);
    let object: serde_json::Value =
        serde_json::from_str(&scene.run(&["show", "--json"]).out).unwrap();
    assert_eq!(object["files"][0]["path"], "README.md");
    assert_eq!(object["facts"].as_array().unwrap().len(), 16);
}

#[test]
fn a_run_that_is_over_is_not_gone_on_with() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let ran = scene.run_keyed(&["resume"]);
    insta::assert_snapshot!(ran, @"
    exit 7
    --- out
    --- err
    error: [STAMP]-commit is over
     help: start a new run; to see what this one did: code-commit show [STAMP]-commit
    ");
}

#[test]
fn what_stood_between_two_writes_of_a_run_is_kept_and_named() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    let build = scene.project.read("build.sh").unwrap().replacen(
        '\n',
        "\necho precious >> src/greet.sh\n",
        1,
    );
    scene.project.write("build.sh", build.as_bytes()).unwrap();
    scene.project.commit("a build that writes").unwrap();
    let ran = scene.commit(&[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.err.contains("the build changed: M src/greet.sh\n"),
        "{ran}"
    );
    let folder = scene.runs().pop().unwrap().join("undo/2");
    let old = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(old.into_iter().any(|text| text.ends_with("precious\n")));
}

#[test]
fn of_a_file_that_was_removed_between_two_writes_nobody_says_that_it_is_kept() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    scene
        .project
        .write("build.sh", b"#!/bin/sh\nrm src/greet.sh\nexit 1\n")
        .unwrap();
    let ran = scene.commit(&["--rounds", "2"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err.contains("the build changed: D src/greet.sh\n"),
        "{ran}"
    );
    assert!(!ran.err.contains("is kept in"), "{ran}");
    let prompt = std::fs::read_to_string(scene.runs().pop().unwrap().join("2-query.txt")).unwrap();
    assert!(
        prompt.contains("[code-commit] The build itself changed:\nD src/greet.sh\n"),
        "{prompt}"
    );
}

#[test]
fn fixed_replies_go_on_where_they_were() {
    let scene = Scene::with_replies([]);
    let replies = format!("{BREAKS_THE_BUILD}--- next reply ---\n{MENDS_IT}");
    scene
        .project
        .write("agent-config/replies.txt", replies.as_bytes())
        .unwrap();
    let model = "scripted/agent-config/replies.txt";
    assert_eq!(
        scene
            .run(&["--model", model, "--sandbox", "off", "--max-calls", "1"])
            .code,
        Some(4)
    );
    let resumed = scene.run(&["resume", "--max-calls", "2"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
}

#[test]
fn a_run_that_was_refused_before_its_first_step_is_not_the_newest() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene
        .project
        .write(
            "agent-config/query.txt",
            format!("Use {KEY} for it.\n").as_bytes(),
        )
        .unwrap();
    assert_eq!(scene.commit(&[]).code, Some(3));
    assert!(scene.run(&["undo"]).out.contains("src/greet.sh"));
}

#[test]
fn a_run_is_named_by_the_path_that_its_last_line_shows_too() {
    let scene = Scene::with_replies([MENDS_IT, TOUCHES_GIT, MENDS_IT]);
    let (first, second) = (scene.commit(&[]), scene.commit(&[]));
    assert_eq!(
        (first.code, second.code),
        (Some(0), Some(0)),
        "{first}{second}"
    );
    // The older one: the newest is meant without a name.
    let whole = &scene.runs()[0];
    let name = whole.file_name().unwrap().to_str().unwrap();
    let path = format!("agent-config/logs/{name}");
    let shown = |named: &str| {
        let ran = scene.run(&["show", named]);
        (ran.code, ran.out.contains("round 2"))
    };
    for named in [
        name,
        &path,
        &format!("./{path}/"),
        &format!("{path}/summary.json"),
        whole.to_str().unwrap(),
    ] {
        assert_eq!(shown(named), (Some(0), false), "{named}");
    }
    for other in [
        "agent-config/logs",
        "agent-config/logs/none",
        &format!("elsewhere/{name}"),
    ] {
        assert_eq!(shown(other), (Some(3), false), "{other}");
    }
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

#[test]
fn runs_tell_what_was_asked_what_it_cost_and_how_long_it_took() {
    let scene = Scene::with_replies([MENDS_IT]);
    let query = format!(
        "\n  Make\u{200b} it say hello, {}\nand more\n",
        "please ".repeat(20)
    );
    scene
        .project
        .write("agent-config/query.txt", query.as_bytes())
        .unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    insta::assert_snapshot!(scene.run(&["runs"]), @r"
    exit 0
    --- out
    [STAMP]-commit  done, rounds 1, cost unknown, [TIME]  Make\u{200b} it say hello, please please please please please pleas…
    --- err
    ");
    let json: serde_json::Value =
        serde_json::from_str(scene.run(&["runs", "--json"]).out.trim()).unwrap();
    assert!(
        json["query"]
            .as_str()
            .unwrap()
            .starts_with("Make\u{200b} it say hello, please "),
        "{json}"
    );
    assert!(
        json["elapsed_ms"].is_u64() && json["cost_usd"].is_null(),
        "{json}"
    );
}
