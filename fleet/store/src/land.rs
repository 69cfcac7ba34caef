//! The merge queue: one process moves branches.

use deadpool_postgres::{ClientWrapper, Object};
use serde::Serialize;

use crate::{Fence, OrderId, QUEUED, Store, StoreError, queue};

/// The right to move branches; there is one. It ends with its connection.
#[derive(Debug)]
pub struct Landing {
    client: ClientWrapper,
}

/// A result that waits for its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Landed {
    /// The order.
    pub order: OrderId,
    /// The hub.
    pub repo: String,
    /// Where it goes.
    pub branch: String,
    /// The commit that it was verified on.
    pub onto: String,
    /// The result.
    pub commit: String,
    /// Where the result is.
    pub reference: String,
    /// The span in which it was submitted.
    pub traceparent: Option<String>,
}

// Any number; `land` has one.
const LOCK: &str = "SELECT pg_try_advisory_lock(7310439)";
const HELD: &str = "
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7310439 AND pid = pg_backend_pid()";
// Those of one branch land in the order of their numbers.
const READY: &str = "
    SELECT DISTINCT ON (repo, land) id, repo, land, onto, commit, epoch, traceparent FROM orders
    WHERE state = 'passed' AND land IS NOT NULL ORDER BY repo, land, id";
// An order that was cancelled after its branch had moved has still landed.
const DONE: &str = "
    WITH landed AS (
        UPDATE orders SET state = 'landed', reason = NULL, ended_at = now()
        WHERE id = $1 AND commit = $2 AND state IN ('passed', 'cancelled') RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'landed', $2 FROM landed RETURNING order_id";
const AGAIN: &str = "
    WITH again AS (
        UPDATE orders SET state = 'queued', onto = $3, token = NULL, commit = NULL, bundle = NULL, ended_at = NULL,
            attempts = 0, ready_at = now(), reason = 'its branch has moved'
        WHERE id = $1 AND commit = $2 AND state = 'passed' RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'moved', $3 FROM again RETURNING order_id";

const REFUSE: &str = "
    WITH refused AS (
        UPDATE orders SET state = 'failed', reason = 'its result does not descend from ' || onto, ended_at = now()
        WHERE id = $1 AND commit = $2 AND state = 'passed' RETURNING id, epoch, reason
    )
    INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'failed', reason FROM refused RETURNING order_id";

impl Store {
    /// Becomes the one that moves branches; `None` if another process is.
    pub async fn landing(&self) -> Result<Option<Landing>, StoreError> {
        // The lock belongs to the connection, so that may not go back to the pool.
        let client = Object::take(self.client().await?);
        let is_alone: bool = client.query_one(LOCK, &[]).await?.get(0);
        Ok(is_alone.then_some(Landing { client }))
    }
}

impl Landing {
    /// The next result for each branch.
    pub async fn ready(&self) -> Result<Vec<Landed>, StoreError> {
        let rows = self.client.query(READY, &[]).await?;
        let landed = |row: tokio_postgres::Row| Landed {
            order: OrderId(row.get(0)),
            repo: row.get(1),
            branch: row.get(2),
            onto: row.get(3),
            commit: row.get(4),
            reference: code_commit_fleet_wire::result_ref(row.get(0), row.get(5)),
            traceparent: row.get(6),
        };
        Ok(rows.into_iter().map(landed).collect())
    }

    /// Whether the right still holds: asked before each branch is moved, because the database may have been restarted.
    pub async fn holds(&self) -> Result<bool, StoreError> {
        Ok(self.client.query_opt(HELD, &[]).await?.is_some())
    }

    /// The branch has moved to the result. `Gone` if the order has changed meanwhile.
    pub async fn landed(&mut self, landed: &Landed) -> Result<Fence, StoreError> {
        let all = self.client.transaction().await?;
        if all.query_opt(DONE, &[&landed.order.0, &landed.commit]).await?.is_none() {
            return Ok(Fence::Gone);
        }
        queue::free(&all, landed.order, &landed.commit).await?;
        all.commit().await?;
        Ok(Fence::Held)
    }

    /// The result does not descend from what it was verified on: the order has failed.
    pub async fn refused(&self, landed: &Landed) -> Result<Fence, StoreError> {
        let refused = self.client.query_opt(REFUSE, &[&landed.order.0, &landed.commit]).await?;
        Ok(if refused.is_some() { Fence::Held } else { Fence::Gone })
    }

    /// The branch is at `head`, which the result was not verified on: the order is carried out again there.
    pub async fn moved(&self, landed: &Landed, head: &str) -> Result<Fence, StoreError> {
        let again = self.client.query_opt(AGAIN, &[&landed.order.0, &landed.commit, &head]).await?;
        if again.is_none() {
            return Ok(Fence::Gone);
        }
        self.client.execute("SELECT pg_notify($1, '')", &[&QUEUED]).await?;
        Ok(Fence::Held)
    }
}
