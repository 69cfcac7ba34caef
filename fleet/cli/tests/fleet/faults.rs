//! Kills and stops, at random, by a seed.

use std::time::Duration;

use rustix::process::Signal;

use crate::scene::Scene;

const WORKERS: usize = 3;

/// A fault.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillWorker(usize),
    /// For longer than its lease holds.
    StopWorker(usize),
    KillGateway,
    StopGateway,
    CrashPostgres,
    StopPostgres,
}

/// A number of its own for each step: `SplitMix64`.
fn random(seed: u64, step: u64) -> u64 {
    let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Fault {
    fn of(number: u64) -> Self {
        let worker = usize::try_from(number >> 32).unwrap() % WORKERS;
        match number % 10 {
            0..=3 => Self::KillWorker(worker),
            4 => Self::StopWorker(worker),
            5..=6 => Self::KillGateway,
            7 => Self::StopGateway,
            8 => Self::CrashPostgres,
            _ => Self::StopPostgres,
        }
    }

    /// Causes it; a stopped process continues `after` it.
    fn happen(self, scene: &mut Scene, after: Duration) {
        match self {
            Self::KillWorker(number) => {
                scene.workers.get_mut(&number).unwrap().kill().unwrap();
                scene.start_worker(number);
            }
            Self::StopWorker(number) => {
                let worker = &scene.workers[&number];
                worker.signal(Signal::STOP).unwrap();
                std::thread::sleep(after);
                worker.signal(Signal::CONT).unwrap();
            }
            Self::KillGateway => {
                scene.gateway.as_mut().unwrap().kill().unwrap();
                scene.start_gateway();
            }
            Self::StopGateway => {
                let gateway = scene.gateway.as_ref().unwrap();
                gateway.signal(Signal::STOP).unwrap();
                std::thread::sleep(after);
                gateway.signal(Signal::CONT).unwrap();
            }
            Self::CrashPostgres => {
                scene.postgres.crash().unwrap();
                scene.postgres.begin().unwrap();
            }
            Self::StopPostgres => {
                scene.postgres.signal(Signal::STOP).unwrap();
                std::thread::sleep(after / 2);
                scene.postgres.signal(Signal::CONT).unwrap();
            }
        }
    }
}

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |value| value.parse().unwrap())
}

/// `FLEET_FAULTS`, `FLEET_ORDERS` and `FLEET_SEED` make it larger.
#[test]
fn under_kills_and_stops_every_order_is_done_once_and_no_budget_is_passed() {
    let (orders, faults) = (setting("FLEET_ORDERS", 12), setting("FLEET_FAULTS", 6));
    let seed = setting("FLEET_SEED", 28);
    let orders = usize::try_from(orders).unwrap();
    let Some(mut scene) = Scene::new(orders, 150) else {
        return;
    };
    let submitted = scene.submit(0..orders, &["--batch", "all", "--max-cost", "1000"]);
    for number in 0..WORKERS {
        scene.start_worker(number);
    }
    for step in 0..faults {
        // Spread over the work: the next fault comes when more has been asked.
        let calls = orders * usize::try_from(step).unwrap() / usize::try_from(faults).unwrap();
        scene.wait_for_calls(calls);
        let number = random(seed, step);
        std::thread::sleep(Duration::from_millis(number % 400));
        let fault = Fault::of(number >> 8);
        println!("fault {step}: {fault:?}");
        fault.happen(&mut scene, Duration::from_secs(5));
    }
    assert_eq!(scene.watch(), 0);
    scene.check_results(&submitted);

    // An answer that was paid for twice is listed, and never without a gateway's death.
    let [calls, again, unknown] = scene.calls();
    let (made, listed) = (scene.vendor.requests().len(), again + unknown);
    let lost: u64 = scene
        .results()
        .values()
        .map(|result| result["lost"].as_u64().unwrap())
        .sum();
    println!(
        "{orders} orders, {faults} faults, {lost} lost leases, {made} calls made, {calls} counted, {listed} of them twice or unknown"
    );
    assert_eq!(calls, orders + listed);
    assert!(
        made <= calls,
        "{made} calls were made, and {calls} are known"
    );
    scene.check_budget();
}
