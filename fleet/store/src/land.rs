//! The merge queue's side of the database: results that wait for a branch, and trains of them.

use std::collections::BTreeSet;

use deadpool_postgres::{ClientWrapper, Object};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::submit::CONTENT;
use crate::{Fence, OrderId, State, Store, StoreError, hex, queue};

/// The right to move branches; there is one. It ends with its connection.
#[derive(Debug)]
pub struct Landing {
    client: ClientWrapper,
}

/// A result that waits for its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The order.
    pub order: OrderId,
    /// The commit that it was verified on.
    pub onto: String,
    /// The result.
    pub commit: String,
    /// The order as it was submitted.
    pub content: String,
    /// The span in which it was submitted.
    pub traceparent: Option<String>,
}

/// Results, one upon the other, that are verified together on a predicted head of their branch, and land together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Train {
    /// It is leased like an order.
    pub id: OrderId,
    /// How far its verification is.
    pub state: State,
    /// The head of the branch that it begins on.
    pub base: String,
    /// The last of its commits.
    pub tip: String,
    /// Why it is there, if it is not obvious.
    pub reason: Option<String>,
    /// Whether all of its results still wait for it: none was cancelled or has landed.
    pub is_whole: bool,
    /// Its results in their order.
    pub members: Vec<Arrived>,
}

/// A result as it lands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// The order.
    pub order: OrderId,
    /// The result, upon those before it.
    pub commit: String,
    /// For its verification.
    pub content: String,
    /// The span in which it was submitted.
    pub traceparent: Option<String>,
}

// Any number; `land` has one.
const LOCK: &str = "SELECT pg_try_advisory_lock(7310439)";
const HELD: &str = "
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7310439 AND pid = pg_backend_pid()";
// A branch whose train runs is found by the train's members, which have passed.
const BRANCHES: &str = "
    SELECT DISTINCT repo, land FROM orders WHERE state = 'passed' AND land IS NOT NULL ORDER BY 1, 2";
const READY: &str = "
    SELECT id, onto, commit, content, traceparent FROM orders JOIN contents ON sha256 = content_sha256
    WHERE repo = $1 AND land = $2 AND state = 'passed' AND members IS NULL ORDER BY id LIMIT $3";
const TRAIN: &str = "
    SELECT t.id, t.state, t.base, t.onto, content,
        (SELECT count(*) FROM orders o WHERE o.id = ANY(t.members) AND o.state = 'passed') = cardinality(t.members), t.reason
    FROM orders t JOIN contents ON sha256 = content_sha256
    WHERE repo = $1 AND land = $2 AND members IS NOT NULL AND state <> 'landed' AND state <> 'cancelled'";
// A train goes before everything else of its tenant: what has passed waits for it.
const COUPLE: &str = "
    INSERT INTO orders (tenant, repo, base, onto, content_sha256, model, priority, land, record, state, members, traceparent)
    SELECT tenant, repo, $2, $3, $4, '', 2147483647, land, $5, 'queued', $6, traceparent FROM orders WHERE id = $1
    RETURNING id";
const DISSOLVE: &str = "
    WITH gone AS (DELETE FROM leases WHERE order_id = $1)
    UPDATE orders SET state = 'cancelled', reason = $2, ended_at = now() WHERE id = $1 AND members IS NOT NULL";
// An order that was cancelled after its branch had moved has still landed.
const DONE: &str = "
    WITH landed AS (
        UPDATE orders SET state = 'landed', reason = NULL, commit = $2, ended_at = now()
        WHERE id = $1 AND state IN ('passed', 'cancelled') RETURNING id, epoch
    ), noted AS (
        INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'landed', $2 FROM landed
    )
    SELECT begin_after(id, $2) FROM landed";
const ARRIVED: &str =
    "UPDATE orders SET state = 'landed', ended_at = now() WHERE id = $1 AND members IS NOT NULL";
const AGAIN: &str = "
    WITH again AS (
        UPDATE orders SET state = 'queued', onto = $3, token = NULL, commit = NULL, bundle = NULL, ended_at = NULL,
            attempts = 0, ready_at = now(), reason = $4
        WHERE id = $1 AND commit = $2 AND state = 'passed' RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'moved', $3 FROM again RETURNING order_id";
const REFUSE: &str = "
    WITH refused AS (
        UPDATE orders SET state = 'failed', reason = $3, ended_at = now()
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

    /// The part of names below `refs/fleet/` that tells this fleet from others on the same hub.
    pub async fn name_in_hubs(&self) -> Result<String, StoreError> {
        Ok(self
            .client()
            .await?
            .query_one("SELECT name FROM fleet", &[])
            .await?
            .get(0))
    }
}

impl Landing {
    /// Repositories, each with its branches that results wait for.
    pub async fn branches(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        let rows = self.client.query(BRANCHES, &[]).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.get(0), row.get(1)))
            .collect())
    }

    /// The first results that wait for a branch.
    pub async fn ready(
        &self,
        repo: &str,
        branch: &str,
        limit: i64,
    ) -> Result<Vec<Ready>, StoreError> {
        let rows = self.client.query(READY, &[&repo, &branch, &limit]).await?;
        let ready = |row: tokio_postgres::Row| Ready {
            order: OrderId(row.get(0)),
            onto: row.get(1),
            commit: row.get(2),
            content: row.get(3),
            traceparent: row.get(4),
        };
        Ok(rows.into_iter().map(ready).collect())
    }

    /// The train that runs to a branch.
    pub async fn train(&self, repo: &str, branch: &str) -> Result<Option<Train>, StoreError> {
        let Some(row) = self.client.query_opt(TRAIN, &[&repo, &branch]).await? else {
            return Ok(None);
        };
        let members = serde_json::from_str(row.get(4)).map_err(StoreError::Train)?;
        let (id, state) = (OrderId(row.get(0)), State::read(row.get(1))?);
        let (base, tip, is_whole, reason) = (row.get(2), row.get(3), row.get(5), row.get(6));
        Ok(Some(Train {
            id,
            state,
            base,
            tip,
            reason,
            is_whole,
            members,
        }))
    }

    /// A new train on this head of its branch: a worker will verify it.
    pub async fn couple(&self, base: &str, members: &[Arrived]) -> Result<(), StoreError> {
        let Some((first, last)) = members.first().zip(members.last()) else {
            return Ok(());
        };
        let content = serde_json::to_string(members).map_err(StoreError::Train)?;
        let hash = hex(&Sha256::digest(&content));
        self.client.execute(CONTENT, &[&hash, &content]).await?;
        let orders: Vec<i64> = members.iter().map(|member| member.order.0).collect();
        let record = code_commit_fleet_wire::RECORD;
        self.client
            .query(
                COUPLE,
                &[&first.order.0, &base, &last.commit, &hash, &record, &orders],
            )
            .await?;
        Ok(self.client.batch_execute(queue::TELL).await?)
    }

    /// The train runs no more; its results wait for the next.
    pub async fn dissolve(&self, train: OrderId, reason: &str) -> Result<(), StoreError> {
        self.client.execute(DISSOLVE, &[&train.0, &reason]).await?;
        Ok(())
    }

    /// Whether the right still holds: asked before each branch is moved, because the database may have been restarted.
    pub async fn holds(&self) -> Result<bool, StoreError> {
        Ok(self.client.query_opt(HELD, &[]).await?.is_some())
    }

    /// All results of a train have landed.
    pub async fn arrived(&self, train: OrderId) -> Result<(), StoreError> {
        self.client.execute(ARRIVED, &[&train.0]).await?;
        Ok(())
    }

    /// The branch has moved to this commit of an order. `Gone` if the order has changed meanwhile.
    pub async fn landed(&self, order: OrderId, commit: &str) -> Result<Fence, StoreError> {
        let landed = self.client.query_opt(DONE, &[&order.0, &commit]).await?;
        Ok(if landed.is_some() {
            Fence::Held
        } else {
            Fence::Gone
        })
    }

    /// The result cannot land: the order has failed.
    pub async fn refused(&self, ready: &Ready, reason: &str) -> Result<Fence, StoreError> {
        let Ready { order, commit, .. } = ready;
        Ok(Fence::of(
            self.client
                .execute(REFUSE, &[&order.0, &commit, &reason])
                .await?,
        ))
    }

    /// The result does not fit on `head` any more: the order is carried out again there.
    pub async fn again(
        &self,
        ready: &Ready,
        head: &str,
        reason: &str,
    ) -> Result<Fence, StoreError> {
        let Ready { order, commit, .. } = ready;
        let again = self
            .client
            .execute(AGAIN, &[&order.0, &commit, &head, &reason])
            .await?;
        self.client.batch_execute(queue::TELL).await?;
        Ok(Fence::of(again))
    }
}
