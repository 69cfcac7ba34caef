//! What an approval holds for: specs and files as they were reviewed.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::scenes::program::{Ran, start_heard};
use crate::scenes::spec::{Scene, event, names};

#[test]
fn in_the_sandbox_a_person_may_edit_the_specs_at_any_time_and_an_approval_holds_for_what_was_reviewed()
 {
    // Behind a sandbox an agent cannot count its turns.
    let waits = "case \"$prompt\" in \
        *.plan.md*) echo x 2>/dev/null >> .specs/a.md; printf p > $WIP.plan.md; say '<PLAN_COMPLETE>p</PLAN_COMPLETE>';; \
        *.review.md*) until grep -q more .specs/a.md; do :; done; tool Read .specs/a.md; say '<APPROVED>good</APPROVED>';; \
        *) say '<DONE>all</DONE>';; esac";
    let scene = Scene::new(&[waits]);
    let mut harness = start_heard(&mut scene.json_run("namespaces", &[]));
    let mut events: Vec<Value> = Vec::new();
    for line in BufReader::new(harness.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        // The turn has begun: what it is about is known.
        if event["event"] == "SystemMessage"
            && event["role"] == "reviewing"
            && scene.read(".specs/a.md") == "# A\n"
        {
            scene.write(".specs/a.md", "# A\nmore\n");
        }
        events.push(event);
    }
    let done = harness.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{err}{events:#?}");
    assert!(
        names(&events)
            .join(" ")
            .ends_with("ReviewingStart Approved LoopApproved"),
        "{events:#?}"
    );
    let again = Ran::of(&mut scene.json_run("namespaces", &["--new"]));
    let last: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
    let tree = |summary: &Value| summary["holds_for"]["tree"].as_str().unwrap().to_owned();
    assert_ne!(
        tree(event(&events, "summary")),
        tree(&last),
        "the first review was of the old specs"
    );
    assert_eq!(
        scene.read(".specs/a.md"),
        "# A\nmore\n",
        "the edit is the person's, and stays"
    );
    assert!(!err.contains("was restored"), "{err}");
}
