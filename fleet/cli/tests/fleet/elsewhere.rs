//! Workers on other machines.

use std::path::Path;
use std::process::Command;

use trial::{Cable, until};

use crate::scene::Scene;

#[test]
fn a_worker_that_is_cut_off_works_for_nothing_and_hurts_nobody() {
    let Some(mut scene) = Scene::new(1, 1000) else { return };
    let cable = Cable::to(scene.remote()).unwrap();
    let orders = scene.submit(0..1, &[]);
    scene.start_remote_worker(1, &cable.address().to_string());
    scene.wait_for_calls(1);
    // Its program still has its way to the model, so it goes on and pushes its result.
    cable.cut(true);
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    let pushed =
        || scene.hub.git(&["rev-parse", "-q", "--verify", &format!("refs/fleet/{}/1", orders[0])]).ok();
    until("the result of the worker that was cut off", pushed).unwrap();
    cable.cut(false);

    scene.check_results(&orders);
    let result = &scene.results()[&orders[0]];
    assert_eq!((result["epoch"].as_i64(), result["worker"].as_str()), (Some(2), Some("worker-2")));
    assert_eq!(scene.vendor.requests().len(), 1, "the second worker got the answer of the first");
    // The other one learns that its lease is gone, and works on.
    let log = scene.path("worker-1.log");
    until("the news", || std::fs::read_to_string(&log).ok()?.contains("the lease is gone").then_some(()))
        .unwrap();
}

#[test]
fn a_worker_whose_disk_is_full_gives_its_order_to_another() {
    let Some(mut scene) = Scene::new(1, 0) else { return };
    let folder = scene.path("worker-1");
    std::fs::create_dir(&folder).unwrap();
    let full = |script: &str, folder: &Path| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(folder);
        unshare
    };
    let mount = r#"mount -t tmpfs -o size=64k none "$0""#;
    if !full(mount, &folder).output().is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED: a full disk, because this machine lets nobody mount one");
        return;
    }
    let orders = scene.submit(0..1, &[]);
    let small = full(&format!(r#"{mount} && exec "$@""#), &folder);
    scene.start_worker_in(small, 1);
    until("the first loss", || (scene.lost(orders[0]) > 0).then_some(())).unwrap();
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    let (_, facts) = scene.fleet(&["status", &orders[0].to_string()]);
    let lost = facts.iter().find(|fact| fact["event"] == "lost").unwrap();
    assert!(lost["detail"].as_str().unwrap().contains("No space left"), "{lost}");
}
