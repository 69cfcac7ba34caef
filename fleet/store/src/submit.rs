//! Orders come in.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Statement;

use crate::{OrderId, QUEUED, State, Store, StoreError};

/// An order as it is submitted.
#[derive(Debug, Clone)]
pub struct NewOrder {
    /// Whose it is.
    pub tenant: String,
    /// The batch that it belongs to.
    pub batch: Option<String>,
    /// The hub.
    pub repo: String,
    /// A commit, in full.
    pub base: String,
    /// The order's JSON, unchanged.
    pub content: String,
    /// As for `--llm-model`.
    pub model: String,
    /// Higher ones come first among a tenant's orders.
    pub priority: i32,
    /// It begins on what this order leaves, once that has passed (or has landed, if it is to be landed).
    pub after: Option<OrderId>,
    /// The branch that its result goes to.
    pub land: Option<String>,
    /// The record that its worker has to know.
    pub record: i32,
    /// The span in which it is submitted, as W3C Trace Context has it.
    pub traceparent: Option<String>,
}

/// A submitted order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// Its number.
    pub order: OrderId,
    /// Whether this call brought it: the same tenant, content and base are the same order.
    pub fresh: bool,
}

const INSERT: &str = "
    WITH fresh AS (
        INSERT INTO orders
            (tenant, batch, repo, base, onto, content, content_sha256, model, priority, after, land, record, state,
            traceparent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        ON CONFLICT (tenant, content_sha256, base) DO NOTHING RETURNING id
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, 0, 'submitted' FROM fresh RETURNING order_id";
const TENANT: &str = "INSERT INTO tenants (name) VALUES ($1) ON CONFLICT DO NOTHING";
const SAME: &str = "SELECT id FROM orders WHERE tenant = $1 AND content_sha256 = $2 AND base = $3";
// Locked, so that it cannot pass between this look and our commit and leave the new order waiting forever.
const BEFORE: &str = "SELECT state, land, commit FROM orders WHERE id = $1 FOR SHARE";

impl Store {
    /// Takes orders, all or none.
    pub async fn submit(&self, orders: &[NewOrder]) -> Result<Vec<Submitted>, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let tenants: BTreeSet<&String> = orders.iter().map(|order| &order.tenant).collect();
        for tenant in tenants {
            all.execute(TENANT, &[tenant]).await?;
        }
        let insert = all.prepare_cached(INSERT).await?;
        let mut submitted = Vec::with_capacity(orders.len());
        for order in orders {
            submitted.push(submit(&all, &insert, order).await?);
        }
        all.batch_execute(&format!("NOTIFY {QUEUED}")).await?;
        all.commit().await?;
        Ok(submitted)
    }
}

async fn submit(
    all: &Transaction<'_>,
    insert: &Statement,
    order: &NewOrder,
) -> Result<Submitted, StoreError> {
    let NewOrder { tenant, batch, repo, base, content, model, priority, after, land, record, traceparent } =
        order;
    let hash = crate::hex(&Sha256::digest(content.as_bytes()));
    let (state, onto) = match after {
        Some(before) => begin(all, *before, base).await?,
        None => (State::Queued, base.clone()),
    };
    let after = after.map(|OrderId(id)| id);
    let row = all
        .query_opt(
            insert,
            &[
                tenant,
                batch,
                repo,
                base,
                &onto,
                content,
                &hash,
                model,
                priority,
                &after,
                land,
                record,
                &state.word(),
                traceparent,
            ],
        )
        .await?;
    if let Some(row) = row {
        let id: i64 = row.get(0);
        return Ok(Submitted { order: OrderId(id), fresh: true });
    }
    let same = all.query_one(SAME, &[tenant, &hash, base]).await?;
    Ok(Submitted { order: OrderId(same.get(0)), fresh: false })
}

/// How an order begins that comes after another one.
async fn begin(all: &Transaction<'_>, before: OrderId, base: &str) -> Result<(State, String), StoreError> {
    let row = all.query_opt(BEFORE, &[&before.0]).await?.ok_or(StoreError::NoOrder(before.0))?;
    let (land, commit): (Option<String>, Option<String>) = (row.get(1), row.get(2));
    Ok(match (State::read(row.get(0))?, land, commit) {
        (State::Landed, _, Some(commit)) | (State::Passed, None, Some(commit)) => (State::Queued, commit),
        _ => (State::Waiting, base.to_owned()),
    })
}
