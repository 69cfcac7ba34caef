//! `code-commit-worker`: takes orders from a gateway and carries them out.

#![expect(clippy::print_stderr, reason = "before there are logs")]

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use code_commit_fleet_traces::{Tells, Traces};
use code_commit_fleet_worker::{Endpoint, Setup, Wish};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Takes orders from a gateway, carries them out with code-commit, and brings their results to the hub.
///
/// Run it as a user of its own: it needs no password and no vendor's key, but write access to the hubs. The first SIGTERM ends it
/// when its orders are done, the second one at once.
#[derive(Debug, Parser)]
#[command(name = "code-commit-worker", version)]
struct Flags {
    /// Its name in `status` [default: the process id]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The socket of the gateway
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/run/code-commit-fleet/gateway.sock"
    )]
    socket: PathBuf,
    /// A gateway on another machine, instead of the socket; its token is in `CODE_COMMIT_FLEET_TOKEN`
    #[arg(long, value_name = "HOST:PORT", requires = "token")]
    gateway: Option<String>,
    #[arg(
        long,
        env = "CODE_COMMIT_FLEET_TOKEN",
        hide = true,
        hide_env_values = true
    )]
    token: Option<String>,
    /// The authority of the gateway's certificate, in PEM; its program trusts this authority instead of the system's
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Where the gateway's models are
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8718")]
    models: String,
    /// A folder of its own, for mirrors and work trees
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/lib/code-commit-worker"
    )]
    folder: PathBuf,
    /// The program that carries out orders
    #[arg(long, value_name = "PATH", default_value = "code-commit")]
    program: PathBuf,
    /// How many orders at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    slots: Option<NonZero<usize>>,
    /// The most memory that an order may use, in MiB; needs a delegated control group
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let _traces = match Traces::begin("code-commit-worker", Tells::Everything) {
        Ok(traces) => traces,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(3);
        }
    };
    match run(flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &*error, "cannot work");
            ExitCode::from(3)
        }
    }
}

async fn run(flags: Flags) -> anyhow::Result<()> {
    let Flags {
        name,
        socket,
        gateway,
        token,
        tls_ca,
        models,
        folder,
        program,
        slots,
        memory,
    } = flags;
    let endpoint = match (gateway, token) {
        (Some(address), Some(token)) => Endpoint::Tcp { address, token },
        _ => Endpoint::Unix(socket),
    };
    let slots = slots
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZero::get);
    let name = name.unwrap_or_else(|| std::process::id().to_string());
    let folder = std::path::absolute(&folder).context("the folder has no absolute path")?;
    let authority = tls_ca
        .map(std::path::absolute)
        .transpose()
        .context("the authority has no absolute path")?;
    let memory = memory.map(|mebibytes| mebibytes << 20);
    let setup = Setup {
        name,
        endpoint,
        authority,
        models,
        folder,
        program,
        slots,
        memory,
    };
    let (tell, wish) = watch::channel(Wish::Work);
    let mut signals = signal(SignalKind::terminate()).context("SIGTERM cannot be caught")?;
    tokio::spawn(async move {
        for wish in [Wish::Drain, Wish::Stop] {
            signals.recv().await;
            tracing::info!(?wish, "SIGTERM");
            tell.send_replace(wish);
        }
        std::future::pending::<()>().await;
    });
    code_commit_fleet_worker::run(setup, wish).await
}
