//! Limits that a run may not pass, and what a run costs.

use std::time::{Duration, Instant};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::json;

use crate::scenes::commit::Scene;
use crate::scenes::program::must_have;

/// What the scripted service says that each answer used.
fn priced(text: &str) -> Step {
    Step::text(text).usage(json!({
        "promptTokenCount": 1000, "candidatesTokenCount": 200, "totalTokenCount": 1200,
    }))
}

/// A scene whose model costs 1 $ a million tokens of input and 10 $ a million of output, and answers with 1,000 at most.
fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(replies.iter().map(|reply| priced(reply))));
    scene.user_file(
        "[[price]]\nprefix = \"gemini-test\"\ninput = 1.0\noutput = 10.0\nmax_output = 1000\n",
    );
    scene
}

#[test]
fn a_build_that_runs_out_of_time_says_so_and_names_its_flag() {
    let scene = scene(&[MENDS_IT]);
    let flags = [
        "--build-command",
        "sh -c 'echo begun; exec sleep 60'",
        "--build-timeout",
        "1s",
    ];
    let ran = scene.commit(&[&flags[..], &["--rounds", "1"]].concat());
    assert_eq!(ran.code, Some(1), "{ran}");
    ran.err_has("build failed: it ran out of time and was killed");
    ran.err_has("--build-timeout allows more time");
    insta::assert_snapshot!(scene.recorded("1-build.txt"), @"
    begun
    no exit code: the build ran out of time and was killed
    ");
}

#[test]
fn a_build_that_prints_too_much_says_so_and_names_its_setting() {
    let scene = scene(&[MENDS_IT, MENDS_IT]);
    let flags = ["--build-command", "echo far too much", "--rounds", "1"];
    scene.user_file("[build]\noutput_limit = \"8B\"\n");
    let ran = scene.commit(&flags).exits(1);
    ran.err_has("`output_limit` of `[build]` lets it print more");
    scene.user_file("[build]\noutput_limit = \"1KiB\"\n");
    scene.git(&["add", "README.md"]);
    assert_eq!(scene.commit(&flags).code, Some(0));
}

#[test]
fn a_build_that_starts_too_many_processes_says_so_and_names_its_setting() {
    let scene = scene(&[MENDS_IT]);
    scene.user_file("[build]\nprocesses = 10\n");
    let build = "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait'";
    let ran = scene.commit(&["--build-command", build, "--rounds", "1"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    ran.err_has("build failed: it started too many processes and was killed");
    ran.err_has("`processes` of `[build]` lets it start more");
    let said = scene.recorded("1-build.txt");
    assert!(
        said.ends_with("no exit code: the build started too many processes and was killed\n"),
        "{said}"
    );
}

#[test]
fn a_run_that_a_limit_ended_goes_on_under_a_higher_one() {
    let scene = scene(&[BREAKS_THE_BUILD, BREAKS_THE_BUILD, MENDS_IT]);
    let ran = scene.commit(&["--max-calls", "2"]).exits(4);
    ran.out_has(" · code-commit resume ");

    scene.run(&["resume"]).exits(4);
    assert_eq!(scene.calls(), 2);
    scene.run(&["resume", "--max-calls", "3"]).exits(0);
    assert_eq!(scene.calls(), 3, "an answered call was asked for twice");
    assert_eq!(
        scene.run(&["resume"]).code,
        Some(7),
        "a run that is done does not go on"
    );
    let shown = scene.run(&["show"]);
    shown.out_has("round 3  the run was stopped, and continued here\n");
}

#[test]
fn each_limit_ends_the_run_with_exit_code_4_before_it_is_passed() {
    // The service counts about 1,000 tokens of prompt, and an answer has 1,000 at most: a call may cost 0.011 $. It costs 0.003 $.
    for (limit, value, calls, code) in [
        ("--max-cost", "0.001", 0, "limit-cost"),
        ("--max-cost", "0.012", 1, "limit-cost"),
        ("--max-tokens", "1500", 0, "limit-tokens"),
        ("--max-tokens", "2500", 1, "limit-tokens"),
    ] {
        let scene = scene(&[BREAKS_THE_BUILD; 4]);
        let ran = scene.commit(&[limit, value]);
        assert_eq!(ran.code, Some(4), "{limit} {value}: {ran}");
        let calls_made = scene
            .server
            .requests()
            .iter()
            .filter(|request| !request.path.contains("countTokens"))
            .count();
        assert_eq!(calls_made, calls, "{limit} {value}: {ran}");
        must_have(&scene.recorded("events.jsonl"), &format!("\"{code}\""));
    }
}

/// A build that leaves more than can be read or judged in the time of the run: its account is not cut off, and takes seconds.
#[test]
fn a_run_ends_in_time_whatever_its_build_leaves() {
    let sparse = "#!/bin/sh\ntruncate -s 12G one.bin two.bin\n";
    let nested =
        "#!/bin/sh\ni=0; while [ $i -lt 1500 ]; do mkdir d && cd d && : > f; i=$((i+1)); done\n";
    std::thread::scope(|scope| {
        for build in [sparse, nested] {
            for sandbox in ["auto", "off"] {
                scope.spawn(move || ends_in_time(build, sandbox));
            }
        }
    });
}

fn ends_in_time(build: &str, sandbox: &str) {
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build),
        ("model", "old\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text("^^^model\nnew\n^^^end\n")]));
    scene.write("agent-config/query.txt", "change the model\n");
    let [model @ .., _, _] = &scene.flags();
    let more = ["--sandbox", sandbox, "--max-time", "6s"];
    let began = Instant::now();
    let ran = scene.run_keyed(&[model, &more[..]].concat());
    let case = format!("{sandbox}: {build}{ran}");
    assert!(began.elapsed() < Duration::from_secs(40), "{case}");
    assert!(matches!(ran.code, Some(0 | 4)), "{case}");
    // What it made is the run's, or was put back.
    let undone = scene.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{case}{undone}");
    for made in ["d", "one.bin", "two.bin"] {
        assert!(!scene.at(made).exists(), "{made} {case}");
    }
}
