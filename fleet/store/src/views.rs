//! Views for people and monitors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::{Budget, Nanodollars, OrderId, Pause, State, Store, StoreError};

/// Which orders are meant; an empty filter means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this batch.
    pub batch: Option<String>,
    /// In this state.
    pub state: Option<State>,
    /// These; none of them is named if it is empty.
    pub orders: Vec<OrderId>,
    /// In this repository.
    pub repo: Option<String>,
    /// For this model.
    pub model: Option<String>,
}

/// The orders `o` that a [`Filter`] means, with its values from `$1` on.
pub(crate) const MEANT: &str = "
    o.members IS NULL AND ($1::text IS NULL OR o.tenant = $1) AND ($2::text IS NULL OR o.batch = $2)
    AND ($3::text IS NULL OR o.state = $3) AND ($4::bigint[] IS NULL OR o.id = ANY($4))
    AND ($5::text IS NULL OR o.repo = $5) AND ($6::text IS NULL OR o.model = $6)";

/// The values of a filter, as statements take them.
pub(crate) struct Values<'f> {
    filter: &'f Filter,
    state: Option<&'static str>,
    orders: Option<Vec<i64>>,
}

impl Filter {
    pub(crate) fn values(&self) -> Values<'_> {
        let orders =
            (!self.orders.is_empty()).then(|| self.orders.iter().map(|order| order.0).collect());
        Values {
            filter: self,
            state: self.state.map(State::word),
            orders,
        }
    }
}

impl Values<'_> {
    pub(crate) fn get(&self) -> [&(dyn ToSql + Sync); 6] {
        let Filter {
            tenant,
            batch,
            repo,
            model,
            ..
        } = self.filter;
        [tenant, batch, &self.state, &self.orders, repo, model]
    }
}

/// An order as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Why nobody leases it for now although it is queued: `backoff`, `paused` or `budget`.
    pub parked: Option<String>,
}

impl OrderRow {
    /// It has passed, and landed if it should.
    pub fn is_done(&self) -> bool {
        self.state == State::Landed || self.state == State::Passed && self.land.is_none()
    }
}

/// An event of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What is not leased for now.
    pub pauses: Vec<Pause>,
}

const ORDERS: &str = "
    SELECT id, tenant, batch, state, reason, repo, onto, commit, land, after, epoch, lost, worker, elapsed_ms, bundle,
        (SELECT coalesce(sum(CASE WHEN c.state = 'failed' THEN 0 ELSE coalesce(c.cost, c.reserved) END), 0)::bigint
         FROM calls c WHERE c.order_id = o.id), reference, parked
    FROM orders o WHERE __MEANT__ AND id > $7 ORDER BY id LIMIT $8";
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
const TALLIES: &str =
    "SELECT what, sum(change)::bigint FROM tallies GROUP BY 1 HAVING sum(change) > 0";
const REST: &str = "
    SELECT (SELECT count(*) FROM calls WHERE state = 'open'),
        (SELECT coalesce(extract(epoch FROM now() - min(ready_at)), 0)::float8 FROM orders
         WHERE state = 'queued' AND parked IS NULL AND record > 0),
        (SELECT coalesce(extract(epoch FROM now() - min(began_at)), 0)::float8 FROM leases)";

impl Store {
    /// The orders that the filter means.
    pub async fn orders(&self, filter: &Filter) -> Result<Vec<OrderRow>, StoreError> {
        self.page(filter, OrderId(0), i64::MAX).await
    }

    /// The first `limit` of them that come after an order.
    pub async fn page(
        &self,
        filter: &Filter,
        OrderId(after): OrderId,
        limit: i64,
    ) -> Result<Vec<OrderRow>, StoreError> {
        let values = filter.values();
        let [tenant, batch, state, orders, repo, model] = values.get();
        let values = [tenant, batch, state, orders, repo, model, &after, &limit];
        let client = self.client().await?;
        client
            .query(&ORDERS.replace("__MEANT__", MEANT), &values)
            .await?
            .iter()
            .map(order_row)
            .collect()
    }

    /// The events of an order.
    pub async fn events(&self, OrderId(id): OrderId) -> Result<Vec<Event>, StoreError> {
        let rows = self.client().await?.query(EVENTS, &[&id]).await?;
        let event = |row: Row| Event {
            at: row.get(0),
            epoch: row.get(1),
            event: row.get(2),
            detail: row.get(3),
        };
        Ok(rows.into_iter().map(event).collect())
    }

    /// Paid calls by tenant, batch and model.
    pub async fn costs(&self, filter: &Filter) -> Result<Vec<Cost>, StoreError> {
        let rows = self
            .client()
            .await?
            .query(COSTS, &[&filter.tenant, &filter.batch])
            .await?;
        Ok(rows.iter().map(cost).collect())
    }

    /// The fleet at this moment. Counts nothing: it costs the same after years.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let client = self.client().await?;
        let mut orders = BTreeMap::new();
        let mut lost = 0;
        for row in client.query(TALLIES, &[]).await? {
            match row.get(0) {
                "lost" => lost = row.get(1),
                state => drop(orders.insert(State::read(state)?, row.get(1))),
            }
        }
        let rest = client.query_one(REST, &[]).await?;
        drop(client);
        Ok(Snapshot {
            orders,
            lost,
            open_calls: rest.get(0),
            oldest_queued_s: rest.get(1),
            oldest_lease_s: rest.get(2),
            budgets: self.budgets().await?,
            pauses: self.pauses().await?,
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
        reference: commit.is_some().then(|| row.get(16)).flatten(),
        commit,
        land: row.get(8),
        after: row.get::<_, Option<i64>>(9).map(OrderId),
        epoch,
        lost: row.get(11),
        worker: row.get(12),
        elapsed_ms: row.get(13),
        bundle: row.get(14),
        cost_usd: Nanodollars(row.get(15)).as_usd(),
        parked: row.get(17),
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
