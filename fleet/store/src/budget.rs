//! Caps: how much may be spent, and by whom.

use std::fmt;

use serde::Serialize;
use tokio_postgres::Transaction;

use crate::{Nanodollars, Store, StoreError};

/// Whose money it is.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
const BUDGETS: &str = "SELECT scope, cap, held, spent FROM budgets ORDER BY scope";
const LOCK: &str =
    "SELECT scope, cap, held, spent FROM budgets WHERE scope = ANY($1) ORDER BY scope FOR UPDATE";
const MOVE: &str = "UPDATE budgets SET held = held + $2, spent = spent + $3 WHERE scope = ANY($1)";

impl Store {
    /// Sets what may be spent in a scope.
    pub async fn cap(&self, scope: &Scope, cap: Nanodollars) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        all.batch_execute(ALONE).await?;
        all.execute(CAP, &[&scope.to_string(), &cap.0]).await?;
        Ok(all.commit().await?)
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

/// A locked row.
pub(crate) struct Locked {
    pub(crate) scope: String,
    pub(crate) left: i64,
}

/// Locks those of `scopes` that have a cap, always in the same order, so that no two transactions wait for each other.
pub(crate) async fn lock(all: &Transaction<'_>, scopes: &[String]) -> Result<Vec<Locked>, StoreError> {
    let rows = all.query(LOCK, &[&scopes]).await?;
    let left = |row: &tokio_postgres::Row| row.get::<_, i64>(1) - row.get::<_, i64>(2) - row.get::<_, i64>(3);
    Ok(rows.iter().map(|row| Locked { scope: row.get(0), left: left(row) }).collect())
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
