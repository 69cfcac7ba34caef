//! Leases: who works on what, until when.

use std::time::Duration;

use code_commit_fleet_wire::{Ask, Finish, Lease, Lost, Verdict};
use tokio_postgres::Transaction;
use uuid::Uuid;

use crate::{OrderId, QUEUED, State, Store, StoreError, seconds};

/// How patient the fleet is.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How long a lease holds without a beat.
    pub lease: Duration,
    /// The wait after the first loss or the first missing answer; it doubles from there, up to 64 times.
    pub backoff: Duration,
    /// An order that was lost this often is dead: it may be what kills its workers.
    pub max_lost: i32,
    /// An order whose model could not be used this often is stopped.
    pub max_attempts: i32,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease: Duration::from_mins(1), backoff: Duration::from_secs(2), max_lost: 20, max_attempts: 5 }
    }
}

/// Whether a lease still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// It does, and what was asked has been done.
    Held,
    /// Another lease, a cancellation or an end has taken its place; nothing was changed.
    Gone,
}

// One statement: lapsed leases go back, then the tenant that has waited longest gets the head of its queue leased. Orders that
// others are leasing at this moment are skipped, not waited for. The inner OFFSET keeps the planner from joining before sorting.
const LEASE: &str = "
    WITH lapsed AS (
        UPDATE orders SET
            state = CASE WHEN lost + 1 >= $4 THEN 'dead' ELSE 'queued' END,
            ended_at = CASE WHEN lost + 1 >= $4 THEN now() END,
            reason = 'its lease lapsed', lost = lost + 1, token = NULL, lease_until = NULL,
            ready_at = now() + make_interval(secs => $5 * 2 ^ least(lost, 6))
        WHERE id IN (
            SELECT id FROM orders WHERE state = 'leased' AND lease_until < now()
            ORDER BY lease_until LIMIT 16 FOR UPDATE SKIP LOCKED)
        RETURNING id, epoch, state, worker
    ), noted_lapsed AS (
        INSERT INTO events (order_id, epoch, event, detail)
        SELECT id, epoch, CASE state WHEN 'dead' THEN 'dead' ELSE 'lapsed' END, worker FROM lapsed
    ), head AS (
        SELECT o.id, t.name FROM (SELECT name FROM tenants ORDER BY turn OFFSET 0) t
        CROSS JOIN LATERAL (
            SELECT id FROM orders
            WHERE tenant = t.name AND state = 'queued' AND ready_at <= now() AND record <= $3
            ORDER BY priority DESC, lost, id LIMIT 1 FOR UPDATE SKIP LOCKED) o
        LIMIT 1
    ), turned AS (
        UPDATE tenants SET turn = nextval('turns') FROM head WHERE tenants.name = head.name
    ), leased AS (
        UPDATE orders SET state = 'leased', epoch = epoch + 1, token = gen_random_uuid(), worker = $1,
            leased_at = now(), lease_until = now() + make_interval(secs => $2), reason = NULL
        FROM head WHERE orders.id = head.id
        RETURNING orders.id, epoch, token, repo, onto, model, content, traceparent, worker
    ), noted AS (
        INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'leased', worker FROM leased
    )
    SELECT id, epoch, token, repo, onto, model, content, traceparent FROM leased";
const BEAT: &str = "
    UPDATE orders SET lease_until = now() + make_interval(secs => $2) WHERE token = $1 AND state = 'leased'";
const HOLDS: &str = "SELECT 1 FROM orders WHERE token = $1 AND state = 'leased'";
const NEXT: &str = "
    SELECT extract(epoch FROM min(at) - now())::float8 FROM (
        (SELECT min(ready_at) AS at FROM orders WHERE state = 'queued' AND ready_at > now())
        UNION ALL (SELECT min(lease_until) FROM orders WHERE state = 'leased')) AS times";
const LOSE: &str = "
    WITH lost AS (
        UPDATE orders SET
            state = CASE WHEN $3 AND lost + 1 >= $4 THEN 'dead' ELSE 'queued' END,
            ended_at = CASE WHEN $3 AND lost + 1 >= $4 THEN now() END,
            ready_at = CASE WHEN $3 THEN now() + make_interval(secs => $5 * 2 ^ least(lost, 6)) ELSE now() END,
            lost = lost + CASE WHEN $3 THEN 1 ELSE 0 END, token = NULL, lease_until = NULL, reason = $2
        WHERE token = $1 AND state = 'leased' RETURNING id, epoch, state
    )
    INSERT INTO events (order_id, epoch, event, detail)
    SELECT id, epoch, CASE state WHEN 'dead' THEN 'dead' ELSE 'lost' END, $2 FROM lost RETURNING order_id";
const FINISH: &str = "
    WITH old AS (SELECT id, attempts, over_budget FROM orders WHERE token = $1 AND state = 'leased' FOR UPDATE)
    UPDATE orders SET
        state = CASE WHEN $2 <> 'stopped' OR old.over_budget OR old.attempts + 1 >= $7 THEN $2 ELSE 'queued' END,
        token = CASE WHEN $2 <> 'stopped' OR old.over_budget OR old.attempts + 1 >= $7 THEN token END,
        ended_at = CASE WHEN $2 <> 'stopped' OR old.over_budget OR old.attempts + 1 >= $7 THEN now() END,
        ready_at = now() + make_interval(secs => $8 * 2 ^ least(old.attempts, 6)),
        attempts = old.attempts + 1, lease_until = NULL, reason = $3, commit = $4, bundle = $5, elapsed_ms = $6
    FROM old WHERE orders.id = old.id RETURNING orders.id, epoch, state, land";
const ENDED: &str = "SELECT 1 FROM orders WHERE token = $1 AND state <> 'leased'";
const NOTE: &str = "INSERT INTO events (order_id, epoch, event, detail) VALUES ($1, $2, $3, $4)";
const FREE: &str = "
    UPDATE orders SET state = 'queued', onto = $2, ready_at = now() WHERE after = $1 AND state = 'waiting'";
const CANCEL: &str = "
    WITH gone AS (
        UPDATE orders SET state = 'cancelled', token = NULL, lease_until = NULL, reason = 'cancelled', ended_at = now()
        WHERE id = $1 AND (state IN ('waiting', 'queued', 'leased', 'stopped', 'dead')
            OR (state = 'passed' AND land IS NOT NULL)) RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, epoch, 'cancelled' FROM gone RETURNING order_id";
// The same answers would end in the same FAIL, so they are not kept for it.
const FORGET: &str = "
    UPDATE calls SET state = 'wasted' FROM orders o
    WHERE o.id = $1 AND o.state = 'failed' AND order_id = o.id AND calls.state = 'answered'";
const RETRY: &str = "
    WITH again AS (
        UPDATE orders SET state = 'queued', token = NULL, reason = NULL, ended_at = NULL, lost = 0, attempts = 0,
            over_budget = false, ready_at = now()
        WHERE id = $1 AND state IN ('failed', 'stopped', 'dead', 'cancelled') RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, epoch, 'retried' FROM again RETURNING order_id";
const TELL: &str = "SELECT pg_notify($1, '')";

impl Store {
    /// Leases the next order that this worker can carry out; `None` if there is none now.
    pub async fn lease(&self, ask: &Ask, terms: &Terms) -> Result<Option<Lease>, StoreError> {
        let (lease, backoff) = (seconds(terms.lease), seconds(terms.backoff));
        let client = self.client().await?;
        let statement = client.prepare_cached(LEASE).await?;
        let row = client
            .query_opt(&statement, &[&ask.worker, &lease, &ask.record, &terms.max_lost, &backoff])
            .await?;
        Ok(row.map(|row| Lease {
            order: row.get(0),
            epoch: row.get(1),
            token: row.get(2),
            repo: row.get(3),
            base: row.get(4),
            model: row.get(5),
            content: row.get(6),
            traceparent: row.get(7),
            beat_ms: u64::try_from(terms.lease.as_millis() / 6).unwrap_or(u64::MAX),
        }))
    }

    /// Until something changes without anybody telling: an order's wait ends, or a lease lapses.
    pub async fn until_next(&self) -> Result<Option<Duration>, StoreError> {
        let wait: Option<f64> = self.client().await?.query_one(NEXT, &[]).await?.get(0);
        Ok(wait.map(|wait| Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX)))
    }

    /// Prolongs a lease.
    pub async fn beat(&self, token: Uuid, terms: &Terms) -> Result<Fence, StoreError> {
        let changed = self.client().await?.execute(BEAT, &[&token, &seconds(terms.lease)]).await?;
        Ok(if changed == 1 { Fence::Held } else { Fence::Gone })
    }

    /// Whether a lease holds.
    pub async fn holds(&self, token: Uuid) -> Result<Fence, StoreError> {
        let held = self.client().await?.query_opt(HOLDS, &[&token]).await?;
        Ok(if held.is_some() { Fence::Held } else { Fence::Gone })
    }

    /// Records a verdict once. A worker that repeats it, because our answer was lost, learns that it holds.
    pub async fn finish(&self, finish: &Finish, terms: &Terms) -> Result<Fence, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let (state, commit, reason) = match &finish.verdict {
            Verdict::Passed { commit } => (State::Passed, Some(commit), None),
            Verdict::Failed { reason } => (State::Failed, None, Some(reason)),
            Verdict::NoModel { reason } => (State::Stopped, None, Some(reason)),
        };
        let (token, backoff) = (finish.token, seconds(terms.backoff));
        let Finish { bundle, elapsed_ms, .. } = finish;
        let row = all
            .query_opt(
                FINISH,
                &[&token, &state.word(), &reason, &commit, bundle, elapsed_ms, &terms.max_attempts, &backoff],
            )
            .await?;
        let Some(row) = row else {
            let repeated = all.query_opt(ENDED, &[&token]).await?;
            return Ok(if repeated.is_some() { Fence::Held } else { Fence::Gone });
        };
        let (id, epoch, state): (i64, i32, String) = (row.get(0), row.get(1), row.get(2));
        all.execute(NOTE, &[&id, &epoch, &state, &reason.or(commit)]).await?;
        if let (Some(commit), None) = (commit, row.get::<_, Option<String>>(3)) {
            free(&all, OrderId(id), commit).await?;
        }
        all.commit().await?;
        Ok(Fence::Held)
    }

    /// Gives an order back without a verdict.
    pub async fn lose(&self, lost: &Lost, terms: &Terms) -> Result<Fence, StoreError> {
        let client = self.client().await?;
        let backoff = seconds(terms.backoff);
        let given_back = client
            .query_opt(LOSE, &[&lost.token, &lost.reason, &lost.counts, &terms.max_lost, &backoff])
            .await?;
        if given_back.is_none() {
            return Ok(Fence::Gone);
        }
        client.execute(TELL, &[&QUEUED]).await?;
        Ok(Fence::Held)
    }

    /// Ends an order that is not over; its worker learns it at its next beat. `Gone` if it was over.
    pub async fn cancel(&self, OrderId(id): OrderId) -> Result<Fence, StoreError> {
        let cancelled = self.client().await?.query_opt(CANCEL, &[&id]).await?;
        Ok(if cancelled.is_some() { Fence::Held } else { Fence::Gone })
    }

    /// Queues an order again that ended without success; its kept answers stay, unless it failed
    /// with them. `Gone` if it did not end like that.
    pub async fn retry(&self, OrderId(id): OrderId) -> Result<Fence, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        all.execute(FORGET, &[&id]).await?;
        if all.query_opt(RETRY, &[&id]).await?.is_none() {
            return Ok(Fence::Gone);
        }
        all.execute(TELL, &[&QUEUED]).await?;
        all.commit().await?;
        Ok(Fence::Held)
    }
}

/// Lets those begin that wait for `before`, on `commit`.
pub(crate) async fn free(
    all: &Transaction<'_>,
    OrderId(before): OrderId,
    commit: &str,
) -> Result<(), StoreError> {
    if all.execute(FREE, &[&before, &commit]).await? > 0 {
        all.execute(TELL, &[&QUEUED]).await?;
    }
    Ok(())
}
