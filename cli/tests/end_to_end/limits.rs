//! Limits that a run may not pass, and what a run costs.

use std::io::Write as _;
use std::time::{Duration, Instant};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Hang, Script, Step};
use serde_json::json;

use crate::scenes::commit::Scene;
use crate::scenes::program::Ran;

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
fn an_answer_is_paid_for_by_the_price_of_the_model() {
    let scene = scene(&[BREAKS_THE_BUILD, MENDS_IT]);
    let ran = scene.commit(&[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    // Twice 1,000 tokens in and 200 out.
    assert!(ran.out.contains(" · $0.0060 · "), "{ran}");
}

#[test]
fn the_last_allowed_call_is_made_and_the_next_is_not() {
    let scene = scene(&[BREAKS_THE_BUILD; 4]);
    let ran = scene.commit(&["--max-calls", "2"]);
    insta::assert_snapshot!(ran, @"
    exit 4
    --- out
    ✗ failed in round 3: the limit of 2 calls is reached
      M src/greet.sh +1 −1 (named by the build)
      2 rounds · 2,000 tokens in, 400 out · $0.0060 · [TIME] · agent-config/logs/[STAMP]-commit
      next: raise --max-calls if it is worth that · code-commit resume [STAMP]-commit · git diff · code-commit undo
    --- err
    sandbox: OFF, commands run with all your rights (asked for)
    round 1/4  asking gemini/gemini-test (3.1 kB)
    round 1/4  replied in [TIME]: 95 B, 1,000 tokens in, 200 out
    round 1/4  wrote src/greet.sh
    round 1/4  build failed: exit code 1 ([TIME])
               ok: a name is greeted
               FAILED: nobody is the world: expected 'Hello, world!', got 'Hello, !'
               exit code: 1
    round 2/4  asking gemini/gemini-test (3.6 kB)
    round 2/4  replied in [TIME]: 95 B, 1,000 tokens in, 200 out
    round 2/4  unchanged: src/greet.sh
    round 2/4  build failed: exit code 1 ([TIME])
               ok: a name is greeted
               FAILED: nobody is the world: expected 'Hello, world!', got 'Hello, !'
               exit code: 1
    round 3/4  no reply: the limit of 2 calls is reached
    ");
    assert_eq!(scene.server.requests().len(), 2);
    assert!(scene.recorded("events.jsonl").contains("\"limit-calls\""));
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
    assert!(
        ran.err
            .contains("build failed: it ran out of time and was killed"),
        "{ran}"
    );
    assert!(
        ran.err.contains("--build-timeout allows more time"),
        "{ran}"
    );
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
    let ran = scene.commit(&flags);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err
            .contains("`output_limit` of `[build]` lets it print more"),
        "{ran}"
    );
    scene.user_file("[build]\noutput_limit = \"1KiB\"\n");
    scene.project.git(&["add", "README.md"]).unwrap();
    assert_eq!(scene.commit(&flags).code, Some(0));
}

#[test]
fn a_build_that_starts_too_many_processes_says_so_and_names_its_setting() {
    let scene = scene(&[MENDS_IT]);
    scene.user_file("[build]\nprocesses = 10\n");
    let build = "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait'";
    let ran = scene.commit(&["--build-command", build, "--rounds", "1"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err
            .contains("build failed: it started too many processes and was killed"),
        "{ran}"
    );
    assert!(
        ran.err
            .contains("`processes` of `[build]` lets it start more"),
        "{ran}"
    );
    let said = scene.recorded("1-build.txt");
    assert!(
        said.ends_with("no exit code: the build started too many processes and was killed\n"),
        "{said}"
    );
}

#[test]
fn a_run_that_a_limit_ended_goes_on_under_a_higher_one() {
    let scene = scene(&[BREAKS_THE_BUILD, BREAKS_THE_BUILD, MENDS_IT]);
    let ran = scene.commit(&["--max-calls", "2"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.out.contains(" · code-commit resume "), "{ran}");

    let same_limit = scene.run(&["resume"]);
    assert_eq!(same_limit.code, Some(4), "{same_limit}");
    assert_eq!(scene.server.requests().len(), 2);
    let higher = scene.run(&["resume", "--max-calls", "3"]);
    assert_eq!(higher.code, Some(0), "{higher}");
    assert_eq!(
        scene.server.requests().len(),
        3,
        "an answered call was asked for twice"
    );
    assert_eq!(
        scene.run(&["resume"]).code,
        Some(7),
        "a run that is done does not go on"
    );
    let shown = scene.run(&["show"]);
    assert!(
        shown
            .out
            .contains("round 3  the run was stopped, and continued here\n"),
        "{shown}"
    );
}

/// The code that the summary gives, and the exit code.
fn ended(scene: &Scene, ran: &Ran) -> (Option<i32>, String) {
    let summary: serde_json::Value = serde_json::from_str(&scene.recorded("summary.json")).unwrap();
    (
        ran.code,
        summary
            .pointer("/cause/code")
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned(),
    )
}

#[test]
fn a_call_that_ends_for_lack_of_time_names_the_limit_and_how_to_raise_it() {
    let silent = || Step::text("").hang(Hang::BeforeHead).times(3);
    // Silence is tried again where there is time for it.
    let whole = "--stream=false";
    let (open, short) = ("", "[model]\ncall_limit = \"1s\"\n");
    for (file, more, wanted, named, requests) in [
        (
            open,
            &["--max-time", "1s"][..],
            "limit-time",
            "--max-time",
            1,
        ),
        (short, &[], "timeout", "`call_limit`", 1),
        (short, &["--max-time", "1h"], "timeout", "`call_limit`", 1),
        (open, &["--timeout", "1s"], "idle", "--timeout", 3),
        (open, &["--timeout", "1s", whole], "idle", "--timeout", 1),
        (short, &[whole], "timeout", "`call_limit`", 1),
    ] {
        let scene = Scene::new(Script::new([silent()]));
        scene.user_file(file);
        let ran = scene.commit(more);
        assert_eq!(
            ended(&scene, &ran),
            (Some(4), wanted.to_owned()),
            "{more:?}: {ran}"
        );
        assert_eq!(scene.server.requests().len(), requests, "{more:?}: {ran}");
        assert!(ran.out.contains(named), "{more:?}: {ran}");
    }
}

#[test]
fn a_quota_that_is_reset_later_than_a_run_waits_ends_it_with_the_time_at_which_to_come_again() {
    let daily = Step {
        quota_id: Some("GenerateRequestsPerDayPerProject".into()),
        ..Step::status(429)
    };
    let daily = daily.header("date", "Mon, 23 Nov 2026 05:59:30 GMT");
    for (quota, more) in [
        (Step::status(429).header("retry-after", "7230"), &[][..]),
        (
            Step::status(429).header("retry-after", "7230"),
            &["--wait", "1h"],
        ),
        (
            Step::status(429).header("retry-after", "7230"),
            &["--wait", "9h", "--max-time", "1h"],
        ),
        (daily, &[]),
    ] {
        let scene = Scene::new(Script::new([quota]));
        let ran = scene.commit(more);
        assert_eq!(
            (ran.code, scene.server.requests().len()),
            (Some(4), 1),
            "{more:?}: {ran}"
        );
        assert!(ran.out.contains("next: try again at 20"), "{more:?}: {ran}");
        assert!(
            ran.out.contains("or let the run wait with --wait 2h2m"),
            "{more:?}: {ran}"
        );
    }
}

/// An answer that takes at least six seconds and is never silent for two.
fn trickle() -> Step {
    let step = Step {
        pieces: Some(12),
        chunk_delay_ms: 500,
        ..Step::text(MENDS_IT)
    };
    step.usage(json!({"promptTokenCount": 1000, "candidatesTokenCount": 100}))
}

#[test]
fn a_call_may_take_as_long_as_it_streams() {
    let scene = Scene::new(Script::new([trickle()]));
    let ran = scene.commit(&["--timeout", "2s"]);
    assert_eq!(
        (ran.code, scene.server.requests().len()),
        (Some(0), 1),
        "{ran}"
    );
}

#[test]
fn a_call_that_still_streams_ends_at_its_own_limit() {
    let scene = Scene::new(Script::new([trickle()]));
    scene.user_file("[model]\ncall_limit = \"3s\"\n");
    let ran = scene.commit(&[]);
    assert_eq!(
        ended(&scene, &ran),
        (Some(4), "timeout".to_owned()),
        "{ran}"
    );
    assert_eq!(scene.server.requests().len(), 1, "{ran}");
}

#[test]
fn the_time_of_a_call_that_a_limit_ended_counts_when_the_run_goes_on() {
    let scene = Scene::new(Script::new([
        Step::text("").hang(Hang::BeforeHead),
        priced(MENDS_IT),
    ]));
    assert_eq!(scene.commit(&["--max-time", "2s"]).code, Some(4));
    // What the run did besides the call took some of the two seconds and does not count.
    let passed = scene.run_keyed(&["resume", "--max-time", "1s"]);
    assert_eq!(
        (passed.code, scene.server.requests().len()),
        (Some(4), 1),
        "{passed}"
    );
    let higher = scene.run_keyed(&["resume", "--max-time", "1h"]);
    assert_eq!(
        (higher.code, scene.server.requests().len()),
        (Some(0), 2),
        "{higher}"
    );
}

#[test]
fn a_run_whose_changes_were_taken_back_does_not_go_on() {
    let scene = scene(&[BREAKS_THE_BUILD; 4]);
    let ran = scene.commit(&["--max-calls", "1", "--on-failure", "restore"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(!ran.out.contains("code-commit resume"), "{ran}");
    let resumed = scene.run(&["resume", "--max-calls", "9"]);
    assert_eq!(resumed.code, Some(7), "{resumed}");
    assert!(resumed.err.contains("is finished"), "{resumed}");
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
        assert!(
            scene
                .recorded("events.jsonl")
                .contains(&format!("\"{code}\"")),
            "{ran}"
        );
    }
}

#[test]
fn a_run_that_a_limit_kept_from_its_first_call_goes_on_under_a_higher_one() {
    for (limit, low, high) in [
        ("--max-tokens", "1500", "9000"),
        ("--max-cost", "0.001", "1"),
    ] {
        let scene = scene(&[MENDS_IT]);
        let ran = scene.commit(&[limit, low]);
        assert!(ran.out.contains(" · code-commit resume "), "{limit}: {ran}");
        let higher = scene.run_keyed(&["resume", limit, high]);
        assert_eq!(higher.code, Some(0), "{limit}: {higher}");
    }
}

#[test]
fn a_limit_on_money_is_not_kept_by_guessing_and_no_run_begins() {
    let scene = Scene::with_replies([MENDS_IT]);
    let ran = scene.commit(&["--max-cost", "100"]);
    insta::assert_snapshot!(ran, @"
    exit 3
    --- out
    --- err
    error: gemini/gemini-test: the price of this model is unknown, so the limit of $100.00 cannot be enforced
     help: put its price into [[price]] of your configuration, or drop the limit (--max-cost)
    ");
    assert_eq!((scene.server.requests().len(), scene.runs().len()), (0, 0));
}

#[test]
fn retries_are_calls_too() {
    let broken = Step::text(MENDS_IT).cut_after(200);
    let scene = Scene::new(Script::new([broken, Step::text(MENDS_IT)]));
    let ran = scene.commit(&["--max-calls", "1"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn a_run_that_goes_on_counts_what_was_spent_before() {
    let scene = scene(&[BREAKS_THE_BUILD, MENDS_IT]);
    let asked = scene.commit(&["--max-calls", "1"]);
    assert_eq!(asked.code, Some(4), "{asked}");
    // As if it had been killed in its first build.
    let journal = scene.runs().pop().unwrap().join("events.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let cut: String = text
        .split_inclusive('\n')
        .take_while(|line| !line.contains("\"built\""))
        .collect();
    std::fs::File::create(&journal)
        .unwrap()
        .write_all(cut.as_bytes())
        .unwrap();
    let resumed = scene.run_keyed(&["resume"]);
    assert_eq!(resumed.code, Some(4), "{resumed}");
    assert!(
        resumed.out.contains("the limit of 1 call is reached"),
        "{resumed}"
    );
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn who_has_applied_something_since_names_the_run_to_go_on_with() {
    let scene = scene(&[BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&["--max-calls", "1"]).code, Some(4));
    std::fs::File::create(scene.project.root().join("agent-config/reply"))
        .unwrap()
        .write_all(b"^^^other.txt\nmine\n^^^end\n")
        .unwrap();
    let applied = scene.run(&["apply", "agent-config/reply"]);
    assert_eq!(applied.code, Some(0), "{applied}");
    let ran = scene.run(&["resume", "--max-calls", "2"]);
    assert!(
        ran.code == Some(7) && ran.err.contains("-commit (just now); to continue one"),
        "{ran}"
    );
    let runs = scene.runs();
    let run = runs
        .iter()
        .find(|run| run.to_string_lossy().ends_with("-commit"))
        .unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let changed = scene.run(&["resume", name, "--max-calls", "2"]);
    assert!(
        changed.code == Some(3) && changed.err.contains("was stopped: other.txt"),
        "{changed}"
    );
    let ran = scene.run(&["resume", name, "--max-calls", "2", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran}");
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
    scene
        .project
        .write("agent-config/query.txt", b"change the model\n")
        .unwrap();
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
        assert!(!scene.project.root().join(made).exists(), "{made} {case}");
    }
}
