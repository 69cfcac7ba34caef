//! Who asks, and what people and programs ask for: `POST /v1/fleet` with a [`Request`], `GET /v1/bundle/ORDER`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, Request as Asked, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use code_commit_fleet_store::{OrderId, Refusal, Request, Rights, Role, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::Gateway;
use crate::workers::Failed;

/// A token that is revoked holds for no longer than this.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Tokens that hold; those that do not are never remembered.
const MOST: usize = 4_096;
/// Of a request of people; a submission is the longest.
pub(crate) const LARGEST: usize = 64 << 20;

/// Rights of tokens that were shown a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<[u8; 32], (Rights, Instant)>>);

pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route(
            "/v1/fleet",
            post(ask).layer(axum::extract::DefaultBodyLimit::max(LARGEST)),
        )
        .route("/v1/bundle/{order}", get(bundle))
        .with_state(Arc::clone(gateway))
}

/// Lets whoever shows a token in, with its rights.
pub(crate) async fn with_token(
    State(gateway): State<Arc<Gateway>>,
    mut request: Asked,
    next: Next,
) -> Response {
    match gateway.rights(request.headers()).await {
        Ok(Some(rights)) => {
            request.extensions_mut().insert(rights);
            next.run(request).await
        }
        Ok(None) => (
            StatusCode::UNAUTHORIZED,
            "this token is not known, or was revoked\n",
        )
            .into_response(),
        Err(error) => Failed::from(error).into_response(),
    }
}

/// Whoever reaches the socket may work; a token may allow more.
pub(crate) async fn with_socket(
    state: State<Arc<Gateway>>,
    mut request: Asked,
    next: Next,
) -> Response {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return with_token(state, request, next).await;
    }
    request.extensions_mut().insert(Rights {
        role: Role::Worker,
        tenant: None,
    });
    next.run(request).await
}

/// The requests of workers are for workers alone: an operator's token on a worker would be one too many.
pub(crate) async fn workers_only(
    Extension(rights): Extension<Rights>,
    request: Asked,
    next: Next,
) -> Response {
    if rights.role == Role::Worker {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "this needs the token of a worker\n").into_response()
}

async fn ask(
    State(gateway): State<Arc<Gateway>>,
    Extension(rights): Extension<Rights>,
    Json(request): Json<Request>,
) -> Result<Response, Failed> {
    match gateway.store.perform(&rights, request).await {
        Ok(answer) => Ok(Json(answer).into_response()),
        Err(refusal) => refuse(refusal),
    }
}

async fn bundle(
    State(gateway): State<Arc<Gateway>>,
    Extension(rights): Extension<Rights>,
    Path(order): Path<i64>,
) -> Result<Response, Failed> {
    let order = OrderId(order);
    if let Err(refusal) = gateway.store.visible(&rights, order).await {
        return refuse(refusal);
    }
    let content = gateway.store.bundle(order).await?;
    Ok(content.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        IntoResponse::into_response,
    ))
}

fn refuse(refusal: Refusal) -> Result<Response, Failed> {
    let status = match refusal {
        Refusal::Forbidden { .. } => StatusCode::FORBIDDEN,
        Refusal::Store(StoreError::NoOrder(_) | StoreError::Elsewhere(_)) | Refusal::Invalid(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Refusal::Store(error) => return Err(error.into()),
        _ => StatusCode::BAD_REQUEST,
    };
    Ok((status, format!("{refusal}\n")).into_response())
}

impl Gateway {
    async fn rights(&self, headers: &HeaderMap) -> Result<Option<Rights>, StoreError> {
        let sent = headers
            .get(header::AUTHORIZATION)
            .and_then(|sent| sent.to_str().ok());
        let Some(secret) = sent.and_then(|sent| sent.strip_prefix("Bearer ")) else {
            return Ok(None);
        };
        let hash: [u8; 32] = Sha256::digest(secret).into();
        if let Some(rights) = self.known.get(&hash) {
            return Ok(Some(rights));
        }
        let Some(token) = self.store.token(secret).await? else {
            return Ok(None);
        };
        let rights = Rights {
            role: token.role,
            tenant: token.tenant,
        };
        self.known.keep(hash, rights.clone());
        Ok(Some(rights))
    }
}

impl Known {
    fn get(&self, hash: &[u8; 32]) -> Option<Rights> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rights, until) = known.get(hash)?;
        (*until > Instant::now()).then(|| rights.clone())
    }

    fn keep(&self, hash: [u8; 32], rights: Rights) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= MOST {
            known.retain(|_, (_, until)| *until > now);
        }
        if known.len() < MOST {
            known.insert(hash, (rights, now + REMEMBERED));
        }
    }
}
