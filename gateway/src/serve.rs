//! The only process with the database's password and the vendors' keys. It holds no state that the database does not have: kill it
//! and start another one.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use code_commit_llm::http::{Agent, Limits, Network, Stopwatch};
use code_commit_llm::{Prices, Provider};
use deadpool_postgres::{ClientWrapper, Object};
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard, Semaphore, oneshot};

use crate::relay::{LARGEST, SILENCE};
use crate::store::{Hash, SERVING, Store};
use crate::tls::{Doors, Tls};
use crate::vendor::{VENDORS, Vendor};
use crate::{calls, environment, orders, wire};

const RESTORED: &str = "this database was restored from a backup, so money spent since then is missing from its account; count it \
                        from the vendors' own lists, then run `code-commit-gateway recount all USD`";
const TAKEN: &str = "another `serve` uses this database";
/// An earlier `serve` that was killed may hold its lock for a moment.
const TAKEOVER: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time that a vendor can stop a model for everybody.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// Requests under way, and tokens, beyond which those that ended are forgotten.
const FLIGHTS: usize = 1024;

/// How the gateway is set up.
#[derive(Debug, clap::Args)]
pub(crate) struct Setup {
    /// Where workers reach it
    #[arg(long, default_value = "127.0.0.1:8640", value_name = "HOST:PORT")]
    pub(crate) listen: SocketAddr,
    /// A certificate in PEM, followed by those between it and its authority: workers need https then
    #[arg(long, requires = "tls_key", value_name = "FILE")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Its key
    #[arg(long, requires = "tls_certificate", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Another address of gemini, openai (with /v1) or anthropic; can be repeated
    #[arg(long, value_name = "NAME=URL")]
    pub(crate) vendor: Vec<String>,
    /// Prices that override the built-in ones, in the form of llm/data/prices.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// The most calls of one model that begin in a minute
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calls_per_minute: Option<u32>,
    /// The most calls that are under way at a time; others wait for their turn
    #[arg(long, default_value_t = 256, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=448))]
    pub(crate) max_calls: u16,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) store: Store,
    pub(crate) vendors: Vec<Vendor>,
    pub(crate) prices: Prices,
    pub(crate) agent: Agent,
    pub(crate) pace: Pace,
    pub(crate) flights: Flights,
    pub(crate) tokens: Tokens,
    /// A call has ended, so there may be money.
    pub(crate) news: Notify,
    /// Each call holds one until its answer is stored.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) counts: Counts,
}

/// The requests under way, by order. Whoever has one is alone with it.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<(i64, Hash), Flight>>);

type Flight = Arc<AsyncMutex<()>>;

impl Flights {
    /// Waits for the same request of the same order, if that is under way.
    pub(crate) async fn alone(&self, order: i64, request: Hash) -> OwnedMutexGuard<()> {
        let flight = {
            let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if flights.len() > FLIGHTS {
                flights.retain(|_, flight| Arc::strong_count(flight) > 1);
            }
            Arc::clone(flights.entry((order, request)).or_default())
        };
        flight.lock_owned().await
    }
}

/// Tokens that were the newest ones of their orders when somebody asked. Whether one still is, each reservation asks anew.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<Hash, i64>>);

impl Tokens {
    pub(crate) fn order(&self, token: &Hash) -> Option<i64> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(token).copied()
    }

    pub(crate) fn remember(&self, token: Hash, order: i64) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() > FLIGHTS {
            tokens.clear();
        }
        tokens.insert(token, order);
    }
}

/// When a model may be called next. In memory: a `serve` that begins anew asks its vendor anew.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Stopwatch,
    interval: Option<Duration>,
    free_at: Mutex<HashMap<String, Duration>>,
}

impl Pace {
    /// Whether its calls have turns at this moment.
    pub(crate) fn is_set(&self, model: &str) -> bool {
        let free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.interval.is_some() || free_at.contains_key(model)
    }

    /// Takes the next turn of a model, if that is not later than `patience` from now: how long to wait for it.
    pub(crate) fn turn(&self, model: &str, patience: Duration) -> Result<Duration, Duration> {
        let now = self.clock.elapsed();
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        free_at.retain(|_, at| *at > now);
        let turn = free_at.get(model).map_or(now, |at| now.max(*at));
        let wait = turn.saturating_sub(now);
        if wait > patience {
            return Err(wait);
        }
        if let Some(interval) = self.interval {
            free_at.insert(model.to_owned(), turn + interval);
        }
        Ok(wait)
    }

    /// Nobody calls this model for a while: its vendor said so to one of us.
    pub(crate) fn pause(&self, model: &str, pause: Duration) {
        let until = self.clock.elapsed() + pause.min(LONGEST_PAUSE);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free_at.entry(model.to_owned()).or_default();
        *at = until.max(*at);
    }
}

/// How often something happened since the start, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(crate) fn add(&self, what: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what).or_default() += 1;
    }
}

/// Serves until `stop`, then ends what is under way. `ready` learns the address.
pub(crate) async fn serve(
    store: Store,
    setup: Setup,
    ready: Option<oneshot::Sender<SocketAddr>>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let tls = match (&setup.tls_certificate, &setup.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::read(certificate, key)?),
        _ => None,
    };
    let lock = alone(&store).await?;
    store.migrate().await?;
    anyhow::ensure!(!store.is_restored().await?, RESTORED);
    let given_up = store.give_up_calls().await?;
    let gateway = Arc::new(Gateway::new(store, &setup)?);
    let listener = TcpListener::bind(setup.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", setup.listen))?;
    let address = listener.local_addr()?;
    let vendors: Vec<&str> = gateway
        .vendors
        .iter()
        .map(|vendor| &*vendor.provider.name)
        .collect();
    tracing::info!(%address, tls = tls.is_some(), ?vendors, given_up, "serving");
    ready.map(|ready| ready.send(address));
    let served =
        axum::serve(Doors::new(listener, tls), router(&gateway)).with_graceful_shutdown(stop);
    let drained = async {
        served.await?;
        // Programs that were killed wait for nothing, and their answers are paid for.
        drop(gateway.slots.acquire_many(setup.max_calls.into()).await);
        tracing::info!("stopped");
        Ok(())
    };
    // Whoever gets the lock gives up all calls that it finds.
    tokio::select! { done = drained => done, lost = stay_alone(&gateway.store, lock) => lost }
}

/// A connection that holds the lock of the only `serve`.
async fn try_lock(store: &Store) -> anyhow::Result<Option<ClientWrapper>> {
    let client = Object::take(store.client().await?);
    let is_held = client.query_one(SERVING, &[]).await?.get(0);
    Ok(Some(client).filter(|_| is_held))
}

async fn alone(store: &Store) -> anyhow::Result<ClientWrapper> {
    let clock = Stopwatch::start();
    loop {
        if let Some(lock) = try_lock(store).await? {
            return Ok(lock);
        }
        anyhow::ensure!(clock.elapsed() < TAKEOVER, TAKEN);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes the lock again whenever the database was away. Ends if another `serve` was faster, or if a backup came back.
async fn stay_alone(store: &Store, mut lock: ClientWrapper) -> anyhow::Result<()> {
    loop {
        while !lock.is_closed() {
            tokio::time::sleep(PAUSE).await;
        }
        tracing::warn!("the connection to the database was lost");
        lock = loop {
            let retaken =
                async { anyhow::Ok((try_lock(store).await?, store.is_restored().await?)) };
            match retaken.await {
                Ok((None, _)) => anyhow::bail!(TAKEN),
                Ok((_, true)) => anyhow::bail!(RESTORED),
                Ok((Some(lock), false)) => break lock,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
    }
}

impl Gateway {
    fn new(store: Store, setup: &Setup) -> anyhow::Result<Self> {
        let prices = match &setup.prices {
            Some(file) => {
                let read = std::fs::read_to_string(file).map_err(anyhow::Error::from);
                let prices = read.and_then(|text| Ok(Prices::parse(&text)?));
                prices.with_context(|| format!("{} is not a table of prices", file.display()))?
            }
            None => Prices::built_in(),
        };
        let limits = Limits {
            body: LARGEST,
            silence: SILENCE,
            ..Limits::default()
        };
        let clock = Stopwatch::start();
        let interval = setup
            .calls_per_minute
            .map(|calls| Duration::from_mins(1) / calls);
        let free_at = Mutex::default();
        Ok(Self {
            store,
            vendors: vendors(&setup.vendor)?,
            prices,
            agent: Agent::new(Network::default(), limits),
            pace: Pace {
                clock,
                interval,
                free_at,
            },
            flights: Flights::default(),
            tokens: Tokens::default(),
            news: Notify::new(),
            slots: Arc::new(Semaphore::new(setup.max_calls.into())),
            counts: Counts::default(),
        })
    }
}

/// Those that there are keys for.
fn vendors(addresses: &[String]) -> anyhow::Result<Vec<Vendor>> {
    let mut bases = HashMap::new();
    for address in addresses {
        let (name, base) = address.split_once('=').unwrap_or((address, ""));
        anyhow::ensure!(
            VENDORS.contains(&name),
            "there is no vendor `{name}`: write gemini=URL, openai=URL or anthropic=URL"
        );
        bases.insert(name, base);
    }
    let mut vendors = Vec::new();
    for name in VENDORS {
        let provider = Provider::built_in(name).context("a provider is not built in")?;
        let mut keys = provider.key_env.iter();
        if let Some(key) = keys.find_map(|name| environment::variable(name)) {
            let vendor = Vendor::new(provider, bases.get(name).copied(), &key);
            vendors.push(vendor.with_context(|| format!("the address of {name} is not valid"))?);
        }
    }
    anyhow::ensure!(
        !vendors.is_empty(),
        "there is no key: set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY"
    );
    Ok(vendors)
}

fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/m/{*path}", any(calls::model))
        .route("/v1/begin", post(orders::begin))
        .route(
            "/v1/bundle",
            post(orders::bundle).layer(DefaultBodyLimit::max(wire::LARGEST_BUNDLE)),
        )
        .route("/v1/finish", post(orders::finish))
        .route("/v1/result", post(orders::result))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .with_state(Arc::clone(gateway))
}

/// A request that failed because the database did: the worker tries again.
#[derive(Debug)]
pub(crate) struct Unavailable(anyhow::Error);

impl From<anyhow::Error> for Unavailable {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Unavailable {
    fn into_response(self) -> Response {
        tracing::error!(error = format!("{:#}", self.0), "the database failed");
        let message = "the gateway cannot reach its database";
        let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, message);
        response.headers_mut().insert(header::RETRY_AFTER, 1.into());
        response.headers_mut().insert(wire::AWAY, 1.into());
        response
    }
}

/// In a form that all clients of the product read.
pub(crate) fn refuse(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "error": { "code": status.as_u16(), "message": message } });
    (status, axum::Json(body)).into_response()
}

async fn health(State(gateway): State<Arc<Gateway>>) -> Result<&'static str, Unavailable> {
    gateway.store.row("SELECT 1", &[]).await?;
    Ok("ok\n")
}

const METRICS: &str = "
    SELECT format('orders{state=\"%s\"} %s', state, count(*)) FROM (SELECT coalesce(verdict,
        CASE WHEN token_sha256 IS NULL THEN 'given-up' ELSE 'begun' END) AS state FROM orders) o GROUP BY state
    UNION ALL SELECT format('open_calls %s', count(*)) FROM calls WHERE state = 'open'
    UNION ALL SELECT format('oldest_call_seconds %s', coalesce(extract(epoch FROM now() - min(began_at)), 0))
        FROM calls WHERE state = 'open'
    UNION ALL SELECT format('%s_dollars{scope=\"%s\"} %s', what, scope, trim_scale(amount / 1000000000.0))
        FROM budgets, LATERAL (VALUES ('cap', cap), ('held', held), ('spent', spent)) amounts (what, amount)
        WHERE amount IS NOT NULL";

/// In the text format of Prometheus.
async fn metrics(State(gateway): State<Arc<Gateway>>) -> Result<String, Unavailable> {
    let of_database = gateway.store.rows(METRICS, &[]).await?;
    let counts = gateway.counts.0.lock();
    let counts = counts.unwrap_or_else(PoisonError::into_inner).clone();
    let count = |(what, count)| format!("calls_total{{answer=\"{what}\"}} {count}");
    let lines = counts.into_iter().map(count);
    let lines = lines.chain(of_database.iter().map(|row| row.get(0)));
    let page: String = lines.map(|line| format!("code_commit_{line}\n")).collect();
    Ok(format!("# TYPE code_commit_calls_total counter\n{page}"))
}
