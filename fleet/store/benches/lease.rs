//! How long a lease takes, by the length of the queue: `cargo bench -p code-commit-fleet-store --bench lease`.
//!
//! PostgreSQL waits for the disk here, as it does where it matters. A figure is that of a lease with its commit.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "this measures and prints")]

use std::time::{Duration, Instant};

use code_commit_fleet_store::{NewOrder, Store, Terms};
use code_commit_fleet_trial::Postgres;
use code_commit_fleet_wire::Ask;

/// Leases that are measured at each length.
const LEASES: usize = 300;
const TENANTS: usize = 10;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start_with(&[])? else { return Ok(()) };
    let store = Store::migrate(&postgres.address()).await?;
    let mut queued = 0;
    println!(
        "{:>8} {:>8}  {:>9} {:>9} {:>9} {:>9}",
        "queued", "workers", "fastest", "median", "p95", "longest"
    );
    for length in [100, 1_000, 10_000, 100_000] {
        submit(&store, queued, length).await?;
        queued = length;
        for workers in [1, 8] {
            let mut times = measure(&store, workers).await?;
            times.sort_unstable();
            let at = |part: usize| {
                times.get((times.len() * part / 100).min(times.len() - 1)).copied().unwrap_or_default()
            };
            let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            let [fastest, median, p95, longest] = [0, 50, 95, 100].map(|part| ms(at(part)));
            println!("{length:>8} {workers:>8}  {fastest:>9} {median:>9} {p95:>9} {longest:>9}");
        }
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
                    let lost = lease.map(|lease| code_commit_fleet_wire::Lost {
                        token: lease.token,
                        reason: String::new(),
                        counts: false,
                    });
                    store.lose(&lost.ok_or_else(|| anyhow::anyhow!("the queue is empty"))?, &terms).await?;
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

async fn submit(store: &Store, from: usize, to: usize) -> anyhow::Result<()> {
    let numbers: Vec<usize> = (from..to).collect();
    for chunk in numbers.chunks(5_000) {
        let orders: Vec<NewOrder> = chunk.iter().map(|&number| order(number)).collect();
        store.submit(&orders).await?;
    }
    Ok(())
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
