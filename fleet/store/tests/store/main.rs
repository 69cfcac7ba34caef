//! The store with a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod landing;
mod queue;
mod schema;
mod speed;
mod steer;

use std::time::Duration;

use code_commit_fleet_store::{
    CallId, Fence, Filter, NewOrder, OrderId, OrderRow, Outcome, State, Store, StoreError, Terms,
};
use code_commit_fleet_trial::{Database, Postgres};
use code_commit_fleet_wire::{Ask, Finish, Lease, Lost, Verdict};

/// A database of a test's own; `None`, said aloud, where PostgreSQL is not installed.
struct Scene {
    database: Database,
    store: Store,
    terms: Terms,
}

impl Scene {
    async fn new() -> Option<Self> {
        let database = Database::create().unwrap()?;
        let store = Store::migrate(&database.address()).await.unwrap();
        // Losses are waited for by the database's clock, so there is nothing to wait for.
        let terms = Terms {
            backoff: Duration::ZERO,
            ..Terms::default()
        };
        Some(Self {
            database,
            store,
            terms,
        })
    }

    async fn submit(&self, orders: &[NewOrder]) -> Vec<i64> {
        self.store
            .submit(orders, None)
            .await
            .unwrap()
            .into_iter()
            .map(|submitted| submitted.order.0)
            .collect()
    }

    async fn lease(&self) -> Option<Lease> {
        self.lease_with(&self.terms).await
    }

    async fn lease_with(&self, terms: &Terms) -> Option<Lease> {
        let leased = self
            .store
            .lease(&ask(code_commit_fleet_wire::RECORD), terms)
            .await
            .unwrap();
        leased.map(|leased| leased.lease)
    }

    async fn finish(&self, lease: &Lease, verdict: Verdict) -> Fence {
        let finish = Finish {
            token: lease.token,
            verdict,
            bundle: None,
            elapsed_ms: 7,
        };
        self.store.finish(&finish, &self.terms).await.unwrap()
    }

    async fn lose(&self, lease: &Lease) -> Fence {
        let lost = Lost {
            token: lease.token,
            reason: "no disk".into(),
            counts: true,
        };
        self.store.lose(&lost, &self.terms).await.unwrap()
    }

    async fn row(&self, order: i64) -> OrderRow {
        self.store.orders(&only(order)).await.unwrap().remove(0)
    }

    async fn settle(&self, call: CallId, outcome: &Outcome) -> Result<(), StoreError> {
        self.store.settle(call, outcome, &self.terms).await
    }

    async fn cancel(&self, order: i64) -> Vec<OrderId> {
        self.store.cancel(&only(order)).await.unwrap()
    }

    async fn retry(&self, order: i64) -> Vec<OrderId> {
        self.store.retry(&only(order)).await.unwrap()
    }

    async fn sweep(&self) {
        self.store.sweep(&self.terms).await.unwrap();
    }

    async fn state(&self, order: i64) -> State {
        self.row(order).await.state
    }
}

/// This order.
fn only(order: i64) -> Filter {
    Filter {
        orders: vec![OrderId(order)],
        ..Filter::default()
    }
}

fn ask(record: i32) -> Ask {
    Ask {
        worker: "w".into(),
        version: "0".into(),
        record,
        wait_ms: 0,
    }
}

fn order(tenant: &str, content: &str) -> NewOrder {
    NewOrder {
        tenant: tenant.into(),
        batch: None,
        repo: "/hub".into(),
        base: "b".repeat(40),
        content: content.into(),
        model: "gemini-3.8-flash".into(),
        priority: 0,
        after: None,
        land: None,
        record: code_commit_fleet_wire::RECORD,
        traceparent: None,
    }
}

fn passed(commit: &str) -> Verdict {
    Verdict::Passed {
        commit: commit.into(),
    }
}

fn failed() -> Verdict {
    Verdict::Failed {
        reason: "verify_failed".into(),
    }
}

fn no_model() -> Verdict {
    Verdict::NoModel {
        reason: "overloaded".into(),
    }
}

/// A lease that has lapsed by the time anybody looks.
fn lapsing(terms: Terms) -> Terms {
    Terms {
        lease: Duration::ZERO,
        ..terms
    }
}
