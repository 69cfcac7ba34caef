//! What is due without anybody asking: lapsed leases, ended waits, pauses, turns of idle tenants, sums.

use crate::{Store, StoreError, Terms, queue};

/// Any number; one gateway sweeps at a time.
const ALONE: &str = "SELECT pg_try_advisory_xact_lock(7310441)";
// An update lets the trigger `line_up` decide anew.
const WAITS: &str = "
    UPDATE orders SET ready_at = ready_at WHERE id IN (
        SELECT id FROM orders WHERE state = 'queued' AND parked IS NOT NULL AND ready_at <= now()
        ORDER BY ready_at LIMIT 5000 FOR UPDATE SKIP LOCKED)";
const RESUME: &str = "DELETE FROM pauses WHERE until <= now()";
const NEW_PAUSES: &str = "SELECT kind, name FROM pauses WHERE NOT is_applied";
const PARK: &str = "
    UPDATE orders SET ready_at = ready_at WHERE id IN (
        SELECT id FROM orders
        WHERE state = 'queued' AND parked IS NULL AND $2 = CASE $1 WHEN 'tenant' THEN tenant WHEN 'repo' THEN repo ELSE model END
        LIMIT 5000 FOR UPDATE SKIP LOCKED)";
const PARKED: &str = "UPDATE pauses SET is_applied = true WHERE kind = $1 AND name = $2";
// Idle tenants gather in front, since only a lease moves a tenant to the back. IDLE runs after the rows are locked, so it sees every
// order that was queued before; MISSING repairs the turn of a tenant that queued one at that moment.
const FRONT: &str = "SELECT tenant FROM in_line ORDER BY turn LIMIT 2000 FOR UPDATE SKIP LOCKED";
const IDLE: &str = "
    DELETE FROM in_line WHERE tenant = ANY($1)
      AND NOT EXISTS (SELECT 1 FROM orders WHERE tenant = in_line.tenant AND state = 'queued' AND parked IS NULL)";
// One probe of the queue's index for each tenant that has orders in it.
const MISSING: &str = "
    WITH RECURSIVE busy AS (
        (SELECT tenant FROM orders WHERE state = 'queued' AND parked IS NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT o.tenant FROM orders o WHERE o.state = 'queued' AND o.parked IS NULL AND o.tenant > busy.tenant
            ORDER BY o.tenant LIMIT 1) FROM busy WHERE busy.tenant IS NOT NULL
    )
    INSERT INTO in_line (tenant) SELECT tenant FROM busy WHERE tenant IS NOT NULL ON CONFLICT DO NOTHING";
const SUM: &str = "
    WITH gone AS (DELETE FROM tallies RETURNING what, change)
    INSERT INTO tallies SELECT what, sum(change) FROM gone GROUP BY what";
const GONE: &str = "DELETE FROM workers WHERE seen_at < now() - interval '30 days'";
const NEXT_MONTH: &str = "SELECT month_of_events(now() + interval '1 month')";

impl Store {
    /// Does what is due. Gateways call it all the time; those that come while another one does it have nothing to do.
    pub async fn sweep(&self, terms: &Terms) -> Result<(), StoreError> {
        let lapsed = self.lapse(terms).await?;
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        if !all.query_one(ALONE, &[]).await?.get::<_, bool>(0) {
            return Ok(());
        }
        all.execute(RESUME, &[]).await?;
        let due = all.execute(WAITS, &[]).await?;
        for pause in all.query(NEW_PAUSES, &[]).await? {
            let (kind, name): (&str, &str) = (pause.get(0), pause.get(1));
            if all.execute(PARK, &[&kind, &name]).await? == 0 {
                all.execute(PARKED, &[&kind, &name]).await?;
            }
        }
        all.batch_execute(&[SUM, GONE, NEXT_MONTH].join(";"))
            .await?;
        let front: Vec<String> = all
            .query(FRONT, &[])
            .await?
            .iter()
            .map(|row| row.get(0))
            .collect();
        all.execute(IDLE, &[&front]).await?;
        all.execute(MISSING, &[]).await?;
        if lapsed + due > 0 {
            all.execute(queue::TELL, &[]).await?;
        }
        Ok(all.commit().await?)
    }
}
