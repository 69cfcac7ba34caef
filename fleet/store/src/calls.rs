//! Calls of models: reserved before they are made, kept when they are answered, counted in any case.

use std::time::Duration;

use uuid::Uuid;

use crate::{GatewayId, Nanodollars, Store, StoreError, Terms, budget, seconds};

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
    /// How long its program may be kept waiting.
    pub longest_wait: Duration,
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
    /// Of the cap of this scope not enough is left while other calls hold money: ask again.
    Held {
        /// Which one it is.
        scope: String,
        /// The rest of it, with what is held.
        left: Nanodollars,
    },
    /// The cap of this scope would be passed.
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
    /// The service could not be reached or cannot answer anybody at this moment; it charges nothing.
    OutOfOrder,
    /// It broke off: the reservation counts as spent.
    Unknown,
}

const RESERVE: &str = "SELECT * FROM reserve($1, $2, $3, $4, $5, $6, $7, $8)";
const SETTLE: &str = "SELECT settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const PAUSE: &str = "
    INSERT INTO pace (model, free_at) VALUES ($1, now() + make_interval(secs => $2))
    ON CONFLICT (model) DO UPDATE SET free_at = greatest(pace.free_at, excluded.free_at)";
const ORPHANS: &str = "
    SELECT c.id, c.scopes, c.reserved FROM calls c JOIN gateways g ON g.id = c.gateway
    WHERE c.state = 'open' AND g.beat_at < now() - make_interval(secs => $1)
    ORDER BY c.id FOR UPDATE OF c SKIP LOCKED";
const FORGET: &str = "UPDATE calls SET state = 'unknown', ended_at = now() WHERE id = $1";
const HELLO: &str = "INSERT INTO gateways DEFAULT VALUES RETURNING id";
const ALIVE: &str = "UPDATE gateways SET beat_at = now() WHERE id = $1";

impl Store {
    /// A gateway begins. Its calls are its own as long as it beats.
    pub async fn gateway(&self) -> Result<GatewayId, StoreError> {
        Ok(GatewayId(
            self.client().await?.query_one(HELLO, &[]).await?.get(0),
        ))
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
        let mut scopes: Vec<String> = orphans
            .iter()
            .flat_map(|row| row.get::<_, Vec<String>>(1))
            .collect();
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

    /// Asks whether a call may be made, and reserves the most that it can cost. An order that has to wait for longer than
    /// `longest_wait` comes back later, and so do all others of its model.
    pub async fn reserve(
        &self,
        GatewayId(gateway): GatewayId,
        need: &Need<'_>,
    ) -> Result<Reserved, StoreError> {
        let Need {
            token,
            request_sha256,
            model,
            most,
            interval,
            patience,
            longest_wait,
        } = need;
        let most = most.map(|Nanodollars(most)| most);
        let (interval, patience) = (interval.map(seconds), seconds(*patience));
        let client = self.client().await?;
        let reserve = client.prepare_cached(RESERVE).await?;
        let longest_wait = seconds(*longest_wait);
        let row = client
            .query_one(
                &reserve,
                &[
                    token,
                    request_sha256,
                    model,
                    &most,
                    &interval,
                    &gateway,
                    &patience,
                    &longest_wait,
                ],
            )
            .await?;
        let refused = || (row.get("short"), Nanodollars(row.get("rest")));
        Ok(match row.get("word") {
            "open" => Reserved::Open(CallId(row.get("call"))),
            "kept" => Reserved::Kept(Kept {
                content_type: row.get("kept_type"),
                body: row.get("kept"),
            }),
            "in-flight" => Reserved::InFlight,
            "wait" => Reserved::Wait(
                Duration::try_from_secs_f64(row.get("wait")).unwrap_or(Duration::MAX),
            ),
            "held" => {
                let (scope, left) = refused();
                Reserved::Held { scope, left }
            }
            "over-budget" => {
                let (scope, left) = refused();
                Reserved::Refused { scope, left }
            }
            "gone" => Reserved::Gone,
            unknown => return Err(StoreError::Word(unknown.to_owned())),
        })
    }

    /// Records how a call ended: answer and cost in one transaction. The lease need not hold any more, and the reservation may
    /// have been given up: what was paid is kept for the next lease. Repeating it changes nothing.
    pub async fn settle(
        &self,
        CallId(id): CallId,
        outcome: &Outcome,
        terms: &Terms,
    ) -> Result<(), StoreError> {
        let ended = Ended::of(outcome);
        let content_type = ended.kept.map(|kept| &kept.content_type);
        let answer = ended.kept.map(|kept| &kept.body);
        let client = self.client().await?;
        let settle = client.prepare_cached(SETTLE).await?;
        let (faults, rest) = (terms.max_faults, seconds(terms.rest));
        let Ended {
            state,
            cost,
            input,
            output,
            is_fault,
            ..
        } = ended;
        client
            .query_one(
                &settle,
                &[
                    &id,
                    &state,
                    &cost,
                    &input,
                    &output,
                    &content_type,
                    &answer,
                    &is_fault,
                    &faults,
                    &rest,
                ],
            )
            .await?;
        Ok(())
    }

    /// Nobody calls this model for a while: its service said so to one of us.
    pub async fn pause(&self, model: &str, pause: Duration) -> Result<(), StoreError> {
        self.client()
            .await?
            .execute(PAUSE, &[&model, &seconds(pause)])
            .await?;
        Ok(())
    }
}

/// A settled call as a row.
struct Ended<'o> {
    state: &'static str,
    cost: Option<i64>,
    input: Option<i64>,
    output: Option<i64>,
    kept: Option<&'o Kept>,
    is_fault: bool,
}

impl<'o> Ended<'o> {
    fn of(outcome: &'o Outcome) -> Self {
        let without = |state, is_fault| Self {
            state,
            cost: None,
            input: None,
            output: None,
            kept: None,
            is_fault,
        };
        match outcome {
            Outcome::Failed => without("failed", false),
            Outcome::OutOfOrder => without("failed", true),
            Outcome::Unknown => without("unknown", true),
            Outcome::Answered {
                kept,
                cost,
                input_tokens,
                output_tokens,
            } => Self {
                state: if kept.is_some() { "answered" } else { "wasted" },
                cost: cost.map(|Nanodollars(cost)| cost),
                input: *input_tokens,
                output: *output_tokens,
                kept: kept.as_ref(),
                is_fault: false,
            },
        }
    }
}
