//! What happens where an agent cannot work: limits are waited out, sessions go on, others work instead. The same for each loop.
//!
//! `LIMIT_SECONDS=60` makes the limits as long as real ones.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use code_commit_fixtures::server::{Script, Step};
use serde_json::Value;

use crate::scenes::commit::Scene as Commit;
use crate::scenes::files;
use crate::scenes::kills::chosen;
use crate::scenes::order::{FILES, Scene as Order};
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
    let half = format!(
        "echo half > src.txt; tool Write src.txt; {}",
        limited(&soon())
    );
    let scene = Spec::new(&[PLAN, &half, DONE, APPROVE]);
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(0), 4), "{ran}");
    let id = |call| {
        scene
            .arguments(call)
            .lines()
            .skip_while(|arg| *arg != "--session-id")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert!(
        scene
            .arguments(3)
            .contains(&format!("--resume\n{}\n", id(2))),
        "{}",
        scene.arguments(3)
    );
    assert_eq!(scene.prompt(3), GO_ON);
    assert!(
        ran.err
            .contains("the agent has used up its quota: limit; waiting until 20"),
        "{ran}"
    );
    assert!(!ran.err.contains("paid twice"), "{ran}");
}

#[test]
fn who_edits_while_a_turn_waits_has_it_done_anew_and_the_record_says_so() {
    let half = format!("echo half > src.txt; tool Write src.txt; {}", limited("1"));
    let scene = Spec::new(&[PLAN, &half, DONE, APPROVE]);
    let args = [
        "spec",
        "run",
        "--focus",
        "Add X",
        "--json",
        "--sandbox",
        "off",
    ];
    let mut run = scene
        .command(&args, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(run.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == "QuotaWaitStart" {
            scene.write("mine.txt", "a person's\n");
        }
    }
    let done = run.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        said.contains("its turn starts over and is paid for twice"),
        "{said}"
    );
    assert!(
        scene.prompt(3).contains("Add X") && !scene.arguments(3).contains("--resume"),
        "{}",
        scene.arguments(3)
    );
    assert_eq!(scene.read("mine.txt"), "a person's\n");
}

#[test]
fn another_model_of_the_agent_works_where_one_is_out_of_quota_or_refuses() {
    let refused = "line '{\"type\":\"result\",\"is_error\":true,\"stop_reason\":\"refusal\",\"result\":\"I may not\"}'; exit 1";
    let scene = Spec::new(&[&limited(&FAR.to_string()), PLAN, refused, DONE, APPROVE]);
    let ran = scene.spec(&["run", "--focus", "Add X", "--model", "large,small"]);
    assert_eq!((ran.code, scene.calls()), (Some(0), 5), "{ran}");
    let model = |call| {
        scene
            .arguments(call)
            .lines()
            .skip_while(|arg| *arg != "--model")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (1..6).map(model).collect::<Vec<_>>().join(" "),
        "large small large small large"
    );
    assert!(
        ran.err
            .contains("refused to answer: I may not; Claude Code with small works instead"),
        "{ran}"
    );
    for nameless in [["--model", "a,"], ["--escalate", ""]] {
        let ran = scene.spec(&[&["run", "--focus", "X"], &nameless[..]].concat());
        assert_eq!(
            (ran.code, ran.err.contains("a model has no name")),
            (Some(3), true),
            "{ran}"
        );
    }
    let unequal = scene.spec(&[
        "run",
        "--focus",
        "X",
        "--agent",
        "claude,codex",
        "--model",
        "a,b,c",
    ]);
    assert_eq!(unequal.code, Some(2), "{unequal}");
    assert!(
        unequal
            .err
            .contains("--agent names 2 agents, and --model 3 models"),
        "{unequal}"
    );
}

/// What a service answers, and the word for it.
const FAULTS: [(u16, &str); 7] = [
    (401, "bad-key"),
    (402, "billing"),
    (403, "no-permission"),
    (413, "too-large"),
    (429, "rate-limited"),
    (500, "server"),
    (503, "overloaded"),
];

/// There is no time for a second attempt.
const NO_RETRY: &str = "[model]\ncall_limit = \"1s\"\n";

/// The last code that `--json` tells.
fn word(ran: &Ran) -> String {
    fn code(value: &Value) -> Option<&str> {
        let inner = value.as_object()?;
        let own = inner.get("code").and_then(Value::as_str);
        own.or_else(|| inner.values().find_map(code))
    }
    let found = ran.out.lines().rev().find_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        code(&event).map(str::to_owned)
    });
    found.unwrap_or_else(|| panic!("{ran}"))
}

#[test]
fn a_fault_of_the_service_has_one_word_in_each_loop_and_each_dialect() {
    let models = ["gemini/m", "openai/m", "openai-responses/m", "anthropic/m"];
    let keys = ["GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
        .map(|name| (name, "key-that-opens-nothing-78"));
    for (status, wanted) in FAULTS {
        let service = || Script::new([]).rule("POST ", Step::status(status).message("no"));
        let flags = ["--sandbox", "off", "--json", "--base-url"];
        for model in models {
            let scene = Commit::new(service());
            scene.user_file(NO_RETRY);
            let base = format!(
                "{}{}",
                scene.server.origin(),
                if model.starts_with("openai") {
                    "/v1"
                } else {
                    ""
                }
            );
            assert_eq!(scene.run(&["init", "--implement"]).code, Some(0));
            for which in [&[][..], &["implement"]] {
                let ran =
                    scene.run_with(&[which, &flags, &[&base, "--model", model]].concat(), &keys);
                assert_eq!(
                    (ran.code, word(&ran).as_str()),
                    (Some(4), wanted),
                    "{model} {which:?} {status}: {ran}"
                );
            }
        }
        let scene = Order::scripted(&FILES, service());
        scene.user_file(NO_RETRY);
        let ran = scene.run(&["--json"]);
        assert_eq!(
            (ran.code, word(&ran).as_str()),
            (Some(4), wanted),
            "order {status}: {ran}"
        );
    }
}

/// What each agent's CLI prints and how it exits where its service answers with this status, as the real ones do.
fn broken(agent: &str, status: u16) -> String {
    let lines = match agent {
        "claude" => format!(
            r#"echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"API Error: {status} no","session_id":"s"}}'; exit 1"#
        ),
        "gemini" => format!(
            r#"echo '{{"type":"result","status":"error","error":{{"type":"unknown","message":"[API Error: no]"}},"stats":{{}}}}'; exit {}"#,
            status % 256
        ),
        _ if status == 429 => {
            r#"echo '{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}'; exit 1"#.to_owned()
        }
        _ => format!(
            r#"echo '{{"type":"turn.failed","error":{{"message":"unexpected status {status} Some Reason: no"}}}}'; exit 1"#
        ),
    };
    format!("#!/bin/sh\n{lines}\n")
}

#[test]
fn a_fault_of_an_agents_service_has_the_same_word() {
    for agent in ["claude", "gemini", "codex"] {
        let (spec, phase) = (Spec::new(&[]), Phase::new(&[]));
        phase.write(
            ".env",
            "GEMINI_API_KEY=k\nANTHROPIC_API_KEY=k\nCODEX_API_KEY=k\n",
        );
        for (status, wanted) in FAULTS {
            for bin in [spec.home().join("bin"), phase.at("bin")] {
                files::write_program(&bin.join(agent), broken(agent, status));
            }
            let args = [
                "run", "--new", "--focus", "X", "--agent", agent, "--wait", "1s", "--json",
            ];
            let ran = spec.spec(&args);
            assert_eq!(
                (ran.code, word(&ran).as_str()),
                (Some(4), wanted),
                "spec {agent} {status}: {ran}"
            );
            let model = format!("{agent}/m");
            let ran = phase.run(&["run", "--new", "--model", &model, "--wait", "1s", "--json"]);
            assert_eq!(
                (ran.code, word(&ran).as_str()),
                (Some(4), wanted),
                "phase {agent} {status}: {ran}"
            );
        }
    }
}
