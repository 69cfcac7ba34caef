//! Views for people and monitors.

use std::collections::BTreeMap;

use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::{Budget, Nanodollars, OrderId, State, Store, StoreError};

/// Which orders are meant; an empty filter means all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this batch.
    pub batch: Option<String>,
    /// In this state.
    pub state: Option<State>,
    /// This one.
    pub order: Option<OrderId>,
}

/// An order as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderRow {
    /// Its number.
    pub order: OrderId,
    /// Whose it is.
    pub tenant: String,
    /// The batch that it belongs to.
    pub batch: Option<String>,
    /// Where it stands.
    pub state: State,
    /// Why it stands there, if it is not obvious.
    pub reason: Option<String>,
    /// The hub.
    pub repo: String,
    /// The commit that it was, or will be, carried out on.
    pub onto: String,
    /// The result.
    pub commit: Option<String>,
    /// Where the result is in the hub.
    pub reference: Option<String>,
    /// The branch that it goes to.
    pub land: Option<String>,
    /// The order that comes before it.
    pub after: Option<OrderId>,
    /// How often it was leased.
    pub epoch: i32,
    /// How often it was lost.
    pub lost: i32,
    /// The worker that has it, or had it last.
    pub worker: Option<String>,
    /// Of its last lease.
    pub elapsed_ms: Option<i64>,
    /// SHA-256 of its exported run.
    pub bundle: Option<String>,
    /// Its cost; an unknown call counts in full.
    pub cost_usd: f64,
}

impl OrderRow {
    /// It has passed, and landed if it should.
    pub fn is_done(&self) -> bool {
        self.state == State::Landed || self.state == State::Passed && self.land.is_none()
    }
}

/// An event of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// RFC 3339, by the database's clock.
    pub at: String,
    /// In which lease; 0 before the first.
    pub epoch: i32,
    /// What.
    pub event: String,
    /// With whom, or why.
    pub detail: Option<String>,
}

/// Paid calls, summed up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Whose it was.
    pub tenant: String,
    /// In which batch.
    pub batch: Option<String>,
    /// The model.
    pub model: String,
    /// Calls that were paid for.
    pub calls: i64,
    /// Of them, those whose request had an answer already.
    pub again: i64,
    /// Of them, those that nobody knows about: a gateway died, or the answer broke off.
    pub unknown: i64,
    /// Of all prompts.
    pub input_tokens: i64,
    /// Of all answers.
    pub output_tokens: i64,
    /// An unknown call counts in full.
    pub usd: f64,
}

/// The fleet at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// How many orders are in which state; states without orders are left out.
    pub orders: BTreeMap<State, i64>,
    /// How often orders were lost.
    pub lost: i64,
    /// Calls under way.
    pub open_calls: i64,
    /// How long the oldest queued order has waited since it could begin.
    pub oldest_queued_s: f64,
    /// The age of the oldest lease.
    pub oldest_lease_s: f64,
    /// All caps.
    pub budgets: Vec<Budget>,
}

const ORDERS: &str = "
    SELECT id, tenant, batch, state, reason, repo, onto, commit, land, after, epoch, lost, worker, elapsed_ms, bundle,
        (SELECT coalesce(sum(CASE WHEN c.state = 'failed' THEN 0 ELSE coalesce(c.cost, c.reserved) END), 0)::bigint
         FROM calls c WHERE c.order_id = o.id)
    FROM orders o
    WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR batch = $2)
      AND ($3::text IS NULL OR state = $3) AND ($4::bigint IS NULL OR id = $4) ORDER BY id";
const EVENTS: &str = "
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), epoch, event, detail
    FROM events WHERE order_id = $1 ORDER BY id";
const COSTS: &str = "
    SELECT o.tenant, o.batch, c.model, count(*), count(*) FILTER (WHERE c.state = 'again'),
        count(*) FILTER (WHERE c.state IN ('unknown', 'open')),
        coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
        coalesce(sum(coalesce(cost, reserved)), 0)::bigint
    FROM calls c JOIN orders o ON o.id = c.order_id
    WHERE c.state <> 'failed' AND ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.batch = $2)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
const STATES: &str = "SELECT state, count(*) FROM orders GROUP BY 1";
const REST: &str = "
    SELECT (SELECT coalesce(sum(lost), 0)::bigint FROM orders), (SELECT count(*) FROM calls WHERE state = 'open'),
        (SELECT coalesce(extract(epoch FROM max(now() - ready_at)), 0)::float8 FROM orders WHERE state = 'queued'),
        (SELECT coalesce(extract(epoch FROM max(now() - leased_at)), 0)::float8 FROM orders WHERE state = 'leased')";

impl Store {
    /// The orders that the filter means.
    pub async fn orders(&self, filter: &Filter) -> Result<Vec<OrderRow>, StoreError> {
        let Filter { tenant, batch, state, order } = filter;
        let (state, id) = (state.map(State::word), order.map(|OrderId(id)| id));
        let filters: [&(dyn ToSql + Sync); 4] = [tenant, batch, &state, &id];
        self.client().await?.query(ORDERS, &filters).await?.iter().map(order_row).collect()
    }

    /// An event of an order.
    pub async fn events(&self, OrderId(id): OrderId) -> Result<Vec<Event>, StoreError> {
        let rows = self.client().await?.query(EVENTS, &[&id]).await?;
        let event =
            |row: Row| Event { at: row.get(0), epoch: row.get(1), event: row.get(2), detail: row.get(3) };
        Ok(rows.into_iter().map(event).collect())
    }

    /// Paid calls by tenant, batch and model.
    pub async fn costs(&self, filter: &Filter) -> Result<Vec<Cost>, StoreError> {
        let rows = self.client().await?.query(COSTS, &[&filter.tenant, &filter.batch]).await?;
        Ok(rows.iter().map(cost).collect())
    }

    /// The fleet at this moment.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let client = self.client().await?;
        let states = client.query(STATES, &[]).await?;
        let orders = states.iter().map(|row| Ok((State::read(row.get(0))?, row.get(1))));
        let orders = orders.collect::<Result<_, StoreError>>()?;
        let rest = client.query_one(REST, &[]).await?;
        drop(client);
        Ok(Snapshot {
            orders,
            lost: rest.get(0),
            open_calls: rest.get(1),
            oldest_queued_s: rest.get(2),
            oldest_lease_s: rest.get(3),
            budgets: self.budgets().await?,
        })
    }
}

fn order_row(row: &Row) -> Result<OrderRow, StoreError> {
    let (id, epoch, commit): (i64, i32, Option<String>) = (row.get(0), row.get(10), row.get(7));
    Ok(OrderRow {
        order: OrderId(id),
        tenant: row.get(1),
        batch: row.get(2),
        state: State::read(row.get(3))?,
        reason: row.get(4),
        repo: row.get(5),
        onto: row.get(6),
        reference: commit.is_some().then(|| code_commit_fleet_wire::result_ref(id, epoch)),
        commit,
        land: row.get(8),
        after: row.get::<_, Option<i64>>(9).map(OrderId),
        epoch,
        lost: row.get(11),
        worker: row.get(12),
        elapsed_ms: row.get(13),
        bundle: row.get(14),
        cost_usd: Nanodollars(row.get(15)).as_usd(),
    })
}

fn cost(row: &Row) -> Cost {
    Cost {
        tenant: row.get(0),
        batch: row.get(1),
        model: row.get(2),
        calls: row.get(3),
        again: row.get(4),
        unknown: row.get(5),
        input_tokens: row.get(6),
        output_tokens: row.get(7),
        usd: Nanodollars(row.get(8)).as_usd(),
    }
}
