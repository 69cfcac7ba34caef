use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use code_commit_fleet_trial::{Program, product, until};
use rustix::process::Signal;

use crate::scene::Scene;

#[test]
fn ten_orders_are_done_once_each_and_their_runs_can_be_verified() {
    let Some(mut scene) = Scene::new(10, 0) else {
        return;
    };
    let orders = scene.submit(0..10, &["--batch", "first", "--max-cost", "10"]);
    assert_eq!(scene.submit(0..10, &[]), orders, "they are the same orders");
    scene.start_worker(1);
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    let seen = scene.vendor.requests();
    assert_eq!(seen.len(), 10);
    assert!(
        seen.iter()
            .all(|request| request.header("x-goog-api-key") == Some("the-vendors-key"))
    );

    let (_, costs) = scene.fleet(&["costs"]);
    assert_eq!(
        (
            costs.len(),
            costs[0]["calls"].as_i64(),
            costs[0]["again"].as_i64()
        ),
        (1, Some(10), Some(0))
    );
    let (_, status) = scene.fleet(&["status"]);
    assert_eq!(status[0]["budgets"][0]["held_usd"], 0.0);
    assert!(status[0]["budgets"][0]["spent_usd"].as_f64().unwrap() > 0.0);

    let bundle = scene.path("run.bundle").display().to_string();
    assert_eq!(
        scene
            .fleet(&["results", &orders[0].to_string(), "-o", &bundle])
            .0,
        0
    );
    let verified = Command::new(product().unwrap())
        .args(["verify", &bundle])
        .status()
        .unwrap();
    assert!(verified.success());
}

#[test]
fn a_batch_that_may_cost_nothing_stops_before_anybody_is_asked() {
    let Some(mut scene) = Scene::new(3, 0) else {
        return;
    };
    let orders = scene.submit(0..2, &["--batch", "broke", "--max-cost", "0.01"]);
    let after = scene.submit(2..3, &["--after", &orders[1].to_string()]);
    scene.start_worker(1);
    assert_eq!(
        scene.watch(),
        1,
        "nobody waits for one that waits for one that has stopped"
    );
    assert_eq!(scene.state(after[0]), "waiting");
    assert_eq!(scene.vendor.requests().len(), 0);
    let result = &scene.results()[&orders[0]];
    assert_eq!(result["state"], "stopped");
    // With more money it goes on.
    assert_eq!(scene.fleet(&["cap", "batch:default/broke", "5"]).0, 0);
    let again: Vec<String> = orders.iter().map(i64::to_string).collect();
    assert_eq!(scene.fleet(&["retry", &again[0], &again[1]]).0, 0);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.state(after[0]), "passed");
}

#[test]
fn the_answer_that_a_killed_worker_was_waiting_for_is_not_paid_twice() {
    let Some(mut scene) = Scene::new(1, 1500) else {
        return;
    };
    let orders = scene.submit(0..1, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    scene.workers.get_mut(&1).unwrap().kill().unwrap();
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.vendor.requests().len(), 1);
    assert_eq!(scene.results()[&orders[0]]["lost"], 1);
}

#[test]
fn the_program_of_a_killed_worker_ends_with_it() {
    let Some(mut scene) = Scene::new(1, 600_000) else {
        return;
    };
    scene.submit(0..1, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    let jobs = scene.path("worker-1/jobs").display().to_string();
    let of_jobs = |entry: std::fs::DirEntry| {
        let command = std::fs::read_to_string(entry.path().join("cmdline"));
        command.is_ok_and(|command| command.contains(&jobs))
    };
    let is_running = || std::fs::read_dir("/proc").unwrap().flatten().any(of_jobs);
    assert!(is_running());
    scene.workers.get_mut(&1).unwrap().kill().unwrap();
    until("the end of the program", || (!is_running()).then_some(())).unwrap();
}

/// A command line is for everybody on the machine to read.
#[test]
fn no_command_line_has_the_token_of_a_lease() {
    let Some(mut scene) = Scene::new(1, 600_000) else {
        return;
    };
    scene.submit(0..1, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    let token = scene.postgres.query("SELECT token FROM leases").unwrap();
    let has_it = |name: &str| {
        let of_process = |entry: std::fs::DirEntry| std::fs::read(entry.path().join(name)).ok();
        let all = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(of_process);
        all.filter(|content| String::from_utf8_lossy(content).contains(token.trim()))
            .count()
    };
    assert_eq!(has_it("cmdline"), 0);
    assert!(has_it("environ") > 0, "the program is not running");
}

#[test]
fn a_worker_that_is_asked_to_end_finishes_its_order_and_takes_no_other() {
    let Some(mut scene) = Scene::new(2, 1500) else {
        return;
    };
    let orders = scene.submit(0..2, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    let worker = scene.workers.get_mut(&1).unwrap();
    worker.signal(Signal::TERM).unwrap();
    assert!(worker.wait().unwrap());
    assert_eq!(
        (scene.state(orders[0]), scene.state(orders[1])),
        ("passed".into(), "queued".into())
    );
}

#[test]
fn a_worker_that_is_asked_twice_gives_its_order_back_and_that_costs_the_order_nothing() {
    let Some(mut scene) = Scene::new(1, 60_000) else {
        return;
    };
    let orders = scene.submit(0..1, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    let log = scene.path("worker-1.log");
    let worker = scene.workers.get_mut(&1).unwrap();
    worker.signal(Signal::TERM).unwrap();
    until("the first signal", || {
        std::fs::read_to_string(&log)
            .ok()?
            .contains("Drain")
            .then_some(())
    })
    .unwrap();
    worker.signal(Signal::TERM).unwrap();
    assert!(worker.wait().unwrap());
    let (_, facts) = scene.fleet(&["status", &orders[0].to_string()]);
    assert_eq!(
        (facts[0]["state"].as_str(), facts[0]["lost"].as_i64()),
        (Some("queued"), Some(0))
    );
}

#[test]
fn a_worker_that_is_asked_twice_waits_until_its_program_has_put_its_things_away() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    let program = scene.path("slow-to-end");
    let script = r#"#!/bin/sh
[ "$1" = --version ] && exec echo slow-to-end
trap 'sleep 2; echo > "$0.ended"; exit 143' TERM
echo > "$0.begun"
while :; do sleep 0.1; done
"#;
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let orders = scene.submit(0..1, &[]);
    scene.start_worker_with(1, &program);
    let (begun, log) = (scene.path("slow-to-end.begun"), scene.path("worker-1.log"));
    until("the program", || begun.exists().then_some(())).unwrap();
    let worker = scene.workers.get_mut(&1).unwrap();
    worker.signal(Signal::TERM).unwrap();
    until("the first signal", || {
        std::fs::read_to_string(&log)
            .ok()?
            .contains("Drain")
            .then_some(())
    })
    .unwrap();
    worker.signal(Signal::TERM).unwrap();
    assert!(worker.wait().unwrap());
    assert!(scene.path("slow-to-end.ended").exists());
    assert_eq!(scene.state(orders[0]), "queued");
}

#[test]
fn the_program_of_a_cancelled_order_is_ended() {
    let Some(mut scene) = Scene::new(2, 60_000) else {
        return;
    };
    let orders = scene.submit(0..2, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    assert_eq!(scene.fleet(&["cancel", &orders[0].to_string()]).0, 0);
    // The slot is free again.
    scene.wait_for_calls(2);
    assert_eq!(
        (scene.state(orders[0]), scene.state(orders[1])),
        ("cancelled".into(), "leased".into())
    );
    assert_eq!(scene.fleet(&["cancel", &orders[0].to_string()]).0, 7);
}

/// `tools/packaging/fleet/up`, with what it prints in `up.log`.
fn up(scene: &Scene) -> Program {
    product().unwrap();
    let mut up = Command::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tools/packaging/fleet/up"
    ));
    up.args(["--slots", "1"])
        .env("PROFILE", "debug")
        .env("BUILD", "0")
        .env("FLEET_STATE", scene.path("state"));
    Program::start(scene.for_gateway(up), &scene.path("up.log")).unwrap()
}

#[test]
fn one_command_runs_a_fleet_on_one_machine() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    scene.gateway = None;
    let mut up = up(&scene);
    let log = scene.path("up.log");
    let orders = scene.submit(0..1, &["--land", "main"]);
    let is_landed = || (up.has_ended() || scene.state(orders[0]) == "landed").then_some(());
    until("the landing", is_landed).unwrap();
    assert!(
        !up.has_ended(),
        "{}",
        std::fs::read_to_string(&log).unwrap()
    );
    up.signal(Signal::TERM).unwrap();
    assert!(
        up.wait().unwrap(),
        "{}",
        std::fs::read_to_string(&log).unwrap()
    );
}

#[test]
fn the_one_command_gives_back_what_it_is_carrying_out_when_it_is_ended() {
    let Some(mut scene) = Scene::new(1, 8000) else {
        return;
    };
    scene.gateway = None;
    let mut up = up(&scene);
    let orders = scene.submit(0..1, &[]);
    scene.wait_for_calls(1);
    up.signal(Signal::TERM).unwrap();
    assert!(
        up.wait().unwrap(),
        "{}",
        std::fs::read_to_string(scene.path("up.log")).unwrap()
    );
    let (_, facts) = scene.fleet(&["status", &orders[0].to_string()]);
    assert_eq!(
        (facts[0]["state"].as_str(), facts[0]["lost"].as_i64()),
        (Some("queued"), Some(0))
    );
}
