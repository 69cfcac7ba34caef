//! Requests of programs for models: the vendors' own paths, below `/m/TOKEN`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use code_commit_fleet_store::{
    CallId, Fence, Kept, Nanodollars, Need, Outcome, Reserved, StoreError,
};
use code_commit_llm::http::{Head, Stopwatch};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use uuid::Uuid;

use crate::Gateway;
use crate::ask::Question;
use crate::forward::{Call, Ended, Piece, forward};
use crate::service::{Path, Service};
use crate::workers::Failed;

/// Of `/metrics`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// A prompt may hold a whole code base.
const LARGEST_BODY: usize = 64 << 20;
/// A program is kept waiting for its turn up to this long; beyond that it is told to come back.
const PATIENCE: Duration = Duration::from_secs(20);
/// News of an answer may be late.
const GLANCE: Duration = Duration::from_secs(1);
/// A vendor that asks us to wait stops its model for all tenants, so it is not obeyed for longer than this.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/m/{token}/{*path}", any(model))
        .route("/metrics", get(page))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .with_state(Arc::clone(gateway))
}

async fn page(State(gateway): State<Arc<Gateway>>) -> Result<Response, Failed> {
    // Each of them has a share of its front.
    let waiting = gateway
        .fronts
        .lock()
        .await
        .values()
        .map(|front| Arc::strong_count(front) - 1)
        .sum();
    let page = gateway.seen.page(&gateway.store.snapshot().await?, waiting);
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], page).into_response())
}

/// Whether the database answers; it is asked for one row that is not there.
async fn ready(State(gateway): State<Arc<Gateway>>) -> Result<&'static str, Failed> {
    gateway.store.holds(Uuid::nil()).await?;
    Ok("ready\n")
}

/// Answers a request for a model: from what is kept, or by a call that is reserved first.
async fn model(
    State(gateway): State<Arc<Gateway>>,
    axum::extract::Path((token, _)): axum::extract::Path<(Uuid, String)>,
    request: Request,
) -> Result<Response, Failed> {
    // Comes before the body is read: who has no lease costs no memory.
    if gateway.store.holds(token).await? == Fence::Gone {
        return Ok(gateway.gone());
    }
    let unknown = || {
        refuse(
            StatusCode::NOT_FOUND,
            "the gateway does not pass this request on",
        )
    };
    let (head, body) = request.into_parts();
    let Some(path) = target(&head.uri).and_then(Path::read) else {
        return Ok(unknown());
    };
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return Ok(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is too large",
        ));
    };
    let Some((service, question)) = gateway.read(&path, &body) else {
        return Ok(unknown());
    };
    let target = target(&head.uri).unwrap_or_default().to_owned();
    let call = Arc::new(Call {
        service,
        question,
        target,
        body: Arc::new(body.into()),
    });
    gateway.answer(token, call).await
}

/// Path and query below `/m/TOKEN`, as they came: a path that is decoded here is another one for the vendor.
fn target(uri: &Uri) -> Option<&str> {
    let below = uri.path_and_query()?.as_str().strip_prefix("/m/")?;
    below.get(below.find('/')?..)
}

impl Gateway {
    fn read(&self, path: &Path<'_>, body: &[u8]) -> Option<(Service, Question)> {
        let provider = path.format.provider();
        let service = self
            .services
            .iter()
            .find(|service| service.provider.name == provider)?;
        Some((service.clone(), Question::read(path, service, body)?))
    }

    /// Waits for the turn of a call, and makes it unless its answer is there by then.
    async fn answer(self: Arc<Self>, token: Uuid, call: Arc<Call>) -> Result<Response, Failed> {
        let begun = Stopwatch::start();
        loop {
            let news = self.news.notified();
            // Taken before the money is, so that those who wait here hold none.
            let Ok(turn) = Arc::clone(&self.calls).acquire_owned().await else {
                return Ok(broken());
            };
            if call.question.is_free {
                return Ok(Arc::clone(&self).call(None, call, turn).await);
            }
            // Not a part of this request, which ends where the program does: an open call that nobody makes would block its
            // order for as long as this gateway lives.
            let made = tokio::spawn(Arc::clone(&self).reserve(token, Arc::clone(&call), turn));
            let Ok(made) = made.await else {
                return Ok(broken());
            };
            let (word, response) = match made? {
                Ok(response) => return Ok(response),
                Err(Reserved::InFlight) => {
                    // An earlier lease asked for it; its answer will be kept.
                    tokio::select! { () = news => {}, () = tokio::time::sleep(GLANCE) => {} }
                    continue;
                }
                Err(Reserved::Wait(wait)) if wait <= PATIENCE => {
                    tokio::time::sleep(wait).await;
                    continue;
                }
                // The calls that hold the money will end.
                Err(Reserved::Held { .. }) if begun.elapsed() < PATIENCE => {
                    tokio::select! { () = news => {}, () = tokio::time::sleep(GLANCE) => {} }
                    continue;
                }
                Err(Reserved::Held { scope, left }) => {
                    let left = left.as_usd();
                    (
                        "held",
                        later(
                            GLANCE,
                            &format!("other calls hold what is left of {scope}: ${left:.4}"),
                        ),
                    )
                }
                Err(Reserved::Wait(wait)) => (
                    "wait",
                    later(wait, "the fleet's turn with this model has not come"),
                ),
                Err(Reserved::Kept(kept)) => ("kept", answered(kept)),
                Err(Reserved::Refused { scope, left }) => {
                    ("refused", over_budget(&scope, left, call.question.most))
                }
                Err(Reserved::Gone | Reserved::Open(_)) => return Ok(self.gone()),
            };
            self.seen.call(call.question.model.name(), word);
            return Ok(response);
        }
    }

    /// Makes the call if it may be made; else says why not.
    async fn reserve(
        self: Arc<Self>,
        token: Uuid,
        call: Arc<Call>,
        turn: OwnedSemaphorePermit,
    ) -> Result<Result<Response, Reserved>, StoreError> {
        let need = Need {
            token,
            request_sha256: &call.question.sha256,
            model: call.question.model.name(),
            most: call.question.most,
            interval: self.interval,
            patience: self.patience,
            longest_wait: PATIENCE,
        };
        let reserved = self.store.reserve(self.id, &need).await?;
        let Reserved::Open(id) = reserved else {
            return Ok(Err(reserved));
        };
        Ok(Ok(self.call(Some(id), call, turn).await))
    }

    /// Makes a call and passes its answer on. The call goes on if the program dies: what is paid is kept.
    async fn call(
        self: Arc<Self>,
        id: Option<CallId>,
        call: Arc<Call>,
        turn: OwnedSemaphorePermit,
    ) -> Response {
        let (begun, head) = oneshot::channel();
        let (relay, pieces) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let (gateway, passed_on) = (Arc::clone(&self), relay.clone());
            let made = Arc::clone(&call);
            let clock = Stopwatch::start();
            let made = move || forward(&gateway.agents, &made, &passed_on, begun);
            // A call that panicked was made, and nobody knows what it cost.
            let cut = Ended {
                outcome: Outcome::Unknown,
                failure: None,
                is_cut: true,
            };
            let ended = tokio::task::spawn_blocking(made).await.unwrap_or(cut);
            self.settle(id, call.question.model.name(), &ended).await;
            self.seen
                .ended(&call.question, &ended.outcome, clock.elapsed());
            drop(turn);
            // The body ends for the program only now: a complete answer is a stored answer.
            let _ = relay.send(if ended.is_cut { Piece::Cut } else { Piece::End });
        });
        match head.await {
            Ok(Ok(head)) => passed(&head, pieces),
            Ok(Err(error)) => refuse(StatusCode::BAD_GATEWAY, &error.to_string()),
            Err(_) => broken(),
        }
    }

    fn gone(&self) -> Response {
        self.seen.fenced("model");
        refuse(StatusCode::FORBIDDEN, "this lease does not hold any more")
    }

    /// Records how a call ended, however long the database takes to come back.
    async fn settle(&self, call: Option<CallId>, model: &str, ended: &Ended) {
        const LONGEST: Duration = Duration::from_secs(5);
        let hint = ended
            .failure
            .as_ref()
            .and_then(code_commit_llm::CallError::retry_after);
        let hint = hint.map(|hint| hint.min(LONGEST_PAUSE));
        let mut pause = Duration::from_millis(100);
        loop {
            let paused = match hint {
                Some(hint) => self.store.pause(model, hint).await,
                None => Ok(()),
            };
            let settled = match call {
                Some(call) => self.store.settle(call, &ended.outcome, &self.terms).await,
                None => Ok(()),
            };
            let Err(error) = paused.and(settled) else {
                return;
            };
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an answer cannot be stored yet"
            );
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

/// An answer as it comes.
fn passed(head: &Head, pieces: mpsc::UnboundedReceiver<Piece>) -> Response {
    let status = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let body = stream::unfold(pieces, |mut pieces| async move {
        let piece = match pieces.recv().await? {
            Piece::Bytes(bytes) => Ok(bytes),
            Piece::End => return None,
            Piece::Cut => Err(io::Error::other("the vendor's answer broke off")),
        };
        Some((piece, pieces))
    });
    let mut response = (status, Body::from_stream(body)).into_response();
    for name in [
        header::CONTENT_TYPE,
        header::RETRY_AFTER,
        HeaderName::from_static("retry-after-ms"),
    ] {
        if let Some(value) = head
            .header(name.as_str())
            .and_then(|value| value.parse().ok())
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn answered(kept: Kept) -> Response {
    ([(header::CONTENT_TYPE, kept.content_type)], kept.body).into_response()
}

/// The program waits and asks again, or its order comes back later.
fn later(wait: Duration, why: &str) -> Response {
    let seconds = wait.as_secs().saturating_add(1).to_string();
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, why);
    if let Ok(seconds) = seconds.parse() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

fn over_budget(scope: &str, left: Nanodollars, most: Option<Nanodollars>) -> Response {
    let left = left.as_usd();
    let message = match most {
        Some(most) => format!(
            "{scope} has ${left:.4} left, and the call may cost ${:.4}",
            most.as_usd()
        ),
        None => format!("{scope} has a cap, and the price of this model is unknown"),
    };
    refuse(StatusCode::PAYMENT_REQUIRED, &message)
}

fn broken() -> Response {
    refuse(StatusCode::BAD_GATEWAY, "the call broke off")
}

/// In a form that all clients of the product read.
fn refuse(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "error": { "code": status.as_u16(), "message": message } });
    (status, axum::Json(body)).into_response()
}
