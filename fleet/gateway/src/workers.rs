//! Requests of workers: see the table of `wire`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Json, Router, body::Bytes};
use code_commit_fleet_store::{Fence, Leased, StoreError};
use code_commit_fleet_wire::{Ask, Finish, Held, Lease, Lost, RECORD, Stored, Verdict, is_commit};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::Gateway;

/// The largest bundle.
const LARGEST: usize = 256 << 20;
/// A worker asks again after this long, so that it notices a gateway that hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long news may be late: they are told, but a connection that tells them may have been lost.
const GLANCE: Duration = Duration::from_secs(5);

pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/v1/lease", post(lease))
        .route("/v1/beat", post(beat))
        .route(
            "/v1/artifact/{token}",
            put(artifact).layer(DefaultBodyLimit::max(LARGEST)),
        )
        .route("/v1/finish", post(finish))
        .route("/v1/lost", post(lost))
        .with_state(Arc::clone(gateway))
}

type Shared = State<Arc<Gateway>>;

/// Waits for an order.
async fn lease(State(gateway): Shared, Json(ask): Json<Ask>) -> Result<Response, Failed> {
    let until = Instant::now() + Duration::from_millis(ask.wait_ms).min(LONGEST_WAIT);
    let mut ending = gateway.ending.clone();
    if gateway.store.seen(&ask).await? {
        // It asks again at once, and is not to keep others from the front.
        let _ = timeout_at(until, ending.wait_for(|ending| *ending)).await;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let front = Arc::clone(
        gateway
            .fronts
            .lock()
            .await
            .entry(ask.record.clamp(0, RECORD))
            .or_default(),
    );
    // Whoever is in front looks as soon as there is news. Thousands that all looked would keep the database busy with that.
    let Ok(_front) = timeout_at(until, front.lock()).await else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    loop {
        // Listens before it looks, so that nothing can come in between unheard.
        let news = gateway.news.notified();
        if *ending.borrow() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        gateway.seen.looked();
        if let Some(Leased { lease, waited }) = gateway.store.lease(&ask, &gateway.terms).await? {
            gateway.seen.waited(waited);
            return Ok(Json(leased(lease, &ask)).into_response());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        tokio::select! {
            () = news => {}
            _ = ending.changed() => {}
            () = tokio::time::sleep(left.min(GLANCE)) => {}
        }
    }
}

/// Told, and the lease names its span for the worker.
fn leased(lease: Lease, ask: &Ask) -> Lease {
    let Ask {
        worker, version, ..
    } = ask;
    let span = tracing::info_span!("lease", order = lease.order, epoch = lease.epoch, worker);
    code_commit_fleet_traces::follow(&span, lease.traceparent.as_deref());
    span.in_scope(|| {
        tracing::info!(
            order = lease.order,
            epoch = lease.epoch,
            worker,
            version,
            "leased"
        );
    });
    Lease {
        traceparent: code_commit_fleet_traces::carry(&span).or(lease.traceparent),
        ..lease
    }
}

async fn beat(State(gateway): Shared, Json(held): Json<Held>) -> Result<StatusCode, Failed> {
    let fence = gateway.store.beat(held.token, &gateway.terms).await?;
    Ok(gateway.fenced("beat", fence))
}

async fn artifact(
    State(gateway): Shared,
    Path(token): Path<Uuid>,
    content: Bytes,
) -> Result<Response, Failed> {
    // Only who has a lease may fill the database.
    if gateway.store.holds(token).await? == Fence::Gone {
        return Ok(gateway.fenced("artifact", Fence::Gone).into_response());
    }
    let sha256 = gateway.store.keep(&content).await?;
    Ok(Json(Stored { sha256 }).into_response())
}

async fn finish(
    State(gateway): Shared,
    headers: HeaderMap,
    Json(finish): Json<Finish>,
) -> Result<StatusCode, Failed> {
    // What begins on it or lands takes it for a commit.
    if matches!(&finish.verdict, Verdict::Passed { commit } if !is_commit(commit)) {
        return Ok(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let span = tracing::info_span!("result", verdict = ?finish.verdict);
    code_commit_fleet_traces::follow(
        &span,
        headers
            .get(code_commit_fleet_traces::TRACEPARENT)
            .and_then(|parent| parent.to_str().ok()),
    );
    async {
        let fence = gateway.store.finish(&finish, &gateway.terms).await?;
        tracing::info!(verdict = ?finish.verdict, ?fence, "finished");
        if fence == Fence::Held {
            gateway.seen.run(finish.elapsed_ms);
        }
        Ok(gateway.fenced("finish", fence))
    }
    .instrument(span)
    .await
}

async fn lost(State(gateway): Shared, Json(lost): Json<Lost>) -> Result<StatusCode, Failed> {
    let fence = gateway.store.lose(&lost, &gateway.terms).await?;
    tracing::warn!(
        reason = lost.reason,
        counts = lost.counts,
        ?fence,
        "given back"
    );
    Ok(gateway.fenced("lost", fence))
}

impl Gateway {
    fn fenced(&self, what: &'static str, fence: Fence) -> StatusCode {
        match fence {
            Fence::Held => StatusCode::NO_CONTENT,
            Fence::Gone => {
                self.seen.fenced(what);
                StatusCode::GONE
            }
        }
    }
}

/// The database failed; the worker tries again.
#[derive(Debug)]
pub(crate) struct Failed(StoreError);

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        tracing::error!(
            error = &self.0 as &dyn std::error::Error,
            "a request failed"
        );
        // The database's own message may hold content of other tenants.
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway cannot reach its database; try again\n",
        )
            .into_response()
    }
}
