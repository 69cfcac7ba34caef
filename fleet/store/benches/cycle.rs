//! The database's work for one order from lease to verdict, without the program that carries it out:
//! `cargo bench -p code-commit-fleet-store --bench cycle`.
//!
//! An order here is one lease, six beats, two calls of a model, one bundle and one verdict. The rate at which it levels off is
//! the most that this database can give to any number of workers.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this measures and prints"
)]

use std::time::{Duration, Instant};

use code_commit_fleet_store::{
    Kept, Leased, Nanodollars, Need, NewOrder, Outcome, Reserved, Store, Terms,
};
use code_commit_fleet_trial::Postgres;
use code_commit_fleet_wire::{Ask, Finish, Verdict};

const ORDERS: usize = 1_000;
const TENANTS: usize = 10;
const BEATS: usize = 6;
const CALLS: usize = 2;
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start_with(&[])? else {
        return Ok(());
    };
    let store = Store::migrate(&postgres.address()).await?;
    for (round, at_once) in [1, 2, 4, 8, 16].into_iter().enumerate() {
        let orders: Vec<NewOrder> = (0..ORDERS)
            .map(|number| order(round * ORDERS + number))
            .collect();
        store.submit(&orders, None).await?;
        let begun = Instant::now();
        let tasks: Vec<_> = (0..at_once)
            .map(|_| tokio::spawn(work(store.clone())))
            .collect();
        for task in tasks {
            task.await??;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let each = seconds / f64::from(u32::try_from(ORDERS)?);
        println!(
            "{at_once:>3} at once: {:>6.1} orders a second, {:>6.2} ms each",
            1.0 / each,
            each * 1e3
        );
    }
    Ok(())
}

/// Takes orders until there are none.
async fn work(store: Store) -> anyhow::Result<()> {
    let (terms, gateway) = (Terms::default(), store.gateway().await?);
    let ask = Ask {
        worker: "w".into(),
        version: "0".into(),
        record: code_commit_fleet_wire::RECORD,
        wait_ms: 0,
    };
    while let Some(Leased { lease, .. }) = store.lease(&ask, &terms).await? {
        let token = lease.token;
        for _ in 0..BEATS {
            store.beat(token, &terms).await?;
        }
        for call in 0..CALLS {
            let request_sha256 = format!("{call:064}");
            let most = Nanodollars::from_usd(0.1);
            let need = Need {
                token,
                request_sha256: &request_sha256,
                model: "m",
                most,
                interval: None,
                patience: PATIENCE,
                longest_wait: PATIENCE,
            };
            let Reserved::Open(call) = store.reserve(gateway, &need).await? else {
                anyhow::bail!("it was refused")
            };
            let kept = Some(Kept {
                content_type: "application/json".into(),
                body: vec![b'x'; 4_000],
            });
            let answer = Outcome::Answered {
                kept,
                cost: most,
                input_tokens: Some(1),
                output_tokens: Some(1),
            };
            store.settle(call, &answer, &terms).await?;
        }
        let bundle = Some(
            store
                .keep(format!("{:8000}", lease.order).as_bytes())
                .await?,
        );
        let verdict = Verdict::Passed {
            commit: "c".repeat(40),
        };
        store
            .finish(
                &Finish {
                    token,
                    verdict,
                    bundle,
                    elapsed_ms: 1,
                },
                &terms,
            )
            .await?;
    }
    Ok(())
}

fn order(number: usize) -> NewOrder {
    NewOrder {
        tenant: format!("tenant-{}", number % TENANTS),
        batch: None,
        repo: "/hub".into(),
        base: "b".repeat(40),
        content: format!("{number}{}", " ".repeat(1_000)),
        model: "m".into(),
        priority: 0,
        after: None,
        land: None,
        record: code_commit_fleet_wire::RECORD,
        traceparent: None,
    }
}
