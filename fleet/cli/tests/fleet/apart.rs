//! Database, gateway and workers on machines of their own, whose network fails.

use code_commit_fleet_trial::{Link, Machine, Postgres, until, vendor};

use crate::scene::Scene;

/// Two thirds of them are under way or done when the network fails.
const ORDERS: usize = 6;

#[test]
fn after_partitions_have_healed_every_order_is_done_once_and_paid_once() {
    // It moves from machine to machine.
    let done = std::thread::spawn(|| partitions(&Machine::new().unwrap()?)).join();
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
    let says = |log: &str, words: [&str; 2]| {
        let log = scene.path(log);
        let found = || words.iter().any(|word| std::fs::read_to_string(&log).unwrap().contains(word));
        until(words[0], || found().then_some(())).unwrap();
    };

    scene.wait_for_calls(1);
    to_database.cut(true).unwrap();
    says("gateway.log", ["cannot beat", "cannot be stored yet"]);
    to_database.cut(false).unwrap();

    scene.wait_for_calls(ORDERS / 2);
    to_workers.cut(true).unwrap();
    says("worker-1.log", ["No route to host", "the gateway does not answer"]);
    says("worker-2.log", ["No route to host", "the gateway does not answer"]);
    to_workers.cut(false).unwrap();

    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.vendor.requests().len(), ORDERS);
    let (_, costs) = scene.fleet(&["costs"]);
    let count = |name: &str| costs[0][name].as_u64().unwrap();
    assert_eq!((count("calls"), count("again"), count("unknown")), (6, 0, 0), "{costs:?}");
    Some(())
}
