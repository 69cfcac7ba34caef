//! Requests of workers: attempts of orders, and their results.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::calls::bearer;
use crate::serve::{Gateway, Unavailable, refuse};
use crate::store::{Hash, hash, hex, secret};
use crate::wire::{Attempt, Begin, Begun, Finish, ORDER_TOKEN, Verdict, is_hash, is_name};

/// Of a reason, for people.
const LONGEST_REASON: usize = 500;

type Answer = Result<Response, Unavailable>;

/// An attempt of an order; every earlier token of it is void from then on.
pub(crate) async fn begin(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    Json(begin): Json<Begin>,
) -> Answer {
    let Some(worker) = bearer(&headers) else {
        return Ok(unknown_worker());
    };
    let Begin {
        batch,
        order,
        content_sha256,
        base,
    } = begin;
    if !is_name(&order) || !is_hash(&content_sha256) || !is_hash(&base) {
        return Ok(refuse(
            StatusCode::BAD_REQUEST,
            "the order's name, hash or base is not valid",
        ));
    }
    let token = secret()?;
    let row = gateway
        .store
        .row(
            "SELECT * FROM begin_order($1, $2, $3, $4, $5, $6)",
            &[
                &&worker[..],
                &batch,
                &order,
                &content_sha256,
                &base,
                &&hash(&token)[..],
            ],
        )
        .await?;
    Ok(match row.get("word") {
        "begun" => {
            let number: i64 = row.get("number");
            let reference = format!("refs/code-commit/{order}/{number}");
            tracing::info!(order, number, "begun");
            Json(Begun::Attempt(Attempt {
                token,
                reference,
                base: row.get("base"),
                earlier: row.get("earlier"),
            }))
            .into_response()
        }
        "finished" => Json(Begun::Finished).into_response(),
        "other-batch" => refuse(
            StatusCode::FORBIDDEN,
            "this worker belongs to another batch",
        ),
        "other-content" => refuse(
            StatusCode::CONFLICT,
            "the batch has an order of this name with another content",
        ),
        _ => unknown_worker(),
    })
}

const STORE: &str = "
    INSERT INTO bundles (order_id, sha256, content)
    SELECT o.id, $3::text, $4::bytea FROM orders o JOIN workers w ON w.batch = o.batch
    WHERE o.token_sha256 = $2 AND o.verdict IS NULL AND w.sha256 = $1 AND w.revoked_at IS NULL AND w.expires_at > now()
    FOR SHARE OF o
    ON CONFLICT (order_id) DO UPDATE SET sha256 = excluded.sha256, content = excluded.content
    RETURNING sha256";

/// Takes the bundle of a run folder: the last one of an order is its own.
pub(crate) async fn bundle(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let (Some(worker), Some(token)) = (bearer(&headers), order_token(&headers)) else {
        return Ok(unknown_worker());
    };
    let sha256 = hex(&Sha256::digest(&body));
    let stored = gateway
        .store
        .rows(STORE, &[&&worker[..], &&token[..], &sha256, &&body[..]])
        .await?;
    Ok(match stored.first() {
        Some(_) => Json(json!({ "sha256": sha256 })).into_response(),
        None => void(),
    })
}

/// The one result of an order, or the reason why an attempt has none.
pub(crate) async fn finish(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    Json(finish): Json<Finish>,
) -> Answer {
    let (Some(worker), Some(token)) = (bearer(&headers), order_token(&headers)) else {
        return Ok(unknown_worker());
    };
    let Finish {
        verdict,
        reason,
        commit,
        bundle,
    } = finish;
    if commit.is_some() != (verdict == Some(Verdict::Passed))
        || !commit.iter().chain(&bundle).all(|hash| is_hash(hash))
    {
        return Ok(refuse(
            StatusCode::BAD_REQUEST,
            "an order that passed has a commit, and no other one has",
        ));
    }
    // The database takes no NUL, and terminals no commands.
    let reason: String = reason
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_REASON)
        .collect();
    let verdict = verdict.map(|verdict| match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
    });
    let row = gateway
        .store
        .row(
            "SELECT finish_order($1, $2, $3, $4, $5, $6)",
            &[
                &&worker[..],
                &&token[..],
                &verdict,
                &reason,
                &commit,
                &bundle,
            ],
        )
        .await?;
    if !row.get::<_, bool>(0) {
        return Ok(void());
    }
    tracing::info!(verdict, reason, "finished");
    Ok(Json(json!({})).into_response())
}

/// An order that a worker asks about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) order: String,
}

const VERDICT: &str = "
    SELECT o.verdict FROM orders o JOIN workers w ON w.batch = o.batch
    WHERE w.sha256 = $1 AND w.revoked_at IS NULL AND w.expires_at > now() AND o.name = $2";

/// The verdict of an order of the worker's batch, or null.
pub(crate) async fn result(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    Json(named): Json<Named>,
) -> Answer {
    let Some(worker) = bearer(&headers) else {
        return Ok(unknown_worker());
    };
    let rows = gateway
        .store
        .rows(VERDICT, &[&&worker[..], &named.order])
        .await?;
    Ok(match rows.first() {
        Some(row) => Json(row.get::<_, Option<String>>(0)).into_response(),
        None => unknown_worker(),
    })
}

fn order_token(headers: &HeaderMap) -> Option<Hash> {
    headers.get(ORDER_TOKEN)?.to_str().ok().map(hash)
}

fn unknown_worker() -> Response {
    refuse(
        StatusCode::UNAUTHORIZED,
        "this worker's token is unknown, expired or revoked",
    )
}

fn void() -> Response {
    refuse(StatusCode::GONE, "this token is void")
}
