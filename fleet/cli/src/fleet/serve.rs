//! The fleet's own processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_git::Mirrors;
use code_commit_fleet_land::{LandError, Lander, Round};
use code_commit_fleet_store::{Store, Terms};
use code_commit_llm::Provider;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::{Exit, print};

/// Between two looks for results to land.
const GLANCE: Duration = Duration::from_millis(500);

/// How the gateway is set up. Vendors' keys come from the variables that the product reads, such as `GEMINI_API_KEY`.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// Where workers of this machine reach it
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/run/code-commit-fleet/gateway.sock"
    )]
    socket: PathBuf,
    /// Where workers of other machines, people and programs reach it, each with a token of its own: see `token make`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Where programs reach the models, and monitors /metrics
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8718")]
    models: String,
    /// A certificate in PEM, with those between it and its authority: encrypts --listen and --models
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Another address of a vendor, as PROVIDER=URL; can be repeated
    #[arg(long, value_name = "PROVIDER=URL", value_parser = upstream)]
    upstream: Vec<Upstream>,
    /// How long a lease holds without a beat, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    lease: f64,
    /// How long a gateway may be silent before its open calls count as spent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    patience: f64,
    /// The wait after an order was lost, in seconds; it doubles from there
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    backoff: f64,
    /// How often an order's model may be out of reach before the order stops
    #[arg(long, value_name = "N", default_value_t = 5)]
    attempts: i32,
    /// How often a model's service may fail in a row before its orders wait
    #[arg(long, value_name = "N", default_value_t = 5)]
    faults: i32,
    /// How long they wait then, in seconds; it doubles from there
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    rest: f64,
    /// Remove bundles, answers and events of orders that ended this many days ago, once an hour
    #[arg(long, value_name = "DAYS")]
    retain: Option<u16>,
    /// The most calls that the whole fleet may make of one model in a minute
    #[arg(long, value_name = "N")]
    calls_per_minute: Option<u32>,
}

impl Gateway {
    pub(crate) async fn run(&self, store: Store) -> anyhow::Result<Exit> {
        let remote = match &self.listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(code_commit_fleet_gateway::Tls::read(certificate, key)?)
            }
            _ => None,
        };
        let setup = code_commit_fleet_gateway::Setup {
            terms: Terms {
                lease: seconds(self.lease)?,
                backoff: seconds(self.backoff)?,
                max_attempts: self.attempts,
                max_faults: self.faults,
                rest: seconds(self.rest)?,
                ..Terms::default()
            },
            retain: self.retain,
            socket: self.socket.clone(),
            remote,
            models: bind(&self.models).await?,
            tls,
            services: self.services()?,
            interval: self
                .calls_per_minute
                .map(|calls| Duration::from_mins(1) / calls.max(1)),
            patience: seconds(self.patience)?,
            calls: code_commit_fleet_gateway::CALLS,
        };
        code_commit_fleet_gateway::run(store, setup, terminated()?).await?;
        Ok(Exit::Done)
    }

    /// The vendors that there are keys for.
    fn services(&self) -> anyhow::Result<Vec<code_commit_fleet_gateway::Service>> {
        let mut services = Vec::new();
        for provider in Provider::all_built_in() {
            let name = &provider.name;
            #[expect(
                clippy::disallowed_methods,
                reason = "this is the program that reads the environment"
            )]
            let key = provider
                .key_env
                .iter()
                .find_map(|name| std::env::var(name).ok());
            let mut named = self
                .upstream
                .iter()
                .filter(|upstream| upstream.provider == provider);
            let address = named.next().map(|upstream| &*upstream.url);
            anyhow::ensure!(
                named.next().is_none(),
                "--upstream names {name} twice; drop one of them"
            );
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                services.push(code_commit_fleet_gateway::Service::new(
                    name, address, &key,
                )?);
            } else if address.is_some() {
                let keys = provider.key_env.join(" or ");
                anyhow::bail!("--upstream names {name}, and there is no key for it; set {keys}");
            }
        }
        anyhow::ensure!(
            !services.is_empty(),
            "there is no vendor's key; set one, such as GEMINI_API_KEY"
        );
        Ok(services)
    }
}

/// Another address of a vendor.
#[derive(Debug, Clone)]
struct Upstream {
    provider: &'static Provider,
    url: String,
}

fn upstream(text: &str) -> Result<Upstream, String> {
    let (name, url) = text.split_once('=').ok_or("write PROVIDER=URL")?;
    let known: Vec<&str> = Provider::all_built_in()
        .iter()
        .map(|provider| &*provider.name)
        .collect();
    let unknown = || {
        format!(
            "there is no provider `{name}`; there are {}",
            known.join(", ")
        )
    };
    let provider = Provider::built_in(name).ok_or_else(unknown)?;
    // Two interfaces of one service have one address.
    let service = provider.key_file();
    if service != name {
        return Err(format!(
            "`{name}` has the address of `{service}`: write {service}={url}"
        ));
    }
    Ok(Upstream {
        provider,
        url: url.to_owned(),
    })
}

/// How results are landed.
#[derive(Debug, Args)]
pub(crate) struct Land {
    /// A folder of its own, for mirrors
    #[arg(long, value_name = "DIR", default_value = "/var/lib/code-commit-fleet")]
    folder: PathBuf,
    /// Land what is ready now, and end
    #[arg(long)]
    once: bool,
}

impl Land {
    pub(crate) async fn run(&self, store: &Store, out: print::Out) -> anyhow::Result<Exit> {
        let mirrors = Arc::new(Mirrors::new(std::path::absolute(
            self.folder.join("mirrors"),
        )?));
        if self.once {
            return once(store, mirrors, out).await;
        }
        let mut end = terminated()?;
        while !*end.borrow() {
            // The right to land ends with its connection; then it is asked for again.
            if let Err(error) = land(store, Arc::clone(&mirrors), &mut end).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot land at this moment"
                );
            }
            pause(&mut end).await;
        }
        Ok(Exit::Done)
    }
}

/// Lands what is ready.
async fn once(store: &Store, mirrors: Arc<Mirrors>, out: print::Out) -> anyhow::Result<Exit> {
    let lander = Lander::new(store, mirrors).await?;
    let mut lander = lander.context("another process lands at this moment")?;
    let mut all = Round::default();
    loop {
        let round = lander.whole_round().await?;
        all = Round {
            failed: round.failed,
            ..all.and(round)
        };
        if round.is_idle() {
            break;
        }
    }
    let Round {
        landed,
        again,
        refused,
        trains,
        failed,
    } = all;
    let fact = serde_json::json!({
        "landed": landed, "again": again, "refused": refused, "trains": trains, "failed": failed
    });
    let words = || {
        format!(
            "{landed} landed, {again} to be carried out again, {refused} refused, {trains} trains to be verified, \
             {failed} branches failed"
        )
    };
    out.line(&fact, words);
    Ok(if refused + failed > 0 {
        Exit::No
    } else {
        Exit::Done
    })
}

/// Lands until it is asked to end, or at once if another process does.
async fn land(
    store: &Store,
    mirrors: Arc<Mirrors>,
    end: &mut watch::Receiver<bool>,
) -> Result<(), LandError> {
    let Some(mut lander) = Lander::new(store, mirrors).await? else {
        return Ok(());
    };
    while !*end.borrow() {
        if lander.round().await?.is_idle() {
            pause(end).await;
        }
    }
    Ok(())
}

async fn pause(end: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(GLANCE) => {}
        _ = end.changed() => {}
    }
}

async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

fn seconds(seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds).context("not a number of seconds")
}

/// True after SIGTERM or Ctrl-C.
fn terminated() -> anyhow::Result<watch::Receiver<bool>> {
    let (tell, terminated) = watch::channel(false);
    let mut term = signal(SignalKind::terminate()).context("SIGTERM cannot be caught")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("Ctrl-C cannot be caught")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        tell.send_replace(true);
        std::future::pending::<()>().await;
    });
    Ok(terminated)
}
