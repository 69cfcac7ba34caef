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
    /// Where workers of other machines reach it, and the token that they have to send.
    pub remote: Option<(TcpListener, String)>,
    /// Where programs reach the models, and monitors `/metrics`.
    pub models: TcpListener,
    /// What encrypts `remote` and `models`; without it they are in the clear.
    pub tls: Option<Tls>,
    /// The vendors that there are keys for.
    pub services: Vec<Service>,
    /// The shortest time between two calls of a model.
    pub interval: Option<Duration>,
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
}

/// Serves until `end` turns true, then ends what is under way.
pub async fn run(store: Store, setup: Setup, end: watch::Receiver<bool>) -> anyhow::Result<()> {
    let Setup { terms, socket, remote, models, tls, services, interval, patience, calls } = setup;
    let gateway = Arc::new(Gateway {
        id: store.gateway().await.context("the gateway cannot be announced")?,
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
    });
    tokio::spawn(listen(Arc::clone(&gateway)));
    tokio::spawn(beat(Arc::clone(&gateway)));
    let local = unix(&socket)?;
    let workers = axum::serve(local, workers::router(&gateway)).with_graceful_shutdown(ended(end.clone()));
    let models = axum::serve(Doors::new(models, tls.clone()), models::router(&gateway))
        .with_graceful_shutdown(ended(end.clone()));
    let far = async {
        match remote {
            Some((listener, token)) => {
                let router = workers::with_token(workers::router(&gateway), &token);
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
            tracing::warn!(error = &error as &dyn std::error::Error, "the database does not tell of news");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Says that this gateway is alive, and gives up the calls of those that are not.
async fn beat(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(gateway.patience / 6);
    loop {
        ticks.tick().await;
        match gateway.store.gateway_beat(gateway.id, gateway.patience).await {
            Ok(0) => {}
            Ok(calls) => {
                tracing::warn!(calls, "a gateway died; its open calls count as spent");
                gateway.news.notify_waiters();
            }
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot beat"),
        }
    }
}
