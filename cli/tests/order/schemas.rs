//! Every artifact of real runs is read back by its own strict type, in which no field may be missing and none may be added, and comes
//! out of it as it went in.

use loop_order::{CmdResult, FailureBrief, RunSummary, WriteProposal, WriteResult};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::harness::{BAD, GOOD, Scene, greet};

#[track_caller]
fn check<T: Serialize + DeserializeOwned>(scene: &Scene, file: &str) {
    let text = scene.recorded(file);
    let value: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(serde_json::to_string_pretty(&value).unwrap() + "\n", text, "{file}");
}

#[test]
fn every_artifact_is_of_its_type_and_has_its_keys_in_a_fixed_order() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.run(&[]);
    check::<RunSummary>(&scene, "run_summary.json");
    check::<FailureBrief>(&scene, "attempt_1/failure_brief.json");
    for attempt in ["attempt_1", "attempt_2"] {
        check::<WriteProposal>(&scene, &format!("{attempt}/proposed_writes.json"));
        check::<WriteResult>(&scene, &format!("{attempt}/write_result.json"));
        check::<Vec<CmdResult>>(&scene, &format!("{attempt}/verify_result.json"));
        check::<Vec<CmdResult>>(&scene, &format!("{attempt}/acceptance_result.json"));
    }
}
