//! What operators meet: a backup that is restored, a database without room, and a fleet that has nothing to do.

use std::time::Instant;

use code_commit_fleet_trial::{Postgres, until, vendor};

use crate::faults::setting;
use crate::scene::Scene;

const ORDERS: usize = 6;

impl Scene {
    fn start_two_workers(&mut self) {
        self.start_worker(1);
        self.start_worker(2);
    }

    /// The refs of results, each with its commit.
    fn pushed(&self) -> String {
        self.hub
            .git(&[
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/fleet",
            ])
            .unwrap()
    }
}

/// What README.md promises for a backup.
#[test]
fn a_fleet_goes_on_from_a_backup_that_was_made_in_the_middle_of_work() {
    let Some(mut scene) = Scene::new(ORDERS, 500) else {
        return;
    };
    scene.submit(0..ORDERS - 1, &[]);
    scene.start_two_workers();
    // The backup has an answer and a call that is under way.
    scene.wait_for_calls(3);
    let known = scene.vendor.requests().len();
    let backup = scene.postgres.dump().unwrap();
    // It has neither this order nor this verdict.
    scene.submit(ORDERS - 1..ORDERS, &[]);
    let over = scene.results().len();
    until("a verdict", || (scene.results().len() > over).then_some(())).unwrap();

    scene.workers.clear();
    scene.gateway = None;
    scene.postgres.restore(&backup).unwrap();
    let (pushed, made) = (scene.pushed(), scene.vendor.requests().len());
    let answers = "SELECT count(*) FROM calls WHERE state = 'answered'";
    let kept: usize = scene
        .postgres
        .query(answers)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    scene.start_gateway();
    scene.start_two_workers();
    let orders = scene.submit(0..ORDERS, &[]);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.results().len(), ORDERS);
    let now = scene.pushed();
    assert!(
        pushed.lines().all(|result| now.contains(result)),
        "overwritten: {pushed} {now}"
    );

    // Only answers that the backup does not have are paid for again.
    let all = scene.vendor.requests().len();
    assert_eq!(all - made, ORDERS - kept);
    assert!(kept > 0);
    // The fleet knows of all calls but those between the backup and its end.
    let [calls, again, unknown] = scene.calls();
    assert_eq!((calls, again), (ORDERS + unknown, 0));
    assert!(
        all <= calls + made - known,
        "{all} calls were made, and {calls} are known"
    );
    println!(
        "{made} of {all} calls were made before the restore; {kept} answers were kept, {unknown} calls are unknown"
    );
}

#[test]
fn a_result_that_landed_after_the_backup_lands_again_and_changes_nothing() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    let order = scene.submit(0..1, &["--land", "main"])[0];
    let backup = scene.postgres.dump().unwrap();
    let land = |scene: &mut Scene| {
        scene.start_worker(1);
        scene.start_land();
        until("the landing", || {
            (scene.state(order) == "landed").then_some(())
        })
        .unwrap();
        scene.hub.git(&["rev-parse", "main^{tree}"]).unwrap()
    };
    let first = land(&mut scene);
    scene.workers.clear();
    (scene.land, scene.gateway) = (None, None);
    scene.postgres.restore(&backup).unwrap();
    scene.start_gateway();
    assert_eq!(land(&mut scene), first);
}

#[test]
fn a_fleet_whose_database_has_no_room_waits_and_loses_nothing() {
    let Some(postgres) = Postgres::start_on_disk(256).unwrap() else {
        return;
    };
    let database = postgres.address();
    let mut scene = Scene::on(
        postgres,
        database,
        "127.0.0.1",
        vendor(ORDERS, 300).unwrap(),
    );
    let orders = scene.submit(0..ORDERS, &["--batch", "all", "--max-cost", "1000"]);
    scene.start_two_workers();
    let says =
        |scene: &Scene, words: &str| scene.postgres.log().unwrap().contains(words).then_some(());

    // Tables cannot grow: transactions fail.
    scene.wait_for_calls(1);
    scene.postgres.fill_disk().unwrap();
    until("a full disk", || says(&scene, "could not extend file")).unwrap();
    scene.postgres.free_disk().unwrap();

    // The log of transactions cannot grow: the server ends.
    scene.wait_for_calls(ORDERS / 2);
    scene.postgres.fill_disk().unwrap();
    until("its end", || {
        // It needs a new file of the log each time.
        let _ = scene.postgres.query("SELECT pg_switch_wal()");
        says(&scene, "PANIC")
    })
    .unwrap();
    scene.postgres.free_disk().unwrap();
    scene.postgres.begin().unwrap();

    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.vendor.requests().len(), ORDERS);
    assert_eq!(scene.calls(), [ORDERS, 0, 0]);
    scene.check_budget();
}

/// `FLEET_IDLE=200` measures; by default it is small. What is checked is how often workers ask.
#[test]
fn workers_that_have_nothing_to_do_ask_rarely() {
    let idle = usize::try_from(setting("FLEET_IDLE", 20)).unwrap();
    let Some(postgres) = Postgres::start_with(&["fsync=off", "log_statement=all"]).unwrap() else {
        return;
    };
    let database = postgres.address();
    let mut scene = Scene::on(postgres, database, "127.0.0.1", vendor(0, 0).unwrap());
    for number in 0..idle {
        scene.start_worker(number);
    }
    let count = |words: &str| scene.postgres.log().unwrap().matches(words).count();
    let counts = || {
        [
            "LOG:  execute",
            "LOG:  statement",
            "INSERT INTO workers",
            "WITH head AS",
        ]
        .map(count)
    };
    let processor = || {
        scene
            .gateway
            .as_ref()
            .unwrap()
            .processor_time()
            .unwrap()
            .as_secs_f64()
    };
    let asked = |times: usize| {
        until("their questions", || {
            (counts()[2] >= times * idle).then_some(())
        })
        .unwrap()
    };
    asked(1);
    let (begun, before, spent) = (Instant::now(), counts(), processor());
    asked(2);
    let (seconds, spent) = (begun.elapsed().as_secs_f64(), processor() - spent);
    let idle_seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    let [executed, batches, asked, looked] = std::array::from_fn(|at| counts()[at] - before[at]);
    println!(
        "{idle} idle workers, {seconds:.1} s: {} statements ({asked} questions, {looked} looks for an order), \
         {spent:.2} s of a processor for the gateway",
        executed + batches
    );
    assert!(
        looked <= 3 * (asked + idle),
        "a question is for ten seconds, and the first in line looks every five"
    );
    // Beats of the gateway, with the short patience of this scene, and its sweeps.
    let others = executed + batches - asked - looked;
    assert!(
        others <= 30 * idle_seconds,
        "{others} statements that no worker asked for"
    );
}
