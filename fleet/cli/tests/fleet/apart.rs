//! Database, gateway, workers and hub on machines of their own, whose network fails.

use code_commit_fleet_trial::{Link, Machine, Postgres, until, vendor};

use crate::scene::Scene;

/// Two thirds of them are under way or done when the network fails.
const ORDERS: usize = 6;

#[test]
fn after_partitions_have_healed_every_order_is_done_once_and_paid_once() {
    on_machines(partitions);
}

#[test]
fn a_hub_that_was_cut_off_gets_every_result_once_and_none_is_paid_twice() {
    on_machines(hub_apart);
}

/// Runs a test that moves from machine to machine, beginning on a new one.
fn on_machines(test: fn(&Machine) -> Option<()>) {
    let done = std::thread::spawn(move || test(&Machine::new().unwrap()?)).join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// This thread stays on the machine of the gateway.
fn partitions(gateway: &Machine) -> Option<()> {
    let (database, workers) = (Machine::new().unwrap()?, Machine::new().unwrap()?);
    let to_database = Link::between(gateway, &database, 1).unwrap();
    let to_workers = Link::between(gateway, &workers, 2).unwrap();
    database.enter().unwrap();
    let postgres = Postgres::start_with(&["fsync=off", "listen_addresses=10.77.1.2"]).unwrap()?;
    gateway.enter().unwrap();
    let address = postgres.address_at("10.77.1.2");
    let mut scene = Scene::on(postgres, address, "10.77.2.1", vendor(ORDERS, 300).unwrap());
    let orders = scene.submit(0..ORDERS, &[]);
    workers.enter().unwrap();
    let remote = scene.remote();
    for number in [1, 2] {
        scene.start_remote_worker(number, &remote);
    }
    gateway.enter().unwrap();

    scene.wait_for_calls(1);
    to_database.cut(true).unwrap();
    scene.wait_for_log("gateway.log", &["cannot beat", "cannot be stored yet"]);
    to_database.cut(false).unwrap();

    scene.wait_for_calls(ORDERS / 2);
    to_workers.cut(true).unwrap();
    for log in ["worker-1.log", "worker-2.log"] {
        scene.wait_for_log(log, &["No route to host", "the gateway does not answer"]);
    }
    to_workers.cut(false).unwrap();

    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.vendor.requests().len(), ORDERS);
    assert_eq!(scene.calls(), [ORDERS, 0, 0]);
    Some(())
}

/// This thread stays on the machine of everything but the hub.
fn hub_apart(fleet: &Machine) -> Option<()> {
    let hub = Machine::new().unwrap()?;
    let to_hub = Link::between(&hub, fleet, 3).unwrap();
    fleet.enter().unwrap();
    let mut scene = Scene::new(ORDERS, 300)?;
    hub.enter().unwrap();
    let _daemon = scene.hub.serve("10.77.3.1").unwrap();
    fleet.enter().unwrap();
    let orders = scene.submit(0..ORDERS - 1, &[]);
    scene.start_worker(1);
    scene.wait_for_calls(1);
    to_hub.cut(true).unwrap();
    // The one cannot push, the other one cannot even fetch.
    scene.start_worker(2);
    for (log, what) in [
        ("worker-1.log", "git push"),
        ("worker-2.log", "git ls-remote"),
    ] {
        scene.wait_for_log(log, &[what]);
    }
    to_hub.cut(false).unwrap();
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);

    let last = scene.submit(ORDERS - 1..ORDERS, &["--land", "main"]);
    until("the last result", || {
        (scene.state(last[0]) == "passed").then_some(())
    })
    .unwrap();
    to_hub.cut(true).unwrap();
    scene.start_land();
    scene.wait_for_log("land.log", &["cannot land"]);
    to_hub.cut(false).unwrap();
    until("the landing", || {
        (scene.state(last[0]) == "landed").then_some(())
    })
    .unwrap();
    assert_eq!(scene.vendor.requests().len(), ORDERS);
    assert_eq!(scene.calls(), [ORDERS, 0, 0]);
    Some(())
}
