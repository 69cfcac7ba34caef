//! The only process with the database password and the vendors' keys.
//!
//! Takes requests of workers on a Unix socket (or with a token over TCP) and requests of their programs for models on loopback,
//! below `/m/TOKEN/`; gives orders, kept answers, and answers that it pays for. It holds no state that the database does not
//! have: kill it and start another one.
//!
//! It starts no process, touches no repository and decides about no verdict.

mod ask;
mod forward;
mod metering;
mod models;
mod people;
mod seen;
mod service;
mod tls;
mod workers;

pub use service::{Service, ServiceError};
pub use tls::Tls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::middleware::{from_fn, from_fn_with_state};
use code_commit_fleet_store::{GatewayId, Store, Terms};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Mutex, Notify, Semaphore, watch};

use crate::forward::Agents;
use crate::tls::Doors;

/// How a gateway is set up.
#[derive(Debug)]
pub struct Setup {
    /// How patient the fleet is with workers.
    pub terms: Terms,
    /// Where workers of this machine reach it.
    pub socket: PathBuf,
    /// Where workers of other machines, people and programs reach it; each with a token of its own.
    pub remote: Option<TcpListener>,
    /// Where programs reach the models, and monitors `/metrics`.
    pub models: TcpListener,
    /// What encrypts `remote` and `models`; without it they are in the clear.
    pub tls: Option<Tls>,
    /// The vendors that there are keys for.
    pub services: Vec<Service>,
    /// The shortest time between two calls of a model.
    pub interval: Option<Duration>,
    /// How many days what nobody needs of ended orders is kept; without it a person removes it.
    pub retain: Option<u16>,
    /// How long a gateway may be silent before its calls count as spent.
    pub patience: Duration,
    /// How many calls of models may be under way at a time, as a rule [`CALLS`]; others wait for their turn.
    pub calls: u16,
}

/// The calls that a gateway makes at a time. Each has one of the 512 threads that the runtime has for what blocks; the rest are for
/// files and the names of hosts.
pub const CALLS: u16 = 448;

/// State that all requests share.
#[derive(Debug)]
struct Gateway {
    store: Store,
    id: GatewayId,
    terms: Terms,
    services: Vec<Service>,
    interval: Option<Duration>,
    patience: Duration,
    agents: Agents,
    /// Orders may have been queued, or answers have come.
    news: Arc<Notify>,
    /// Each call holds a part of it until its answer is stored.
    calls: Arc<Semaphore>,
    /// Of the workers that wait, one for each record that they know looks for orders; the others wait for their turn.
    fronts: Mutex<BTreeMap<i32, Arc<Mutex<()>>>>,
    /// True once the gateway has been asked to end.
    ending: watch::Receiver<bool>,
    seen: seen::Seen,
    known: people::Known,
}

/// Serves until `end` turns true, then ends what is under way.
pub async fn run(store: Store, setup: Setup, end: watch::Receiver<bool>) -> anyhow::Result<()> {
    let Setup {
        terms,
        socket,
        remote,
        models,
        tls,
        services,
        interval,
        retain,
        patience,
        calls,
    } = setup;
    let gateway = Arc::new(Gateway {
        id: store
            .gateway()
            .await
            .context("the gateway cannot be announced")?,
        store,
        terms,
        services,
        interval,
        patience,
        agents: Agents::default(),
        news: Arc::default(),
        calls: Arc::new(Semaphore::new(calls.into())),
        fronts: Mutex::default(),
        ending: end.clone(),
        seen: seen::Seen::new(),
        known: people::Known::default(),
    });
    tokio::spawn(listen(Arc::clone(&gateway)));
    tokio::spawn(beat(Arc::clone(&gateway)));
    tokio::spawn(sweep(Arc::clone(&gateway)));
    if let Some(days) = retain {
        tokio::spawn(collect(Arc::clone(&gateway), days.into()));
    }
    let local = unix(&socket)?;
    let asked = || {
        workers::router(&gateway)
            .layer(from_fn(people::workers_only))
            .merge(people::router(&gateway))
    };
    let near = asked().layer(from_fn_with_state(
        Arc::clone(&gateway),
        people::with_socket,
    ));
    let workers = axum::serve(local, near).with_graceful_shutdown(ended(end.clone()));
    let models = axum::serve(Doors::new(models, tls.clone()), models::router(&gateway))
        .with_graceful_shutdown(ended(end.clone()));
    let far = async {
        match remote {
            Some(listener) => {
                let router =
                    asked().layer(from_fn_with_state(Arc::clone(&gateway), people::with_token));
                axum::serve(Doors::new(listener, tls), router)
                    .with_graceful_shutdown(ended(end.clone()))
                    .await
            }
            None => Ok(()),
        }
    };
    let (workers, models, far) = tokio::join!(workers.into_future(), models.into_future(), far);
    // Also those whose program is gone: their answers will be paid, so they have to be kept.
    gateway.calls.acquire_many(calls.into()).await?.forget();
    workers.and(models).and(far).context("a listener failed")
}

/// The socket of a gateway that was killed is in the way, and nobody listens on it.
fn unix(socket: &std::path::Path) -> anyhow::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(socket).is_err() {
        let _ = std::fs::remove_file(socket);
    }
    UnixListener::bind(socket).with_context(|| format!("cannot listen on {}", socket.display()))
}

async fn ended(mut end: watch::Receiver<bool>) {
    // If nobody can ask any more, that is a request, too.
    let _ = end.wait_for(|end| *end).await;
}

/// Keeps a connection on which the database tells of news.
async fn listen(gateway: Arc<Gateway>) {
    loop {
        if let Err(error) = gateway.store.listen(Arc::clone(&gateway.news)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the database does not tell of news"
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Removes what nobody needs any more.
async fn collect(gateway: Arc<Gateway>, days: i32) {
    let mut ticks = tokio::time::interval(Duration::from_hours(1));
    loop {
        ticks.tick().await;
        match gateway.store.collect(days).await {
            Ok(bytes) => tracing::info!(days, bytes, "removed what is old"),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot remove what is old"
                );
            }
        }
    }
}

/// Does what is due: at the moment at which a wait or a lease ends, and at least once a second.
async fn sweep(gateway: Arc<Gateway>) {
    const LONGEST: Duration = Duration::from_secs(1);
    loop {
        let next = gateway
            .store
            .until_next()
            .await
            .ok()
            .flatten()
            .unwrap_or(LONGEST);
        tokio::time::sleep(next.clamp(Duration::from_millis(20), LONGEST)).await;
        if let Err(error) = gateway.store.sweep(&gateway.terms).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot do what is due"
            );
        }
    }
}

/// Says that this gateway is alive, and gives up the calls of those that are not.
async fn beat(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(gateway.patience / 6);
    loop {
        ticks.tick().await;
        match gateway
            .store
            .gateway_beat(gateway.id, gateway.patience)
            .await
        {
            Ok(0) => {}
            Ok(calls) => {
                tracing::warn!(calls, "a gateway died; its open calls count as spent");
                gateway.news.notify_waiters();
            }
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot beat"),
        }
    }
}
