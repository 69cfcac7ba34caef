//! Workers on other machines.

use std::path::Path;
use std::process::Command;

use code_commit_fleet_trial::{Cable, until};

use crate::scene::Scene;

#[test]
fn a_worker_that_is_cut_off_works_for_nothing_and_hurts_nobody() {
    let Some(mut scene) = Scene::new(1, 1000) else {
        return;
    };
    let cable = Cable::to(scene.remote()).unwrap();
    let orders = scene.submit(0..1, &[]);
    scene.start_remote_worker(1, &cable.address().to_string());
    scene.wait_for_calls(1);
    // Its program still has its way to the model, so it goes on and pushes its result.
    cable.cut(true);
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    // Both leases have a name of their own in the hub.
    let pushed = || {
        let names = scene
            .hub
            .git(&["for-each-ref", "--format=%(refname)", "refs/fleet"])
            .unwrap();
        (names
            .lines()
            .filter(|name| name.contains(&format!("/{}/", orders[0])))
            .count()
            == 2)
            .then_some(())
    };
    until("the result of the worker that was cut off", pushed).unwrap();
    cable.cut(false);

    scene.check_results(&orders);
    let result = &scene.results()[&orders[0]];
    assert_eq!(
        (result["epoch"].as_i64(), result["worker"].as_str()),
        (Some(2), Some("worker-2"))
    );
    assert_eq!(
        scene.vendor.requests().len(),
        1,
        "the second worker got the answer of the first"
    );
    // The other one learns that its lease is gone, and works on.
    let log = scene.path("worker-1.log");
    until("the news", || {
        std::fs::read_to_string(&log)
            .ok()?
            .contains("the lease is gone")
            .then_some(())
    })
    .unwrap();
}

#[test]
fn a_worker_whose_disk_is_full_gives_its_order_to_another() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    let folder = scene.path("worker-1");
    std::fs::create_dir(&folder).unwrap();
    let Some(small) = with_disk(&folder, SMALL) else {
        return;
    };
    gives_back_for_want_of_space(&mut scene, small);
    assert_eq!(scene.vendor.requests().len(), 1);
}

#[test]
fn a_result_that_the_hub_has_no_room_for_is_pushed_again_and_paid_once() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    // A copy of the hub in which nothing more fits, that the other worker does not see.
    let full = r#"cp -a "$0" "$0.copy" && mount -t tmpfs -o size=2m none "$0" && cp -a "$0.copy/." "$0" \
        && ! dd if=/dev/zero of="$0/filler" 2>"$0.log""#;
    let Some(full) = with_disk(Path::new(&scene.hub.url()), full) else {
        return;
    };
    gives_back_for_want_of_space(&mut scene, full);
    assert_eq!(scene.vendor.requests().len(), 1, "the answer was kept");
}

/// Has a small disk in the place of a folder.
const SMALL: &str = r#"mount -t tmpfs -o size=64k none "$0""#;

/// Starts the program that is appended to it where `script` has been run for `folder`; `None`, said aloud, where that may not
/// mount a disk.
fn with_disk(folder: &Path, script: &str) -> Option<Command> {
    let unshare = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(folder);
        unshare
    };
    if !unshare(SMALL).output().unwrap().status.success() {
        eprintln!("SKIPPED: a full disk, because this machine lets nobody mount one");
        return None;
    }
    Some(unshare(&format!(r#"{script} && exec "$@""#)))
}

/// The first worker has no room and the second one has.
fn gives_back_for_want_of_space(scene: &mut Scene, full: Command) {
    let orders = scene.submit(0..1, &[]);
    scene.start_worker_in(full, 1);
    until("the first loss", || {
        (scene.lost(orders[0]) > 0).then_some(())
    })
    .unwrap();
    scene.start_worker(2);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    let (_, facts) = scene.fleet(&["status", &orders[0].to_string()]);
    let lost = facts.iter().find(|fact| fact["event"] == "lost").unwrap();
    assert!(
        lost["detail"].as_str().unwrap().contains("No space left"),
        "{lost}"
    );
}
