//! Steering: what is not leased for now, and workers that are to take no more.

use code_commit_fleet_wire::Ask;
use serde::{Deserialize, Serialize};

use crate::{Fence, Store, StoreError, queue};

/// What a pause holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKind {
    /// A tenant's orders.
    Tenant,
    /// Those for a repository.
    Repo,
    /// Those for a model.
    Model,
}

/// Orders that nobody leases for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// What it holds back.
    pub kind: PauseKind,
    /// Which one.
    pub name: String,
    /// RFC 3339, by the database's clock; `None` if only a person ends it.
    pub until: Option<String>,
    /// For people.
    pub reason: String,
}

/// A worker that has asked for orders within a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Its name.
    pub worker: String,
    /// Of its program.
    pub version: String,
    /// How long ago it was heard of.
    pub silent_s: f64,
    /// How many orders it has.
    pub leases: i64,
    /// It gets no more.
    pub is_draining: bool,
}

const PAUSES: &str = "
    SELECT kind, name, CASE WHEN until < 'infinity' THEN to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END,
        reason FROM pauses WHERE until > now() ORDER BY kind, name";
const PAUSE: &str = "
    INSERT INTO pauses (kind, name, reason) VALUES ($1, $2, 'paused by a person')
    ON CONFLICT (kind, name) DO UPDATE SET until = excluded.until, reason = excluded.reason, is_applied = false";
const RESUME: &str = "DELETE FROM pauses WHERE kind = $1 AND name = $2";
// The trigger `line_up` decides what holds them otherwise.
const GO_ON: &str = "
    UPDATE orders SET ready_at = now() WHERE state = 'queued' AND parked = 'paused'
      AND $2 = CASE $1 WHEN 'tenant' THEN tenant WHEN 'repo' THEN repo ELSE model END";
const FREE: &str = "UPDATE pace SET free_at = '-infinity', failures = 0 WHERE $1 = 'model' AND ($2 = model OR $2 LIKE '%/' || model)";
const SEEN: &str = "
    INSERT INTO workers (name, version) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, seen_at = now() RETURNING is_draining";
const WORKERS: &str = "
    SELECT coalesce(w.name, l.worker), coalesce(version, ''), coalesce(extract(epoch FROM now() - seen_at), 0)::float8,
        coalesce(count, 0), coalesce(is_draining, false)
    FROM workers w FULL JOIN (SELECT worker, count(*) FROM leases GROUP BY 1) l ON l.worker = w.name
    WHERE seen_at > now() - interval '1 day' OR count > 0 ORDER BY 1";
const DRAIN: &str = "UPDATE workers SET is_draining = $2 WHERE name = $1";

impl PauseKind {
    /// As in the database and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Repo => "repo",
            Self::Model => "model",
        }
    }

    fn read(word: &str) -> Self {
        let all = [Self::Tenant, Self::Repo];
        all.into_iter()
            .find(|kind| kind.word() == word)
            .unwrap_or(Self::Model)
    }
}

impl Store {
    /// From now on nobody leases these orders; what is leased goes on.
    pub async fn hold_back(&self, kind: PauseKind, name: &str) -> Result<(), StoreError> {
        self.client()
            .await?
            .execute(PAUSE, &[&kind.word(), &name])
            .await?;
        Ok(())
    }

    /// They may be leased again, also if their service was out of order. `Gone` if nothing held them back.
    pub async fn resume(&self, kind: PauseKind, name: &str) -> Result<Fence, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let ended = all.execute(RESUME, &[&kind.word(), &name]).await?;
        all.execute(FREE, &[&kind.word(), &name]).await?;
        all.execute(GO_ON, &[&kind.word(), &name]).await?;
        all.execute(queue::TELL, &[]).await?;
        all.commit().await?;
        Ok(Fence::of(ended))
    }

    /// What is held back at this moment.
    pub async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        let rows = self.client().await?.query(PAUSES, &[]).await?;
        let pause = |row: tokio_postgres::Row| Pause {
            kind: PauseKind::read(row.get(0)),
            name: row.get(1),
            until: row.get(2),
            reason: row.get(3),
        };
        Ok(rows.into_iter().map(pause).collect())
    }

    /// A worker has asked; whether it is to get nothing.
    pub async fn seen(&self, ask: &Ask) -> Result<bool, StoreError> {
        let client = self.client().await?;
        let seen = client.prepare_cached(SEEN).await?;
        Ok(client
            .query_one(&seen, &[&ask.worker, &ask.version])
            .await?
            .get(0))
    }

    /// Workers that were heard of within a day, or that have orders.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        let rows = self.client().await?.query(WORKERS, &[]).await?;
        let worker = |row: tokio_postgres::Row| WorkerRow {
            worker: row.get(0),
            version: row.get(1),
            silent_s: row.get(2),
            leases: row.get(3),
            is_draining: row.get(4),
        };
        Ok(rows.into_iter().map(worker).collect())
    }

    /// From now on a worker gets no order, or gets them again. `Gone` if no such worker was ever heard of.
    pub async fn drain(&self, worker: &str, is_draining: bool) -> Result<Fence, StoreError> {
        Ok(Fence::of(
            self.client()
                .await?
                .execute(DRAIN, &[&worker, &is_draining])
                .await?,
        ))
    }
}
