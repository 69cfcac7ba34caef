//! What the record is good for: resume, runs, show.

use std::path::Path;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scenes::commit::{KEY, Scene};

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
fn each_run_that_is_listed_says_which_loop_made_it() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene.project.git(&["add", "README.md"]).unwrap();
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

#[test]
fn a_prompt_that_was_changed_in_the_record_is_named_and_nothing_is_shown() {
    for prompt in ["1-query.txt", "2-query.txt"] {
        let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
        assert_eq!(scene.commit(&[]).code, Some(0));
        let path = scene.runs().pop().unwrap().join(prompt);
        let text = scene.recorded(prompt).replacen("the", "THE", 1);
        std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes())
            .unwrap();
        let ran = scene.run(&["show"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran}");
        assert!(
            ran.err
                .contains(&format!("{prompt} is not the file that was recorded")),
            "{ran}"
        );
    }
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
    round 1  gemini-test replied, cost unknown, 815 tokens in, 51 out, [TIME] (1-query.txt, 1-response.txt)
    round 1  The reply was refused, and nothing of it was written
    round 1  `.git/hooks/pre-commit` is or looks like git's own folder; leave it unchanged. [dot-git]
    round 2  gemini-test replied, cost unknown, 937 tokens in, 24 out, [TIME] (2-query.txt, 2-response.txt)
    round 2  The reply was written
    round 2  M src/greet.sh
    round 2  build: exit code 1, [TIME] (2-build.txt)
    round 3  gemini-test replied, cost unknown, 958 tokens in, 100 out, [TIME] (3-query.txt, 3-response.txt)
    round 3  The reply was written
    round 3  M src/greet.sh
    round 3  A README.md
    round 3  build: exit code 0, [TIME] (3-build.txt)
    ended: done
    3 rounds · 2,710 tokens in, 175 out · cost unknown · [TIME] · agent-config/logs/[STAMP]-commit
    diff --git a/README.md b/README.md
    new file mode 100644
    --- /dev/null
    +++ b/README.md
    @@ -0,0 +1,3 @@
    +# greet
    +
    +`greet NAME` says hello to NAME. Without a name it says hello to the world.
    diff --git a/src/greet.sh b/src/greet.sh
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
    assert_eq!(object["facts"].as_array().unwrap().len(), 15);
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
    error: [STAMP]-commit is finished
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
    let folder = scene.runs().pop().unwrap().join("backup/2");
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
    let first = scene.commit(&[]);
    scene.project.git(&["add", "README.md"]).unwrap();
    let second = scene.commit(&[]);
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
