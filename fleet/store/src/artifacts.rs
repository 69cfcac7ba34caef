//! Bundles, by their content.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::{OrderId, Store, StoreError, hex};

impl Store {
    /// Keeps these bytes and returns their SHA-256. The same bytes are kept once.
    pub async fn keep(&self, content: &[u8]) -> Result<String, StoreError> {
        const KEEP: &str = "
            INSERT INTO artifacts (sha256, content) VALUES ($1, $2)
            ON CONFLICT (sha256) DO UPDATE SET stored_at = now()";
        let sha256 = hex(&Sha256::digest(content));
        self.client()
            .await?
            .execute(KEEP, &[&sha256, &content])
            .await?;
        Ok(sha256)
    }

    /// The bundle of an order; `None` if it has none, or none any more.
    pub async fn bundle(&self, OrderId(id): OrderId) -> Result<Option<Vec<u8>>, StoreError> {
        const BUNDLE: &str = "SELECT a.content FROM artifacts a JOIN orders o ON o.bundle = a.sha256 WHERE o.id = $1";
        Ok(self
            .client()
            .await?
            .query_opt(BUNDLE, &[&id])
            .await?
            .map(|row| row.get(0)))
    }

    /// The hubs of orders that ended more than `days` ago, each with these orders, and the lease whose result is still theirs:
    /// none if it has landed, or if there is none.
    pub async fn ended(
        &self,
        days: i32,
    ) -> Result<BTreeMap<String, BTreeMap<i64, Option<i32>>>, StoreError> {
        const ENDED: &str = "
            SELECT repo, id, CASE WHEN state = 'passed' THEN epoch END FROM orders
            WHERE ended_at < now() - make_interval(days => $1) AND state NOT IN ('waiting', 'queued', 'leased')";
        let mut hubs: BTreeMap<String, BTreeMap<i64, Option<i32>>> = BTreeMap::new();
        for row in self.client().await?.query(ENDED, &[&days]).await? {
            hubs.entry(row.get(0))
                .or_default()
                .insert(row.get(1), row.get(2));
        }
        Ok(hubs)
    }

    /// Removes what no order needs that is not over or that ended within `days`: bundles, kept answers and events. Orders,
    /// costs and verdicts stay. Returns the bytes of content that were freed.
    pub async fn collect(&self, days: i32) -> Result<i64, StoreError> {
        const OLD: &str = "
            CREATE TEMPORARY TABLE old ON COMMIT DROP AS
            SELECT id, bundle FROM orders WHERE ended_at < now() - make_interval(days => $1)
              AND state NOT IN ('waiting', 'queued', 'leased') AND NOT (state = 'passed' AND land IS NOT NULL)";
        const ANSWERS: &str = "
            WITH gone AS (
                SELECT c.id, length(answer)::bigint AS bytes FROM calls c JOIN old ON old.id = c.order_id
                WHERE answer IS NOT NULL
            ), emptied AS (UPDATE calls SET answer = NULL, state = 'wasted' FROM gone WHERE calls.id = gone.id)
            SELECT coalesce(sum(bytes), 0)::bigint FROM gone";
        // Months that no order needs which is not over, or ended within this time.
        const MONTHS: &str = "
            SELECT format('DROP TABLE %I', c.relname) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
            WHERE inhparent = 'events'::regclass AND c.relname ~ '^events_[0-9]{4}_[0-9]{2}$'
              AND to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' < least(now() - make_interval(days => $1), (
                SELECT min(submitted_at) FROM orders
                WHERE ended_at IS NULL OR ended_at > now() - make_interval(days => $1)))";
        const EVENTS: &str = "DELETE FROM events USING old WHERE order_id = old.id";
        const BUNDLES: &str = "UPDATE orders SET bundle = NULL FROM old WHERE orders.id = old.id AND orders.bundle IS NOT NULL";
        // One that was stored a moment ago belongs to an order that is about to name it.
        const ARTIFACTS: &str = "
            WITH gone AS (
                DELETE FROM artifacts a WHERE stored_at < now() - interval '1 day'
                  AND NOT EXISTS (SELECT 1 FROM orders WHERE bundle = a.sha256)
                RETURNING length(content)::bigint AS bytes
            ) SELECT coalesce(sum(bytes), 0)::bigint FROM gone";
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        // A statement that creates a table takes no parameters.
        all.batch_execute(&OLD.replace("$1", &days.to_string()))
            .await?;
        let answers: i64 = all.query_one(ANSWERS, &[]).await?.get(0);
        for month in all.query(MONTHS, &[&days]).await? {
            all.batch_execute(month.get(0)).await?;
        }
        all.execute(EVENTS, &[]).await?;
        all.execute(BUNDLES, &[]).await?;
        let artifacts: i64 = all.query_one(ARTIFACTS, &[]).await?.get(0);
        all.commit().await?;
        Ok(answers + artifacts)
    }
}
