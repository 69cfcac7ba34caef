//! Leases: who works on what, until when.

use std::time::Duration;

use code_commit_fleet_wire::{Ask, Finish, Lease, Lost, Verdict};
use uuid::Uuid;

use crate::views::MEANT;
use crate::{Filter, OrderId, State, Store, StoreError, seconds};

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
    /// A model whose service has failed this often in a row is left alone for `rest`, longer each time.
    pub max_faults: i32,
    /// The first of these times; it doubles from there, up to 32 times.
    pub rest: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(1),
            backoff: Duration::from_secs(2),
            max_lost: 20,
            max_attempts: 5,
            max_faults: 5,
            rest: Duration::from_secs(30),
        }
    }
}

/// An order that is leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// For its worker.
    pub lease: Lease,
    /// How long it could have begun before.
    pub waited: Duration,
}

/// Whether a lease still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// It does, and what was asked has been done.
    Held,
    /// Another lease, a cancellation or an end has taken its place; nothing was changed.
    Gone,
}

impl Fence {
    pub(crate) fn of(changed: u64) -> Self {
        if changed > 0 { Self::Held } else { Self::Gone }
    }
}

// One statement: the tenant that has waited longest gets the head of its queue leased. Orders that others are leasing at this moment
// are skipped, not waited for. The inner OFFSET keeps the planner from joining before sorting.
const LEASE: &str = "
    WITH head AS (
        SELECT o.id, o.waited, t.tenant FROM (SELECT tenant FROM in_line ORDER BY turn OFFSET 0) t
        CROSS JOIN LATERAL (
            SELECT id, extract(epoch FROM now() - ready_at)::float8 AS waited FROM orders
            WHERE tenant = t.tenant AND state = 'queued' AND parked IS NULL AND record <= $3
            ORDER BY priority DESC, lost, id LIMIT 1 FOR UPDATE SKIP LOCKED) o
        WHERE NOT EXISTS (SELECT 1 FROM workers WHERE name = $1 AND is_draining)
        LIMIT 1
    ), turned AS (
        UPDATE in_line SET turn = nextval('turns') FROM head WHERE in_line.tenant = head.tenant
    ), leased AS (
        UPDATE orders SET state = 'leased', epoch = epoch + 1, worker = $1, reason = NULL, refused = NULL
        FROM head WHERE orders.id = head.id
        RETURNING orders.id, epoch, repo, onto, model, content_sha256, traceparent, worker, members IS NOT NULL AS is_train, waited
    ), lease AS (
        INSERT INTO leases (order_id, epoch, token, worker, reference, until)
        SELECT id, epoch, gen_random_uuid(), worker, 'refs/fleet/' || fleet.name || '/' || id || '/' || epoch,
            now() + make_interval(secs => $2) FROM leased, fleet RETURNING token, reference
    ), noted AS (
        INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'leased', worker FROM leased
    )
    SELECT id, epoch, token, repo, onto, model, content, traceparent, reference, is_train, waited
    FROM leased CROSS JOIN lease JOIN contents ON sha256 = content_sha256";
const BEAT: &str = "UPDATE leases SET until = now() + make_interval(secs => $2) WHERE token = $1";
const HOLDS: &str = "SELECT 1 FROM leases WHERE token = $1";
const NEXT: &str = "
    SELECT extract(epoch FROM min(at) - now())::float8 FROM (
        (SELECT min(ready_at) AS at FROM orders WHERE state = 'queued' AND parked IS NOT NULL AND ready_at < 'infinity')
        UNION ALL (SELECT min(until) FROM leases)) AS times";
// The second half of LOSE and LAPSE. $1 is `Terms::max_lost`, $2 the backoff in seconds.
const LOST: &str = "
    lost AS (
        UPDATE orders SET
            state = CASE WHEN counts AND lost + 1 >= $1 THEN 'dead' ELSE 'queued' END,
            ended_at = CASE WHEN counts AND lost + 1 >= $1 THEN now() END,
            ready_at = CASE WHEN counts THEN now() + make_interval(secs => $2 * 2 ^ least(lost, 6)) ELSE now() END,
            lost = lost + counts::integer, reason = gone.why
        FROM gone WHERE orders.id = gone.order_id RETURNING orders.id, orders.epoch, state, gone.word, gone.detail
    )
    INSERT INTO events (order_id, epoch, event, detail)
    SELECT id, epoch, CASE state WHEN 'dead' THEN 'dead' ELSE word END, detail FROM lost RETURNING order_id";
const LOSE: &str = "
    WITH gone AS (
        DELETE FROM leases WHERE token = $3 RETURNING order_id, $4::text AS why, $5::boolean AS counts, 'lost' AS word, $4 AS detail
    ), ";
const LAPSE: &str = "
    WITH gone AS (
        DELETE FROM leases WHERE order_id IN (
            SELECT order_id FROM leases WHERE until < now() LIMIT 200 FOR UPDATE SKIP LOCKED)
        RETURNING order_id, 'its lease lapsed' AS why, true AS counts, 'lapsed' AS word, worker AS detail
    ), ";
const FINISH: &str = "SELECT finish($1, $2, $3, $4, $5, $6, $7, $8, $9)";
// Before CANCEL: whatever locks a lease and its order locks the lease first.
const END_LEASES: &str = "DELETE FROM leases USING orders o WHERE order_id = o.id AND __MEANT__";
const CANCEL: &str = "
    WITH gone AS (
        UPDATE orders o SET state = 'cancelled', reason = 'cancelled', ended_at = now()
        WHERE __MEANT__ AND (state IN ('waiting', 'queued', 'leased', 'stopped', 'dead')
            OR (state = 'passed' AND land IS NOT NULL)) RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, epoch, 'cancelled' FROM gone RETURNING order_id";
// After it: orders may have been leased in between.
const END_NEW_LEASES: &str = "DELETE FROM leases WHERE order_id = ANY($1)";
// The same answers would end in the same FAIL, so they are not kept for it.
const FORGET: &str = "
    UPDATE calls SET state = 'wasted' FROM orders o
    WHERE __MEANT__ AND o.state = 'failed' AND order_id = o.id AND calls.state = 'answered'";
const RETRY: &str = "
    WITH again AS (
        UPDATE orders o SET state = 'queued', token = NULL, reason = NULL, ended_at = NULL, lost = 0, attempts = 0,
            refused = NULL, ready_at = now()
        WHERE __MEANT__ AND state IN ('failed', 'stopped', 'dead', 'cancelled') RETURNING id, epoch
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, epoch, 'retried' FROM again RETURNING order_id";
pub(crate) const TELL: &str = "SELECT pg_notify('fleet_queued', '')";

impl Store {
    /// Leases the next order that this worker can carry out; `None` if there is none now, or if the worker drains.
    pub async fn lease(&self, ask: &Ask, terms: &Terms) -> Result<Option<Leased>, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(LEASE).await?;
        let row = client
            .query_opt(
                &statement,
                &[&ask.worker, &seconds(terms.lease), &ask.record],
            )
            .await?;
        Ok(row.map(|row| Leased {
            lease: Lease {
                order: row.get(0),
                epoch: row.get(1),
                token: row.get(2),
                repo: row.get(3),
                base: row.get(4),
                model: row.get(5),
                content: row.get(6),
                traceparent: row.get(7),
                reference: row.get(8),
                is_train: row.get(9),
                beat_ms: u64::try_from(terms.lease.as_millis() / 6).unwrap_or(u64::MAX),
            },
            waited: Duration::try_from_secs_f64(row.get(10)).unwrap_or_default(),
        }))
    }

    /// Until something changes without anybody telling: an order's wait ends, or a lease lapses.
    pub async fn until_next(&self) -> Result<Option<Duration>, StoreError> {
        let client = self.client().await?;
        let wait: Option<f64> = client
            .query_one(&client.prepare_cached(NEXT).await?, &[])
            .await?
            .get(0);
        Ok(wait.map(|wait| Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX)))
    }

    /// Prolongs a lease.
    pub async fn beat(&self, token: Uuid, terms: &Terms) -> Result<Fence, StoreError> {
        let client = self.client().await?;
        let beat = client.prepare_cached(BEAT).await?;
        Ok(Fence::of(
            client
                .execute(&beat, &[&token, &seconds(terms.lease)])
                .await?,
        ))
    }

    /// Whether a lease holds.
    pub async fn holds(&self, token: Uuid) -> Result<Fence, StoreError> {
        let client = self.client().await?;
        let holds = client.prepare_cached(HOLDS).await?;
        Ok(Fence::of(client.execute(&holds, &[&token]).await?))
    }

    /// Records a verdict once. A worker that repeats it, because our answer was lost, learns that it holds.
    pub async fn finish(&self, finish: &Finish, terms: &Terms) -> Result<Fence, StoreError> {
        let (state, commit, reason) = match &finish.verdict {
            Verdict::Passed { commit } => (State::Passed, Some(commit), None),
            Verdict::Failed { reason } => (State::Failed, None, Some(reason)),
            Verdict::NoModel { reason } => (State::Stopped, None, Some(reason)),
        };
        let Finish {
            token,
            bundle,
            elapsed_ms,
            ..
        } = finish;
        let (backoff, attempts, faults) =
            (seconds(terms.backoff), terms.max_attempts, terms.max_faults);
        let client = self.client().await?;
        let statement = client.prepare_cached(FINISH).await?;
        let holds: bool = client
            .query_one(
                &statement,
                &[
                    token,
                    &state.word(),
                    &reason,
                    &commit,
                    bundle,
                    elapsed_ms,
                    &attempts,
                    &backoff,
                    &faults,
                ],
            )
            .await?
            .get(0);
        Ok(if holds { Fence::Held } else { Fence::Gone })
    }

    /// Gives an order back without a verdict.
    pub async fn lose(&self, lost: &Lost, terms: &Terms) -> Result<Fence, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(&[LOSE, LOST].concat()).await?;
        let backoff = seconds(terms.backoff);
        let Lost {
            token,
            reason,
            counts,
        } = lost;
        let given_back = client
            .execute(
                &statement,
                &[&terms.max_lost, &backoff, token, reason, counts],
            )
            .await?;
        if given_back > 0 {
            client.batch_execute(TELL).await?;
        }
        Ok(Fence::of(given_back))
    }

    /// Takes lapsed leases back; how many there were.
    pub(crate) async fn lapse(&self, terms: &Terms) -> Result<u64, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(&[LAPSE, LOST].concat()).await?;
        Ok(client
            .execute(&statement, &[&terms.max_lost, &seconds(terms.backoff)])
            .await?)
    }

    /// Ends those of these orders that are not over; their workers learn it at their next beat. Returns them.
    pub async fn cancel(&self, which: &Filter) -> Result<Vec<OrderId>, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        all.execute(
            &END_LEASES.replace("__MEANT__", MEANT),
            &which.values().get(),
        )
        .await?;
        let rows = all
            .query(&CANCEL.replace("__MEANT__", MEANT), &which.values().get())
            .await?;
        let mut cancelled: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        cancelled.sort_unstable();
        all.execute(END_NEW_LEASES, &[&cancelled]).await?;
        all.commit().await?;
        Ok(cancelled.into_iter().map(OrderId).collect())
    }

    /// Queues those of these orders again that ended without success; kept answers stay, unless an order failed with them. Returns
    /// them.
    pub async fn retry(&self, which: &Filter) -> Result<Vec<OrderId>, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        all.execute(&FORGET.replace("__MEANT__", MEANT), &which.values().get())
            .await?;
        let rows = all
            .query(&RETRY.replace("__MEANT__", MEANT), &which.values().get())
            .await?;
        all.execute(TELL, &[]).await?;
        all.commit().await?;
        Ok(rows.iter().map(|row| OrderId(row.get(0))).collect())
    }
}
