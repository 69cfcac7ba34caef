//! Caps: how much may be spent, and by whom.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio_postgres::Transaction;

use crate::{Fence, Nanodollars, Store, StoreError};

/// Whose money it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Of all tenants.
    Fleet,
    /// Of one.
    Tenant(String),
    /// Of a batch.
    Batch {
        /// Whose it is.
        tenant: String,
        /// Its name.
        batch: String,
    },
}

impl Scope {
    /// Tenant and batch, where it has them.
    fn parts(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Fleet => (None, None),
            Self::Tenant(tenant) => (Some(tenant), None),
            Self::Batch { tenant, batch } => (Some(tenant), Some(batch)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fleet => f.write_str("fleet"),
            Self::Tenant(tenant) => write!(f, "tenant:{tenant}"),
            Self::Batch { tenant, batch } => write!(f, "batch:{tenant}/{batch}"),
        }
    }
}

/// A cap and what was used of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// As [`Scope`] is displayed.
    pub scope: String,
    /// In US dollars, like the others.
    pub cap_usd: f64,
    /// Reserved by calls that are under way.
    pub held_usd: f64,
    /// Paid, or not known and therefore counted in full.
    pub spent_usd: f64,
}

// Money spent before there was a cap counts, too. Calls that are under way count in full, because they hold nothing of this row.
const CAP: &str = "
    INSERT INTO budgets (scope, cap, spent)
    SELECT $1, $2, coalesce(sum(coalesce(c.cost, c.reserved)), 0)::bigint
    FROM calls c JOIN orders o ON o.id = c.order_id
    WHERE c.state <> 'failed'
      AND $1 IN ('fleet', 'tenant:' || o.tenant, 'batch:' || o.tenant || '/' || o.batch)
    ON CONFLICT (scope) DO UPDATE SET cap = excluded.cap";
// A call that is being reserved while its first cap is set would be counted by neither: it finds no row to hold anything of, and is
// not yet there to be summed up. So reservations share a lock that setting a cap has alone.
const ALONE: &str = "SELECT pg_advisory_xact_lock(7310440)";
const HAS_ORDERS: &str = "
    SELECT 1 FROM orders WHERE tenant = $1 AND ($2::text IS NULL OR batch = $2) LIMIT 1";
const GO_ON: &str = "
    UPDATE orders SET refused = NULL, ready_at = CASE parked WHEN 'budget' THEN now() ELSE ready_at END
    WHERE refused IN ('over-budget', 'held') AND state IN ('queued', 'leased')
      AND ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR batch = $2)";
const BUDGETS: &str = "SELECT scope, cap, held, spent FROM budgets ORDER BY scope";
const LOCK: &str = "SELECT 1 FROM budgets WHERE scope = ANY($1) ORDER BY scope FOR UPDATE";
const MOVE: &str = "UPDATE budgets SET held = held + $2, spent = spent + $3 WHERE scope = ANY($1)";

impl Store {
    /// Sets what may be spent in a scope, and lets those go on that it had refused. `Gone` if no order belongs to it: a cap that
    /// was misspelt would hold nobody.
    pub async fn cap(&self, scope: &Scope, cap: Nanodollars) -> Result<Fence, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let (tenant, batch) = scope.parts();
        if *scope != Scope::Fleet
            && all
                .query_opt(HAS_ORDERS, &[&tenant, &batch])
                .await?
                .is_none()
        {
            return Ok(Fence::Gone);
        }
        set(&all, scope, cap).await?;
        all.execute(GO_ON, &[&tenant, &batch]).await?;
        all.commit().await?;
        Ok(Fence::Held)
    }

    /// All caps.
    pub async fn budgets(&self) -> Result<Vec<Budget>, StoreError> {
        let rows = self.client().await?.query(BUDGETS, &[]).await?;
        let usd = |amount: i64| Nanodollars(amount).as_usd();
        let budget = |row: tokio_postgres::Row| Budget {
            scope: row.get(0),
            cap_usd: usd(row.get(1)),
            held_usd: usd(row.get(2)),
            spent_usd: usd(row.get(3)),
        };
        Ok(rows.into_iter().map(budget).collect())
    }
}

/// Sets a cap in a transaction of which it is a part.
pub(crate) async fn set(
    all: &Transaction<'_>,
    scope: &Scope,
    cap: Nanodollars,
) -> Result<(), StoreError> {
    all.batch_execute(ALONE).await?;
    all.execute(CAP, &[&scope.to_string(), &cap.0]).await?;
    Ok(())
}

/// Locks those of `scopes` that have a cap, always in the same order, so that no two transactions wait for each other.
pub(crate) async fn lock(all: &Transaction<'_>, scopes: &[String]) -> Result<(), StoreError> {
    all.execute(LOCK, &[&scopes]).await?;
    Ok(())
}

/// Adds to what locked rows hold and have spent; either may be negative.
pub(crate) async fn add(
    all: &Transaction<'_>,
    scopes: &[String],
    held: i64,
    spent: i64,
) -> Result<(), StoreError> {
    all.execute(MOVE, &[&scopes, &held, &spent]).await?;
    Ok(())
}
