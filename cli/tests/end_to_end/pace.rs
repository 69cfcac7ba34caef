//! What happens where an agent cannot work: limits are waited out, sessions go on, others work instead. The same for each loop.
//!
//! `LIMIT_SECONDS=60` makes the limits as long as real ones.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::Value;

use crate::scenes::commit::Scene as Commit;
use crate::scenes::kills::chosen;
use crate::scenes::phase::Scene as Phase;
use crate::scenes::program::Ran;
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec};

/// What a session is told that goes on.
const GO_ON: &str =
    "You were interrupted. Go on where you stopped; what you were asked to do has not changed.";
/// A time that nobody waits for.
const FAR: u64 = 4_102_444_800;

fn seconds() -> usize {
    chosen("LIMIT_SECONDS", 1)
}

/// The end of a turn of Claude Code at a limit.
fn limited(resets: &str) -> String {
    format!(
        "line '{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"resetsAt\":'{resets}'}}}}'; \
         line '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"limit\",\
         \"session_id\":\"'$session'\"}}'; exit 1"
    )
}

fn soon() -> String {
    format!("$(($(date +%s) + {}))", seconds())
}

#[test]
fn a_limit_in_the_middle_of_a_spec_is_waited_out_and_its_session_goes_on() {
    let half = format!("echo half > src.txt; tool Write src.txt; {}", limited(&soon()));
    let scene = Spec::new(&[PLAN, &half, DONE, APPROVE]);
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(0), 4), "{ran}");
    let id = |call| {
        scene.arguments(call).lines().skip_while(|arg| *arg != "--session-id").nth(1).unwrap().to_owned()
    };
    assert!(scene.arguments(3).contains(&format!("--resume\n{}\n", id(2))), "{}", scene.arguments(3));
    assert_eq!(scene.prompt(3), GO_ON);
    assert!(ran.err.contains("the agent has used up its quota: limit; waiting until 20"), "{ran}");
    assert!(!ran.err.contains("paid twice"), "{ran}");
}

#[test]
fn a_limit_in_the_middle_of_a_phase_is_waited_out_and_its_session_goes_on() {
    let half = format!(
        "echo half > half.txt; report begun; echo '{{\"type\":\"result\",\"status\":\"error\",\"error\":\
         {{\"message\":\"usage limit reached|'{}'\"}},\"stats\":{{}}}}'; exit 173",
        soon()
    );
    let scene = Phase::new(&[("builder-1", &half), ("builder-2", "cp \"$HOME/args\" resumed; report done")]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let arguments = scene.read("src/resumed");
    assert!(arguments.contains("--resume\ns-builder-1\n") && arguments.contains(GO_ON), "{arguments}");
    assert!(ran.err.contains("waiting until 20") && !ran.err.contains("paid twice"), "{ran}");
}

#[test]
fn who_edits_while_a_turn_waits_has_it_done_anew_and_the_record_says_so() {
    let half = format!("echo half > src.txt; tool Write src.txt; {}", limited("1"));
    let scene = Spec::new(&[PLAN, &half, DONE, APPROVE]);
    let args = ["spec", "run", "--focus", "Add X", "--json", "--sandbox", "off"];
    let mut run = scene.command(&args, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for line in BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == "QuotaWaitStart" {
            scene.write("mine.txt", "a person's\n");
        }
    }
    let done = run.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("its turn is done anew, and what it has used is paid twice"), "{said}");
    assert!(
        scene.prompt(3).contains("Add X") && !scene.arguments(3).contains("--resume"),
        "{}",
        scene.arguments(3)
    );
    assert_eq!(scene.read("mine.txt"), "a person's\n");
}

#[test]
fn a_limit_that_lasts_longer_than_anybody_waits_ends_the_run_and_says_when_to_come_again() {
    let scene = Spec::new(&[PLAN, &limited(&FAR.to_string())]);
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(4), 2), "{ran}");
    assert!(ran.err.contains("come again at 21") && ran.err.contains("--wait"), "{ran}");
}

#[test]
fn another_model_of_the_agent_works_where_one_is_out_of_quota_or_refuses() {
    let refused = "line '{\"type\":\"result\",\"is_error\":true,\"stop_reason\":\"refusal\",\"result\":\"I may not\"}'; exit 1";
    let scene = Spec::new(&[&limited(&FAR.to_string()), PLAN, refused, DONE, APPROVE]);
    let ran = scene.spec(&["run", "--focus", "Add X", "--model", "large,small"]);
    assert_eq!((ran.code, scene.calls()), (Some(0), 5), "{ran}");
    let model =
        |call| scene.arguments(call).lines().skip_while(|arg| *arg != "--model").nth(1).unwrap().to_owned();
    assert_eq!((1..6).map(model).collect::<Vec<_>>().join(" "), "large small large small large");
    assert!(ran.err.contains("refused to answer: I may not; Claude Code with small works instead"), "{ran}");
    let unequal = scene.spec(&["run", "--focus", "X", "--agent", "claude,codex", "--model", "a,b,c"]);
    assert_eq!(unequal.code, Some(3), "{unequal}");
    assert!(unequal.err.contains("--agent names 2 agents, and --model 3 models"), "{unequal}");
}

#[test]
fn another_model_builds_a_phase_and_a_stronger_one_repairs_it() {
    let model = "grep -A1 -x -e -m \"$HOME/args\" | tail -n 1 >> models";
    let quota = format!(
        "{model}; echo '{{\"type\":\"result\",\"status\":\"error\",\"error\":{{\"message\":\"daily quota\"}},\"stats\":{{}}}}'; exit 173"
    );
    let scene = Phase::new(&[
        ("builder-1", &quota),
        ("builder-2", model),
        ("verifier-1", "fails Hullo"),
        ("builder-3", model),
    ]);
    let ran = scene.run(&["run", "-b", "gemini-a,gemini-b", "-v", "gemini-a", "--escalate", "gemini-strong"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(scene.read("src/models"), "gemini-a\ngemini-b\ngemini-strong\n");
}

#[test]
fn a_model_that_refuses_is_passed_over_as_its_hint_says() {
    let answers = Script::new([])
        .rule("gemini-a", Step::default().finish("SAFETY"))
        .rule("gemini-b", Step::text("^^^a.txt\nnew\n^^^end\n"));
    let scene = Commit::with_files(&[("build.sh", "#!/bin/sh\ngrep -q new a.txt\n")], answers);
    scene.project.write("agent-config/query.txt", b"change it\n").unwrap();
    let server: &Server = &scene.server;
    let ran: Ran = scene.run(&[
        "--model",
        "gemini-a,gemini-b",
        "--base-url",
        server.origin(),
        "--sandbox",
        "off",
        "--no-stream",
    ]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.err.contains("the service withheld the answer (safety)); gemini/gemini-b is asked instead"),
        "{ran}"
    );
}
