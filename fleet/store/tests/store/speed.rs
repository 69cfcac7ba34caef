//! How much work a lease is, whatever the machine: pages that its statement touches.

use super::*;

/// Pages that the next lease of `store` touches, as the server itself says.
async fn pages(postgres: &Postgres, store: &Store) -> u64 {
    let before = postgres.log().unwrap().len();
    store
        .lease(&ask(code_commit_fleet_wire::RECORD), &Terms::default())
        .await
        .unwrap()
        .unwrap();
    let log = || postgres.log().unwrap().split_off(before);
    // The plan of the lease is the one that takes a turn.
    let plan = code_commit_fleet_trial::until("the plan", || {
        let log = log();
        let plan = log
            .split("Query Text")
            .find(|plan| plan.contains("nextval") && plan.contains("INSERT INTO leases"))?;
        plan.contains("Shared Read Blocks").then(|| plan.to_owned())
    });
    let plan = plan.unwrap();
    // The outermost node comes first, and counts what is below it.
    let count = |name: &str| -> u64 {
        let rest = plan
            .split_once(name)
            .unwrap()
            .1
            .trim_start_matches(['"', ':', ' ']);
        rest.split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    count("Shared Hit Blocks") + count("Shared Read Blocks")
}

#[tokio::test]
async fn a_lease_is_as_little_work_in_a_long_queue_as_in_a_short_one() {
    let Some(postgres) = Postgres::start().unwrap() else {
        return;
    };
    let store = Store::migrate(&postgres.address()).await.unwrap();
    let explain = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 \
        -c auto_explain.log_analyze=on -c auto_explain.log_buffers=on -c auto_explain.log_format=json";
    let explained = Store::open(&format!("{} options='{explain}'", postgres.address()))
        .await
        .unwrap();
    let queue = async |numbers: std::ops::Range<usize>| {
        let orders: Vec<NewOrder> = numbers
            .map(|n| order(["a", "b", "c"][n % 3], &n.to_string()))
            .collect();
        store.submit(&orders, None).await.unwrap();
    };
    queue(0..100).await;
    pages(&postgres, &explained).await;
    let short = pages(&postgres, &explained).await;
    queue(100..4000).await;
    pages(&postgres, &explained).await;
    let long = pages(&postgres, &explained).await;
    // The index is a level deeper, and the new pages have no free space map yet.
    assert!(
        long <= short + 40,
        "{short} pages with 100 orders in the queue, {long} with 4000"
    );
}
