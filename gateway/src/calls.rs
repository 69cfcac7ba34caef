//! Requests of programs for models: the vendors' own paths, below `/m`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use code_commit_llm::http::Stopwatch;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, mpsc, oneshot};

use crate::question::Question;
use crate::relay::{Call, Ended, Kept, Outcome, Piece, forward, response};
use crate::serve::{Gateway, Unavailable, refuse};
use crate::store::{Hash, Left, Reserved, hash};
use crate::vendor::Target;

/// A prompt may hold a whole code base.
const LARGEST_BODY: usize = 64 << 20;
/// A program is kept waiting for its turn up to this long; beyond that it is told to come back.
const PATIENCE: Duration = Duration::from_secs(20);
/// News of money may be late.
const GLANCE: Duration = Duration::from_secs(1);

/// A request of an order, and that nobody else asks the same for it at this moment.
struct Asked {
    token: Hash,
    order: i64,
    call: Arc<Call>,
    alone: OwnedMutexGuard<()>,
    slot: OwnedSemaphorePermit,
}

/// The secret in `authorization`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<Hash> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(hash)
}

/// Answers a request for a model: from what is kept, or by a call that is reserved first.
pub(crate) async fn model(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
) -> Result<Response, Unavailable> {
    // Comes before the body is read: without a token of an attempt, a request costs no memory.
    let Some(token) = bearer(request.headers()) else {
        return Ok(gateway.void());
    };
    let order = match gateway.tokens.order(&token) {
        None => gateway.store.holder(&token).await?,
        known => known,
    };
    let Some(order) = order else {
        return Ok(gateway.void());
    };
    gateway.tokens.remember(token, order);
    let (head, body) = request.into_parts();
    // As it came: a path that is decoded here is another one for the vendor.
    let target = head
        .uri
        .path_and_query()
        .and_then(|all| all.as_str().strip_prefix("/m"));
    let target = target.unwrap_or_default().to_owned();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return Ok(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is too large",
        ));
    };
    match gateway.read(target, body.into()) {
        Ok(call) => gateway.answer(token, order, Arc::new(call)).await,
        Err(error) => Ok(refuse(StatusCode::BAD_REQUEST, &format!("{error:#}"))),
    }
}

impl Gateway {
    fn read(&self, target: String, body: Vec<u8>) -> anyhow::Result<Call> {
        use anyhow::Context as _;
        let path = Target::read(&target).context("the gateway does not pass this path on")?;
        let name = path.format.provider();
        let vendor = self
            .vendors
            .iter()
            .find(|vendor| vendor.provider.name == name);
        let vendor = vendor
            .with_context(|| format!("the gateway has no key for {name}"))?
            .clone();
        let question = Question::read(&target, &path, &vendor, &self.prices, &body)?;
        Ok(Call {
            vendor,
            question,
            target,
            body,
        })
    }

    /// Answers from what is kept; else waits for the turn of a call, and makes it.
    async fn answer(
        self: Arc<Self>,
        token: Hash,
        order: i64,
        call: Arc<Call>,
    ) -> Result<Response, Unavailable> {
        let clock = Stopwatch::start();
        let model = call.question.model.name();
        let mut has_turn = call.question.is_free;
        loop {
            let alone = self.flights.alone(order, call.question.sha256).await;
            if call.question.is_free && self.store.holder(&token).await?.is_none() {
                return Ok(self.void());
            }
            if !has_turn && self.pace.is_set(model) {
                // A kept answer needs no turn.
                if let Some(answer) = self.store.kept(&token, &call.question.sha256).await? {
                    return Ok(self.kept(answer));
                }
                match self.pace.turn(model, PATIENCE) {
                    Ok(wait) => tokio::time::sleep(wait).await,
                    Err(wait) => {
                        self.counts.add("wait");
                        let why = format!("it is not yet the turn of a call of {model}");
                        return Ok(later(wait, &why));
                    }
                }
                has_turn = true;
            }
            // Taken before the money is, so that those who wait here hold none.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                return Ok(broken());
            };
            let call = Arc::clone(&call);
            let asked = Asked {
                token,
                order,
                call,
                alone,
                slot,
            };
            if asked.call.question.is_free {
                return Ok(Arc::clone(&self).make(None, asked).await);
            }
            let news = self.news.notified();
            // Not a part of this request, which ends where the program does: a reservation that nobody uses would be paid for.
            let reserved = tokio::spawn(Arc::clone(&self).reserve(asked));
            let Ok(reserved) = reserved.await else {
                return Ok(broken());
            };
            match reserved? {
                Ok(response) => return Ok(response),
                // The calls that hold the money will end.
                Err(_) if clock.elapsed() < PATIENCE => {
                    tokio::select! { () = news => {}, () = tokio::time::sleep(GLANCE) => {} }
                }
                Err(Left { scope, rest }) => {
                    self.counts.add("held");
                    return Ok(later(
                        GLANCE,
                        &format!("other calls hold what is left of the cap of {scope}: ${rest}"),
                    ));
                }
            }
        }
    }

    /// Makes the call if it may be made, or says which scope's money others hold.
    async fn reserve(self: Arc<Self>, asked: Asked) -> anyhow::Result<Result<Response, Left>> {
        let call = Arc::clone(&asked.call);
        let Question {
            model,
            sha256,
            most,
            ..
        } = &call.question;
        let asks = self
            .store
            .reserve(&asked.token, sha256, model.name(), *most);
        let reserved = match asks.await {
            Ok(reserved) => reserved,
            Err(error) => {
                // It may be there, and only its answer was lost. Whoever asks the same waits until it is known.
                tokio::spawn(self.release(asked));
                return Err(error);
            }
        };
        Ok(match reserved {
            Reserved::Open(id) => Ok(self.make(Some(id), asked).await),
            Reserved::Kept(answer) => Ok(self.kept(answer)),
            Reserved::Held(left) => Err(left),
            Reserved::OverCap(Left { scope, rest }) => {
                self.counts.add("over-cap");
                let message = match most {
                    Some(most) => {
                        format!("{scope} has ${rest} left, and the call may cost ${most}")
                    }
                    None => format!(
                        "{scope} has a cap, and the price of {} is unknown",
                        model.name()
                    ),
                };
                Ok(refuse(StatusCode::PAYMENT_REQUIRED, &message))
            }
            Reserved::Void => Ok(self.void()),
        })
    }

    /// Makes a call and passes its answer on. The call goes on if the program dies: what is paid is kept.
    async fn make(self: Arc<Self>, id: Option<i64>, asked: Asked) -> Response {
        let (begun, head) = oneshot::channel();
        let (relay, pieces) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let Asked {
                order,
                call,
                alone,
                slot,
                ..
            } = asked;
            let clock = Stopwatch::start();
            let (gateway, made, passed_on) = (Arc::clone(&self), Arc::clone(&call), relay.clone());
            let forwarded =
                move || forward(&gateway.agent, &gateway.prices, &made, passed_on, begun);
            // A call that panicked was made, and nobody knows what it cost.
            let ended = tokio::task::spawn_blocking(forwarded)
                .await
                .unwrap_or(Ended::cut(Outcome::Unknown));
            self.note(id, order, &call, &ended, &clock);
            if let Some(id) = id {
                insist(|| self.store.settle(id, &ended.outcome)).await;
            }
            // The program gets the end of the body only now: a complete answer is a stored answer.
            let _ = relay.send(Piece::Bytes(ended.rest.into()));
            if ended.is_cut {
                let _ = relay.send(Piece::Cut);
            }
            drop((alone, slot));
            self.news.notify_waiters();
        });
        match head.await {
            Ok(Ok(head)) => response(&head, pieces),
            Ok(Err(error)) => refuse(StatusCode::BAD_GATEWAY, &error.to_string()),
            Err(_) => broken(),
        }
    }

    /// Tells how a call ended, and remembers for how long its vendor wants no other one.
    fn note(&self, id: Option<i64>, order: i64, call: &Call, ended: &Ended, clock: &Stopwatch) {
        let model = call.question.model.name();
        if let Some(pause) = ended.retry_after {
            self.pace.pause(model, pause);
        }
        let (word, cost) = match &ended.outcome {
            Outcome::Answered { cost, .. } => ("answered", cost.map(|cost| cost.to_string())),
            Outcome::Failed if id.is_none() => ("free", None),
            Outcome::Failed => ("failed", None),
            Outcome::Unknown => ("unknown", None),
        };
        self.counts.add(word);
        let ms = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(order, call = id, model, cost, ms, answer = word, "call");
    }

    /// Gives back what may be reserved for a call that is not made.
    async fn release(self: Arc<Self>, asked: Asked) {
        insist(|| self.store.release(asked.order, &asked.call.question.sha256)).await;
        drop(asked);
        self.news.notify_waiters();
    }

    fn kept(&self, answer: Kept) -> Response {
        self.counts.add("kept");
        ([(header::CONTENT_TYPE, answer.content_type)], answer.body).into_response()
    }

    fn void(&self) -> Response {
        self.counts.add("void");
        refuse(StatusCode::GONE, "this token is void")
    }
}

/// Writes something down, however long the database takes to come back.
async fn insist<W: Future<Output = anyhow::Result<()>>>(write: impl Fn() -> W) {
    const LONGEST: Duration = Duration::from_secs(5);
    let mut pause = Duration::from_millis(100);
    while let Err(error) = write().await {
        tracing::error!(
            error = format!("{error:#}"),
            "a call cannot be recorded yet"
        );
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// The program waits and asks again, or its order comes back later.
fn later(wait: Duration, why: &str) -> Response {
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, why);
    let seconds = wait.as_secs().saturating_add(1);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, seconds.into());
    response
}

fn broken() -> Response {
    refuse(StatusCode::BAD_GATEWAY, "the call broke off")
}
