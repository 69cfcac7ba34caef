//! Calls of models: reserved before they are made, kept when they are answered, counted in any case.

use std::time::Duration;

use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::{GatewayId, Nanodollars, QUEUED, Scope, Store, StoreError, budget, seconds};

/// A call that money is reserved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId(i64);

/// A call that a program wants to make.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    /// Of its lease.
    pub token: Uuid,
    /// Of path and body, in hex.
    pub request_sha256: &'a str,
    /// The model.
    pub model: &'a str,
    /// The most that the call can cost; `None` if nobody knows.
    pub most: Option<Nanodollars>,
    /// The shortest time between two calls of the model, if there is one.
    pub interval: Option<Duration>,
    /// How long a gateway may be silent before its calls are nobody's.
    pub patience: Duration,
}

/// A kept answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Of the answer.
    pub content_type: String,
    /// As the service sent it.
    pub body: Vec<u8>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// Make it, then [settle](Store::settle) it.
    Open(CallId),
    /// It was made before.
    Kept(Kept),
    /// It is being made at this moment, for this lease or an older one of the same order.
    InFlight,
    /// The model is not free for this long.
    Wait(Duration),
    /// The cap of this scope could be passed.
    Refused {
        /// Which one it is.
        scope: String,
        /// The rest of it.
        left: Nanodollars,
    },
    /// The lease does not hold.
    Gone,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered {
        /// To be kept; `None` if the answer is of no use and the program will ask again.
        kept: Option<Kept>,
        /// `None` if the service did not say; the reservation is counted then.
        cost: Option<Nanodollars>,
        /// Of the prompt.
        input_tokens: Option<i64>,
        /// Of the answer.
        output_tokens: Option<i64>,
    },
    /// The service turned it down, so it charges nothing.
    Failed,
    /// It broke off: the reservation counts as spent.
    Unknown,
}

// The row lock makes calls of one order wait for each other here, so that no two of them can be opened for one request.
const ORDER: &str = "
    SELECT id, epoch, tenant, batch FROM orders WHERE token = $1 AND state = 'leased' FOR NO KEY UPDATE";
// One statement, so that a call that is settled at this moment is seen either before that or after it. Whoever asks is alive, even if
// the database was away for so long that no gateway has beaten.
const EARLIER: &str = "
    SELECT c.state, c.content_type, c.answer FROM calls c JOIN gateways g ON g.id = c.gateway
    WHERE c.order_id = $1 AND c.request_sha256 = $2
      AND (c.state = 'answered' OR c.state = 'open'
        AND (g.id = $4 OR g.beat_at > now() - make_interval(secs => $3)))
    ORDER BY c.state = 'answered' DESC LIMIT 1";
const ANSWERED: &str = "
    SELECT 1 FROM calls WHERE order_id = $1 AND request_sha256 = $2 AND state = 'answered'";
const PACE: &str = "INSERT INTO pace (model) VALUES ($1) ON CONFLICT DO NOTHING";
// The lock is that of [`Store::cap`]: from here on no cap begins that this reservation does not see.
const FREE_IN: &str = "
    SELECT CASE WHEN free_at > now() THEN extract(epoch FROM free_at - now())::float8 ELSE 0 END,
        pg_advisory_xact_lock_shared(7310440)
    FROM pace WHERE model = $1 FOR UPDATE";
const TAKE_TURN: &str = "UPDATE pace SET free_at = now() + make_interval(secs => $2) WHERE model = $1";
const PAUSE: &str = "
    INSERT INTO pace (model, free_at) VALUES ($1, now() + make_interval(secs => $2))
    ON CONFLICT (model) DO UPDATE SET free_at = greatest(pace.free_at, excluded.free_at)";
const OVER: &str = "
    WITH over AS (UPDATE orders SET over_budget = true WHERE id = $1 RETURNING id, epoch)
    INSERT INTO events (order_id, epoch, event, detail) SELECT id, epoch, 'over-budget', $2 FROM over";
const OPEN: &str = "
    INSERT INTO calls (order_id, epoch, gateway, request_sha256, model, state, scopes, reserved)
    VALUES ($1, $2, $3, $4, $5, 'open', $6, $7) RETURNING id";
const MINE: &str = "
    SELECT order_id, request_sha256, state, scopes, reserved FROM calls
    WHERE id = $1 AND state IN ('open', 'unknown') FOR UPDATE";
const SETTLE: &str = "
    UPDATE calls SET state = $2, cost = $3, input_tokens = $4, output_tokens = $5, content_type = $6, answer = $7,
        ended_at = now() WHERE id = $1";
const ORPHANS: &str = "
    SELECT c.id, c.scopes, c.reserved FROM calls c JOIN gateways g ON g.id = c.gateway
    WHERE c.state = 'open' AND g.beat_at < now() - make_interval(secs => $1)
    ORDER BY c.id FOR UPDATE OF c SKIP LOCKED";
const FORGET: &str = "UPDATE calls SET state = 'unknown', ended_at = now() WHERE id = $1";
const HELLO: &str = "INSERT INTO gateways DEFAULT VALUES RETURNING id";
const ALIVE: &str = "UPDATE gateways SET beat_at = now() WHERE id = $1";
const TELL: &str = "SELECT pg_notify($1, '')";

impl Store {
    /// A gateway begins. Its calls are its own as long as it beats.
    pub async fn gateway(&self) -> Result<GatewayId, StoreError> {
        Ok(GatewayId(self.client().await?.query_one(HELLO, &[]).await?.get(0)))
    }

    /// A gateway is alive; calls of those that were silent for longer than `patience` are nobody's, and count as spent.
    /// Returns how many there were.
    pub async fn gateway_beat(
        &self,
        GatewayId(id): GatewayId,
        patience: Duration,
    ) -> Result<usize, StoreError> {
        let mut client = self.client().await?;
        client.execute(ALIVE, &[&id]).await?;
        let all = client.transaction().await?;
        let orphans = all.query(ORPHANS, &[&seconds(patience)]).await?;
        let mut scopes: Vec<String> = orphans.iter().flat_map(|row| row.get::<_, Vec<String>>(1)).collect();
        scopes.sort_unstable();
        scopes.dedup();
        budget::lock(&all, &scopes).await?;
        for row in &orphans {
            let reserved: i64 = row.get(2);
            all.execute(FORGET, &[&row.get::<_, i64>(0)]).await?;
            budget::add(&all, &row.get::<_, Vec<String>>(1), -reserved, reserved).await?;
        }
        all.commit().await?;
        Ok(orphans.len())
    }

    /// Asks whether a call may be made, and reserves the most that it can cost.
    pub async fn reserve(
        &self,
        GatewayId(gateway): GatewayId,
        need: &Need<'_>,
    ) -> Result<Reserved, StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let Some(order) = all.query_opt(ORDER, &[&need.token]).await? else { return Ok(Reserved::Gone) };
        let (id, epoch): (i64, i32) = (order.get(0), order.get(1));
        if let Some(answer) = earlier(&all, id, gateway, need).await? {
            return Ok(answer);
        }
        let wait = free_in(&all, need).await?;
        if !wait.is_zero() {
            return Ok(Reserved::Wait(wait));
        }
        let locked = budget::lock(&all, &scopes(&order)).await?;
        let too_small = |left: i64| need.most.is_none_or(|Nanodollars(most)| most > left);
        if let Some(short) = locked.iter().find(|budget| too_small(budget.left)) {
            all.execute(OVER, &[&id, &short.scope]).await?;
            let refused = Reserved::Refused { scope: short.scope.clone(), left: Nanodollars(short.left) };
            all.commit().await?;
            return Ok(refused);
        }
        let scopes: Vec<String> = locked.into_iter().map(|budget| budget.scope).collect();
        let most = need.most.unwrap_or_default().0;
        budget::add(&all, &scopes, most, 0).await?;
        let Need { request_sha256, model, .. } = need;
        let call =
            all.query_one(OPEN, &[&id, &epoch, &gateway, request_sha256, model, &scopes, &most]).await?;
        let call = CallId(call.get(0));
        all.commit().await?;
        Ok(Reserved::Open(call))
    }

    /// Records how a call ended: answer and cost in one transaction. The lease need not hold any more, and the reservation may
    /// have been given up: what was paid is kept for the next lease. Repeating it changes nothing.
    pub async fn settle(&self, CallId(id): CallId, outcome: &Outcome) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        let Some(call) = all.query_opt(MINE, &[&id]).await? else { return Ok(()) };
        let was_open = call.get::<_, &str>(2) == "open";
        let (scopes, reserved): (Vec<String>, i64) = (call.get(3), call.get(4));
        let ended = Ended::of(outcome, &all, &call).await?;
        let counted = if ended.state == "failed" { 0 } else { ended.cost.unwrap_or(reserved) };
        let content_type = ended.kept.map(|kept| &kept.content_type);
        let answer = ended.kept.map(|kept| &kept.body);
        all.execute(
            SETTLE,
            &[&id, &ended.state, &ended.cost, &ended.input, &ended.output, &content_type, &answer],
        )
        .await?;
        budget::lock(&all, &scopes).await?;
        let (held, spent) = if was_open { (-reserved, counted) } else { (0, counted - reserved) };
        budget::add(&all, &scopes, held, spent).await?;
        all.execute(TELL, &[&QUEUED]).await?;
        all.commit().await?;
        Ok(())
    }

    /// Nobody calls this model for a while: its service said so to one of us.
    pub async fn pause(&self, model: &str, pause: Duration) -> Result<(), StoreError> {
        self.client().await?.execute(PAUSE, &[&model, &seconds(pause)]).await?;
        Ok(())
    }
}

/// An earlier or concurrent call for the same request.
async fn earlier(
    all: &Transaction<'_>,
    order: i64,
    gateway: i64,
    need: &Need<'_>,
) -> Result<Option<Reserved>, StoreError> {
    let patience = seconds(need.patience);
    let row = all.query_opt(EARLIER, &[&order, &need.request_sha256, &patience, &gateway]).await?;
    Ok(row.map(|row| match row.get(0) {
        "answered" => Reserved::Kept(Kept { content_type: row.get(1), body: row.get(2) }),
        _ => Reserved::InFlight,
    }))
}

/// How long the model is not free; if it is, and calls have an interval, this call takes its turn.
async fn free_in(all: &Transaction<'_>, need: &Need<'_>) -> Result<Duration, StoreError> {
    all.execute(PACE, &[&need.model]).await?;
    let wait: f64 = all.query_one(FREE_IN, &[&need.model]).await?.get(0);
    if wait > 0.0 {
        return Ok(Duration::from_secs_f64(wait));
    }
    if let Some(interval) = need.interval {
        all.execute(TAKE_TURN, &[&need.model, &seconds(interval)]).await?;
    }
    Ok(Duration::ZERO)
}

/// Whose money a call of this order is.
fn scopes(order: &Row) -> Vec<String> {
    let (tenant, batch): (String, Option<String>) = (order.get(2), order.get(3));
    let batch = batch.map(|batch| Scope::Batch { tenant: tenant.clone(), batch });
    [Some(Scope::Fleet), Some(Scope::Tenant(tenant)), batch]
        .into_iter()
        .flatten()
        .map(|s| s.to_string())
        .collect()
}

/// A settled call as a row.
struct Ended<'o> {
    state: &'static str,
    cost: Option<i64>,
    input: Option<i64>,
    output: Option<i64>,
    kept: Option<&'o Kept>,
}

impl<'o> Ended<'o> {
    async fn of(outcome: &'o Outcome, all: &Transaction<'_>, call: &Row) -> Result<Self, StoreError> {
        let nothing = Self { state: "failed", cost: None, input: None, output: None, kept: None };
        let Outcome::Answered { kept, cost, input_tokens, output_tokens } = outcome else {
            let state = if *outcome == Outcome::Unknown { "unknown" } else { "failed" };
            return Ok(Self { state, ..nothing });
        };
        let (order, request): (i64, &str) = (call.get(0), call.get(1));
        // Serializes two answers of one request: the second one was paid for, too, and is listed.
        all.query_one("SELECT 1 FROM orders WHERE id = $1 FOR NO KEY UPDATE", &[&order]).await?;
        let is_first = all.query_opt(ANSWERED, &[&order, &request]).await?.is_none();
        let (state, kept) = match kept {
            None => ("wasted", None),
            Some(_) if !is_first => ("again", None),
            Some(kept) => ("answered", Some(kept)),
        };
        let cost = cost.map(|Nanodollars(cost)| cost);
        Ok(Self { state, cost, input: *input_tokens, output: *output_tokens, kept })
    }
}
