use std::time::Instant;

use code_commit_fleet_trial::{content, rival, until};
use serde_json::json;

use crate::faults::setting;
use crate::scene::Scene;

/// `FLEET_LAND=64 FLEET_WORKERS=8 FLEET_DELAY_MS=2000` measures; by default it is small. One result in ten passes alone and fails on
/// the branch, because it stands no result of the order before it.
#[test]
fn results_of_many_workers_land_in_few_executions_although_one_in_ten_fails_on_the_branch() {
    let count = usize::try_from(setting("FLEET_LAND", 10)).unwrap();
    let workers = usize::try_from(setting("FLEET_WORKERS", 2)).unwrap();
    let is_rival = |number: usize| number % 10 == 9;
    let timed = |flags: &[&str]| {
        let mut scene = Scene::new(count, setting("FLEET_DELAY_MS", 0))?;
        let order = |number| {
            if is_rival(number) {
                rival(number)
            } else {
                content(number)
            }
        };
        let orders = scene.submit_all(0..count, flags, |number| order(number).unwrap());
        let begun = Instant::now();
        scene.start_land();
        for number in 0..workers {
            scene.start_worker(number);
        }
        scene.watch();
        Some((begun.elapsed().as_secs_f64(), orders, scene))
    };
    let Some((landing, orders, scene)) = timed(&["--land", "main"]) else {
        return;
    };
    for (number, &order) in orders.iter().enumerate() {
        let file = format!("main:done/{number:05}.txt");
        let has_landed = scene.state(order) == "landed";
        assert_eq!(
            has_landed,
            scene.hub.git(&["cat-file", "-e", &file]).is_ok(),
            "order {number}"
        );
        assert!(
            has_landed || is_rival(number),
            "order {number}: {}",
            scene.state(order)
        );
    }
    let landed = scene
        .results()
        .values()
        .filter(|result| result["state"] == "landed")
        .count();
    assert!(landed >= count - count / 10);
    let executions = scene
        .postgres
        .query("SELECT sum(epoch) FROM orders")
        .unwrap();
    let trains = scene
        .postgres
        .query("SELECT count(*) FROM orders WHERE members IS NOT NULL")
        .unwrap();
    let executions: f64 = executions.trim().parse().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2⁵²")]
    let each = executions / landed as f64;
    assert!(each < 3.0, "{each} executions for each landing");
    println!(
        "{workers} workers: {landed} of {count} landed in {landing:.1} s, {} trains",
        trains.trim()
    );
    println!("{each:.2} executions for each landing");
    drop(scene);
    let (alone, ..) = timed(&[]).unwrap();
    println!(
        "without landing: {alone:.1} s; landing takes {:.2} times as long",
        landing / alone
    );
}

#[test]
fn results_land_one_after_the_other_although_the_branch_has_moved() {
    let Some(mut scene) = Scene::new(4, 0) else {
        return;
    };
    let orders = scene.submit(0..3, &["--land", "main"]);
    let after = scene.submit(3..4, &["--after", &orders[0].to_string()]);
    // The branch moves before anything lands, so that no result was made on its head.
    let pushed = scene.hub.push("person.txt").unwrap();
    scene.start_worker(1);
    scene.start_worker(2);
    scene.start_land();
    assert_eq!(scene.watch(), 0);

    let results = scene.results();
    assert!(
        orders
            .iter()
            .all(|order| results[order]["state"] == "landed")
    );
    let files = scene
        .hub
        .git(&[
            "ls-tree",
            "-r",
            "--name-only",
            "main",
            "--",
            "done",
            "person.txt",
        ])
        .unwrap();
    assert_eq!(
        files,
        "done/00000.txt\ndone/00001.txt\ndone/00002.txt\ndone/README\nperson.txt\n"
    );
    // One commit for each, in one line.
    let line = scene
        .hub
        .git(&["log", "--format=%H", &format!("{pushed}..main")])
        .unwrap();
    assert_eq!(line.lines().count(), 3);
    assert!(
        line.lines()
            .all(|commit| results.values().any(|result| result["commit"] == commit))
    );
    // Each was carried out once, and a train verified that they are good together.
    assert!(
        orders.iter().all(|order| results[order]["epoch"] == 1),
        "{results:?}"
    );
    assert_eq!(scene.vendor.requests().len(), 4);
    // The one that came after began on what its predecessor had left.
    let (first, last) = (&results[&orders[0]], &results[&after[0]]);
    assert_eq!(
        (last["state"].as_str(), &last["onto"]),
        (Some("passed"), &first["commit"])
    );

    // A landed result is in its branch and needs no ref of its own; a result that only passed has nothing else.
    let folder = scene.path("land").display().to_string();
    let (_, facts) = scene.fleet(&["gc", "--older-than", "0", "--refs", "--folder", &folder]);
    assert!(facts[0]["removed_refs"].as_i64().unwrap() >= 3, "{facts:?}");
    let refs = scene
        .hub
        .git(&["for-each-ref", "--format=%(refname)", "refs/fleet"])
        .unwrap();
    assert_eq!(refs.trim(), last["reference"].as_str().unwrap());
}

/// A worker is believed about its verdict, but not about what it puts on a branch.
#[test]
fn a_result_that_does_not_descend_from_what_it_was_verified_on_never_lands() {
    let Some(mut scene) = Scene::new(2, 0) else {
        return;
    };
    let orders = scene.submit(0..1, &["--land", "main"]);
    let main = scene.hub.git(&["rev-parse", "main"]).unwrap();
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
    let alone = [&who[..], &["commit-tree", "-m", "alone", "main^{tree}"]].concat();
    let alone = scene.hub.git(&alone).unwrap().trim().to_owned();
    let ask = json!({ "worker": "hostile", "version": "1", "record": 2, "wait_ms": 5000 });
    let lease = scene.post("/v1/lease", &ask);
    scene
        .hub
        .git(&["update-ref", lease["reference"].as_str().unwrap(), &alone])
        .unwrap();
    let verdict = json!({ "verdict": "passed", "commit": alone });
    let finish =
        json!({ "token": lease["token"], "verdict": verdict, "bundle": null, "elapsed_ms": 1 });
    scene.post("/v1/finish", &finish);
    scene.start_land();
    assert_eq!(scene.watch(), 1);
    assert_eq!(scene.hub.git(&["rev-parse", "main"]).unwrap(), main);
    assert_eq!(scene.state(orders[0]), "failed");
    // The branch is free for the next result.
    let next = scene.submit(1..2, &["--land", "main"]);
    scene.start_worker(1);
    until("the next result", || {
        (scene.state(next[0]) == "landed").then_some(())
    })
    .unwrap();
}

#[test]
fn a_train_whose_workers_were_lost_too_often_ends_and_its_results_land() {
    let Some(mut scene) = Scene::new(2, 0) else {
        return;
    };
    let orders = scene.submit(0..2, &["--land", "main"]);
    scene.hub.push("person.txt").unwrap();
    scene.start_worker(1);
    for order in &orders {
        until("a result", || {
            (scene.state(*order) == "passed").then_some(())
        })
        .unwrap();
    }
    scene.workers.clear();
    scene.start_land();
    // Twenty lost leases would take minutes.
    let lost = "
        UPDATE orders SET state = 'dead', reason = 'its lease lapsed', ended_at = now()
        WHERE members IS NOT NULL AND state = 'queued' RETURNING id";
    until("a train", || {
        (!scene.postgres.query(lost).unwrap().is_empty()).then_some(())
    })
    .unwrap();
    scene.wait_for_log("land.log", &["lost too often"]);
    scene.start_worker(1);
    assert_eq!(scene.watch(), 0);
    assert!(orders.iter().all(|order| scene.state(*order) == "landed"));
    assert_eq!(scene.vendor.requests().len(), 2);
}

#[test]
fn whoever_lands_may_be_killed_at_any_moment() {
    let Some(mut scene) = Scene::new(4, 0) else {
        return;
    };
    scene.submit(0..4, &["--land", "main"]);
    scene.start_worker(1);
    let range = format!("{}..main", scene.hub.base);
    let landed = |scene: &Scene| {
        scene
            .hub
            .git(&["rev-list", "--count", &range])
            .unwrap()
            .trim()
            .to_owned()
    };
    // Results that pile up while `land` is down move the branch together.
    while landed(&scene) != "4" {
        let before = landed(&scene);
        scene.start_land();
        // The branch moves before the database knows; the kill comes somewhere around that.
        until("the branch to move", || {
            (landed(&scene) != before).then_some(())
        })
        .unwrap();
        scene.land.as_mut().unwrap().kill().unwrap();
    }
    scene.start_land();
    assert_eq!(scene.watch(), 0);
    assert_eq!(landed(&scene), "4", "each has landed once");
    assert_eq!(scene.vendor.requests().len(), 4);
}

#[test]
fn landing_goes_on_after_the_database_was_away() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
    let orders = scene.submit(0..1, &["--land", "main"]);
    scene.start_land();
    let log = scene.path("land.log");
    let says = |word: &str| {
        std::fs::read_to_string(&log)
            .ok()?
            .contains(word)
            .then_some(())
    };
    // It notices the crash only if it had the database before.
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    until("its turn", || {
        (scene.postgres.query(locks).ok()?.trim() == "1").then_some(())
    })
    .unwrap();
    scene.postgres.crash().unwrap();
    until("its trouble", || says("cannot land at this moment")).unwrap();
    scene.postgres.begin().unwrap();
    scene.start_worker(1);
    assert_eq!(scene.watch(), 0);
    assert_eq!(scene.state(orders[0]), "landed");
}
