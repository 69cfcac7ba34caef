//! Requests of programs for models: the vendors' own paths, below `/m/TOKEN`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use code_commit_fleet_store::{CallId, Fence, Kept, Nanodollars, Need, Outcome, Reserved};
use code_commit_llm::http::Head;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::Gateway;
use crate::ask::Question;
use crate::forward::{Call, Ended, Piece, forward};
use crate::service::{Format, Service};
use crate::workers::Failed;

/// A prompt may hold a whole code base.
const LARGEST_BODY: usize = 64 << 20;
/// A program is kept waiting for its turn up to this long; beyond that it is told to come back.
const PATIENCE: Duration = Duration::from_secs(20);
/// News of an answer may be late.
const GLANCE: Duration = Duration::from_secs(1);

pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/m/{token}/{*path}", any(model).layer(DefaultBodyLimit::max(LARGEST_BODY)))
        .route("/metrics", get(page))
        .with_state(Arc::clone(gateway))
}

async fn page(State(gateway): State<Arc<Gateway>>) -> Result<String, Failed> {
    // Each of them has a share of its front.
    let waiting = gateway.fronts.lock().await.values().map(|front| Arc::strong_count(front) - 1).sum();
    Ok(gateway.seen.page(&gateway.store.snapshot().await?, waiting))
}

/// Answers a request for a model: from what is kept, or by a call that is reserved first.
async fn model(
    State(gateway): State<Arc<Gateway>>,
    Path((token, path)): Path<(Uuid, String)>,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Failed> {
    let path = format!("/{path}");
    let Some((service, question)) = gateway.read(&path, &body) else {
        return Ok(refuse(
            StatusCode::NOT_FOUND,
            "the gateway has no key for this path, or it names no model",
        ));
    };
    let path = uri.query().map_or(path.clone(), |query| format!("{path}?{query}"));
    let call = if !question.is_free {
        match gateway.reserve(token, &question).await? {
            Ok(call) => Some(call),
            Err(response) => return Ok(response),
        }
    } else if gateway.store.holds(token).await? == Fence::Held {
        None
    } else {
        return Ok(gone());
    };
    Ok(gateway.call(call, Call { service, question, path, body: body.into() }).await)
}

impl Gateway {
    fn read(&self, path: &str, body: &[u8]) -> Option<(Service, Question)> {
        let format = Format::of(path)?;
        let service = self.services.iter().find(|service| service.provider.name == format.provider())?;
        Some((service.clone(), Question::read(format, service, path, body)?))
    }

    /// The right to make the call, or the response without it.
    async fn reserve(&self, token: Uuid, question: &Question) -> Result<Result<CallId, Response>, Failed> {
        let need = Need {
            token,
            request_sha256: &question.sha256,
            model: question.model.name(),
            most: question.most,
            interval: self.interval,
            patience: self.patience,
        };
        loop {
            let news = self.news.notified();
            let (word, response) = match self.store.reserve(self.id, &need).await? {
                Reserved::Open(call) => return Ok(Ok(call)),
                Reserved::InFlight => {
                    // An earlier lease asked for it; its answer will be kept.
                    tokio::select! { () = news => {}, () = tokio::time::sleep(GLANCE) => {} }
                    continue;
                }
                Reserved::Wait(wait) if wait <= PATIENCE => {
                    tokio::time::sleep(wait).await;
                    continue;
                }
                Reserved::Wait(wait) => ("wait", later(wait)),
                Reserved::Kept(kept) => ("kept", answered(kept)),
                Reserved::Refused { scope, left } => ("refused", over_budget(&scope, left, need.most)),
                Reserved::Gone => {
                    ("gone", refuse(StatusCode::FORBIDDEN, "this lease does not hold any more"))
                }
            };
            self.seen.call(need.model, word);
            return Ok(Err(response));
        }
    }

    /// Makes a call and passes its answer on. The call goes on if the program dies: what is paid is kept.
    async fn call(self: Arc<Self>, id: Option<CallId>, call: Call) -> Response {
        let (begun, head) = oneshot::channel();
        let (relay, pieces) = mpsc::unbounded_channel();
        let under_way = Arc::clone(&self.under_way).read_owned().await;
        tokio::spawn(async move {
            let model = call.question.model.name().to_owned();
            let (gateway, passed_on) = (Arc::clone(&self), relay.clone());
            let made = move || forward(&gateway.agents, call, &passed_on, begun);
            // A call that panicked was made, and nobody knows what it cost.
            let cut = Ended { outcome: Outcome::Unknown, failure: None, is_cut: true };
            let ended = tokio::task::spawn_blocking(made).await.unwrap_or(cut);
            self.settle(id, &model, &ended).await;
            drop(under_way);
            // The body ends for the program only now: a complete answer is a stored answer.
            let _ = relay.send(if ended.is_cut { Piece::Cut } else { Piece::End });
        });
        match head.await {
            Ok(Ok(head)) => passed(&head, pieces),
            Ok(Err(error)) => refuse(StatusCode::BAD_GATEWAY, &error.to_string()),
            Err(_) => refuse(StatusCode::BAD_GATEWAY, "the call broke off"),
        }
    }

    /// Records how a call ended, however long the database takes to come back.
    async fn settle(&self, call: Option<CallId>, model: &str, ended: &Ended) {
        const LONGEST: Duration = Duration::from_secs(5);
        let hint = ended.failure.as_ref().and_then(code_commit_llm::CallError::retry_after);
        self.seen.call(model, word(&ended.outcome));
        self.seen.paid(model, &ended.outcome);
        let mut pause = Duration::from_millis(100);
        loop {
            let paused = match hint {
                Some(hint) => self.store.pause(model, hint).await,
                None => Ok(()),
            };
            let settled = match call {
                Some(call) => self.store.settle(call, &ended.outcome).await,
                None => Ok(()),
            };
            let Err(error) = paused.and(settled) else { return };
            tracing::error!(error = &error as &dyn std::error::Error, "an answer cannot be stored yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered { .. } => "answered",
        Outcome::Failed => "failed",
        Outcome::Unknown => "unknown",
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
    for name in [header::CONTENT_TYPE, header::RETRY_AFTER, HeaderName::from_static("retry-after-ms")] {
        if let Some(value) = head.header(name.as_str()).and_then(|value| value.parse().ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn answered(kept: Kept) -> Response {
    ([(header::CONTENT_TYPE, kept.content_type)], kept.body).into_response()
}

/// The program waits and asks again, or its order comes back later.
fn later(wait: Duration) -> Response {
    let seconds = wait.as_secs().saturating_add(1).to_string();
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "the fleet's turn with this model has not come");
    if let Ok(seconds) = seconds.parse() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

fn over_budget(scope: &str, left: Nanodollars, most: Option<Nanodollars>) -> Response {
    let left = left.as_usd();
    let message = match most {
        Some(most) => format!("{scope} has ${left:.4} left, and the call may cost ${:.4}", most.as_usd()),
        None => format!("{scope} has a cap, and the price of this model is unknown"),
    };
    refuse(StatusCode::PAYMENT_REQUIRED, &message)
}

fn gone() -> Response {
    refuse(StatusCode::FORBIDDEN, "this lease does not hold any more")
}

/// In a form that all clients of the product read.
fn refuse(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "error": { "code": status.as_u16(), "message": message } });
    (status, axum::Json(body)).into_response()
}
