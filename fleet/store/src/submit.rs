//! Orders come in.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Statement;

use crate::queue::TELL;
use crate::{Nanodollars, OrderId, Scope, State, Store, StoreError, budget};

/// An order as it is submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// Its number.
    pub order: OrderId,
    /// Whether this call brought it: the same tenant, content, base, repository, model
    /// and branch are the same order.
    pub fresh: bool,
}

const INSERT: &str = "
    WITH fresh AS (
        INSERT INTO orders
            (tenant, batch, repo, base, onto, content_sha256, model, priority, after, land, record, state, traceparent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (tenant, content_sha256, base, repo, model, coalesce(land, '')) WHERE members IS NULL DO NOTHING
        RETURNING id
    )
    INSERT INTO events (order_id, epoch, event) SELECT id, 0, 'submitted' FROM fresh RETURNING order_id";
const TENANT: &str = "INSERT INTO tenants (name) VALUES ($1) ON CONFLICT DO NOTHING";
pub(crate) const CONTENT: &str = "INSERT INTO contents VALUES ($1, $2) ON CONFLICT DO NOTHING";
const SAME: &str = "
    SELECT id FROM orders WHERE tenant = $1 AND content_sha256 = $2 AND base = $3 AND repo = $4 AND model = $5
      AND coalesce(land, '') = coalesce($6, '') AND members IS NULL";
// Locked, so that it cannot pass between this look and our commit and leave the new order waiting forever.
const BEFORE: &str = "
    SELECT state, land, commit, tenant = $2 AND repo = $3 FROM orders WHERE id = $1 AND members IS NULL FOR SHARE";

impl Store {
    /// Takes orders, all or none. The cap is that of their batch, and holds before the first of them can begin.
    pub async fn submit(
        &self,
        orders: &[NewOrder],
        cap: Option<Nanodollars>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        // Always in the same order, so that no two submissions wait for each other.
        let tenants: BTreeSet<&String> = orders.iter().map(|order| &order.tenant).collect();
        for tenant in tenants {
            all.execute(TENANT, &[tenant]).await?;
        }
        let batches: BTreeSet<(&String, &String)> = orders
            .iter()
            .filter_map(|order| Some((&order.tenant, order.batch.as_ref()?)))
            .collect();
        for ((tenant, batch), cap) in batches.into_iter().zip(cap.into_iter().cycle()) {
            budget::set(
                &all,
                &Scope::Batch {
                    tenant: tenant.clone(),
                    batch: batch.clone(),
                },
                cap,
            )
            .await?;
        }
        let (insert, content) = (
            all.prepare_cached(INSERT).await?,
            all.prepare_cached(CONTENT).await?,
        );
        let mut submitted = Vec::with_capacity(orders.len());
        for order in orders {
            submitted.push(submit(&all, [&insert, &content], order).await?);
        }
        all.execute(TELL, &[]).await?;
        all.commit().await?;
        Ok(submitted)
    }
}

async fn submit(
    all: &Transaction<'_>,
    [insert, content]: [&Statement; 2],
    order: &NewOrder,
) -> Result<Submitted, StoreError> {
    let NewOrder {
        tenant,
        batch,
        repo,
        base,
        model,
        priority,
        after,
        land,
        record,
        traceparent,
        ..
    } = order;
    let hash = crate::hex(&Sha256::digest(order.content.as_bytes()));
    let (state, onto) = match after {
        Some(before) => begin(all, *before, order).await?,
        None => (State::Queued, base.clone()),
    };
    let after = after.map(|OrderId(id)| id);
    let state = state.word();
    all.execute(content, &[&hash, &order.content]).await?;
    let row = all
        .query_opt(
            insert,
            &[
                tenant,
                batch,
                repo,
                base,
                &onto,
                &hash,
                model,
                priority,
                &after,
                land,
                record,
                &state,
                traceparent,
            ],
        )
        .await?;
    if let Some(row) = row {
        let id: i64 = row.get(0);
        return Ok(Submitted {
            order: OrderId(id),
            fresh: true,
        });
    }
    let same = all
        .query_one(SAME, &[tenant, &hash, base, repo, model, land])
        .await?;
    Ok(Submitted {
        order: OrderId(same.get(0)),
        fresh: false,
    })
}

/// How an order begins that comes after another one.
async fn begin(
    all: &Transaction<'_>,
    before: OrderId,
    order: &NewOrder,
) -> Result<(State, String), StoreError> {
    let row = all
        .query_opt(BEFORE, &[&before.0, &order.tenant, &order.repo])
        .await?;
    let row = row.ok_or(StoreError::NoOrder(before.0))?;
    if !row.get::<_, bool>(3) {
        return Err(StoreError::Elsewhere(before.0));
    }
    let (land, commit): (Option<String>, Option<String>) = (row.get(1), row.get(2));
    Ok(match (State::read(row.get(0))?, land, commit) {
        (State::Landed, _, Some(commit)) | (State::Passed, None, Some(commit)) => {
            (State::Queued, commit)
        }
        _ => (State::Waiting, order.base.clone()),
    })
}
