//! Clocks that differ.

use std::process::Command;

use code_commit_fleet_trial::until;

use crate::scene::Scene;

/// The library that moves clocks; `None`, said aloud, if it is not installed.
fn library() -> Option<String> {
    let asked = Command::new("faketime")
        .args(["-f", "+0", "printenv", "LD_PRELOAD"])
        .output();
    let Ok(library) = asked else {
        eprintln!(
            "SKIPPED: clocks that differ, because faketime is not installed (apt-get install faketime)"
        );
        return None;
    };
    Some(String::from_utf8(library.stdout).unwrap().trim().to_owned())
}

/// Were any of these clocks to decide, a lease would have lapsed when it began, or would hold for an hour.
#[test]
fn clocks_that_differ_by_hours_decide_nothing() {
    let Some(library) = library() else { return };
    let at = |offset: &str| {
        let mut env = Command::new("env");
        // The clock that measures intervals has no time of the day on any machine.
        env.env("LD_PRELOAD", &library)
            .env("FAKETIME", offset)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        env
    };
    let Some(mut scene) = Scene::new(3, 1000) else {
        return;
    };
    scene.gateway.as_mut().unwrap().kill().unwrap();
    scene.start_gateway_in(at("-2h"));
    let orders = scene.submit(0..3, &[]);
    scene.start_worker_in(at("+1h"), 1);
    scene.wait_for_calls(1);
    // Leases that are beaten hold.
    until("the first result", || {
        (!scene.results().is_empty()).then_some(())
    })
    .unwrap();
    assert_eq!(
        orders.iter().map(|&order| scene.lost(order)).sum::<i64>(),
        0
    );
    // One that is not beaten lapses.
    scene.wait_for_calls(2);
    scene.workers.get_mut(&1).unwrap().kill().unwrap();
    scene.start_worker_in(at("-1h"), 2);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(
        orders.iter().map(|&order| scene.lost(order)).sum::<i64>(),
        1
    );
    assert_eq!(scene.vendor.requests().len(), 3);
    // The clocks did differ: the one that began first logs the later hour, and the gateway the earliest one.
    let time = |log: &str| {
        let log = std::fs::read_to_string(scene.path(log)).unwrap();
        let line: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        line["timestamp"].as_str().unwrap().to_owned()
    };
    let (one, two, gateway) = (
        time("worker-1.log"),
        time("worker-2.log"),
        time("gateway.log"),
    );
    assert!(gateway < two && two < one, "{gateway} {two} {one}");
}
