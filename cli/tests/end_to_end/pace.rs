//! A spec whose agent meets a limit: it is waited out, and the session goes on.
//!
//! `LIMIT_SECONDS=60` makes the limits as long as real ones.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::scenes::program::{must_have, start_heard};
use crate::scenes::size::chosen;
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec};

/// What a session is told that goes on.
const GO_ON: &str =
    "You were interrupted. Go on where you stopped; what you were asked to do has not changed.";

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
    must_have(&scene.arguments(3), &format!("--resume\n{}\n", id(2)));
    assert_eq!(scene.prompt(3), GO_ON);
    ran.err_has("the agent has used up its quota: limit; waiting until 20");
    assert!(!ran.err.contains("paid twice"), "{ran}");
}

#[test]
fn who_edits_while_a_turn_waits_has_it_done_anew_and_the_record_says_so() {
    let half = format!(
        "echo half > src.txt; tool Write src.txt; {}",
        limited("$(($(date +%s) + 6))")
    );
    let scene = Spec::new(&[PLAN, &half, DONE, APPROVE]);
    let mut run = start_heard(&mut scene.json_run("off", &[]));
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
    must_have(&said, "its turn starts over and is paid for twice");
    assert!(
        scene.prompt(3).contains("Add X") && !scene.arguments(3).contains("--resume"),
        "{}",
        scene.arguments(3)
    );
    assert_eq!(scene.read("mine.txt"), "a person's\n");
}
