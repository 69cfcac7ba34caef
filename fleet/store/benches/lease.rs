//! How long a lease takes, by what is in its way: `cargo bench -p code-commit-fleet-store --bench lease`.
//!
//! PostgreSQL waits for the disk here, as it does where it matters. A figure is that of a lease with its commit.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this measures and prints"
)]

use std::time::{Duration, Instant};

use code_commit_fleet_store::{NewOrder, Store, Terms};
use code_commit_fleet_trial::Postgres;
use code_commit_fleet_wire::Ask;

/// Leases that are measured of each kind.
const LEASES: usize = 300;
const TENANTS: usize = 10;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start_with(&[])? else {
        return Ok(());
    };
    let store = Store::migrate(&postgres.address()).await?;
    let first: Vec<NewOrder> = (0..TENANTS).map(order).collect();
    store.submit(&first, None).await?;
    println!(
        "{:>24} {:>8}  {:>9} {:>9} {:>9} {:>9}",
        "in the way", "workers", "fastest", "median", "p95", "a second"
    );
    show(&store, "ten orders").await?;
    more(&postgres, "now()", 1_000)?;
    show(&store, "1,000 orders").await?;
    more(&postgres, "now()", 999_000)?;
    show(&store, "1,000,000 orders").await?;
    more(&postgres, "now() + interval '1 day'", 100_000)?;
    show(&store, "and 100,000 that wait").await?;
    // Each had something to do, a moment ago.
    postgres
        .query("INSERT INTO tenants SELECT 'idle-' || n FROM generate_series(1, 10000) AS n")?;
    postgres
        .query("INSERT INTO in_line SELECT 'idle-' || n, -n FROM generate_series(1, 10000) AS n")?;
    for _ in 0..10 {
        store.sweep(&Terms::default()).await?;
    }
    show(&store, "and 10,000 idle tenants").await?;
    let begun = Instant::now();
    store.snapshot().await?;
    println!(
        "the numbers of /metrics: {:.1} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}

/// Queues copies of the first orders, which are free at this time.
fn more(postgres: &Postgres, ready_at: &str, count: usize) -> anyhow::Result<()> {
    postgres.query(&format!(
        "INSERT INTO orders (tenant, batch, repo, base, onto, content_sha256, model, priority, record, state, ready_at)
         SELECT tenant, batch, repo, gen_random_uuid(), onto, content_sha256, model, priority, record, 'queued', {ready_at}
         FROM (SELECT * FROM orders WHERE id <= {TENANTS}) AS first, generate_series(1, {count} / {TENANTS})"
    ))?;
    // Else what was written for the bench would be written to disk while it measures.
    postgres.query("VACUUM ANALYZE orders")?;
    postgres.query("CHECKPOINT")?;
    Ok(())
}

async fn show(store: &Store, what: &str) -> anyhow::Result<()> {
    measure(store, 1).await?;
    for workers in [1, 8] {
        let begun = Instant::now();
        let mut times = measure(store, workers).await?;
        // Each is given back by a statement that takes about as long.
        let rate = f64::from(u32::try_from(times.len())?) / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |part: usize| {
            times
                .get((times.len() * part / 100).min(times.len() - 1))
                .copied()
                .unwrap_or_default()
        };
        let [fastest, median, p95] =
            [0, 50, 95].map(|part| format!("{:.2} ms", at(part).as_secs_f64() * 1e3));
        println!("{what:>24} {workers:>8}  {fastest:>9} {median:>9} {p95:>9} {rate:>9.0}");
    }
    Ok(())
}

/// Leases by several workers at once. What is leased is given back, so that the queue keeps its length.
async fn measure(store: &Store, workers: usize) -> anyhow::Result<Vec<Duration>> {
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let terms = Terms::default();
                let ask = Ask {
                    worker: "w".into(),
                    version: "0".into(),
                    record: code_commit_fleet_wire::RECORD,
                    wait_ms: 0,
                };
                let mut times = Vec::new();
                for _ in 0..LEASES / workers {
                    let begun = Instant::now();
                    let lease = store.lease(&ask, &terms).await?;
                    times.push(begun.elapsed());
                    let lost = lease.map(|leased| code_commit_fleet_wire::Lost {
                        token: leased.lease.token,
                        reason: String::new(),
                        counts: false,
                    });
                    store
                        .lose(
                            &lost.ok_or_else(|| anyhow::anyhow!("the queue is empty"))?,
                            &terms,
                        )
                        .await?;
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(times)
}

fn order(number: usize) -> NewOrder {
    NewOrder {
        tenant: format!("tenant-{}", number % TENANTS),
        batch: None,
        repo: "/hub".into(),
        base: "b".repeat(40),
        // About as long as an order is.
        content: format!("{number}{}", " ".repeat(1_000)),
        model: "gemini-3.8-flash".into(),
        priority: i32::try_from(number % 3).unwrap_or_default(),
        after: None,
        land: None,
        record: code_commit_fleet_wire::RECORD,
        traceparent: None,
    }
}
