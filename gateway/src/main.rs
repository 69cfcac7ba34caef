//! Keeps the money, the answers and the fences of work orders that run on many machines. The machines belong to an engine: Slurm,
//! Kubernetes, a CI.
//!
//! `serve` is the only process with the database's password and the vendors' keys. `work` is what an engine starts, once a task.

mod admin;
mod bundle;
mod calls;
mod client;
mod environment;
mod git;
mod money;
mod orders;
mod proxy;
mod question;
mod relay;
mod serve;
mod store;
mod tls;
mod up;
mod vendor;
mod wire;
mod work;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tracing_subscriber::EnvFilter;

use crate::store::Store;

/// Money, answers and fences for work orders on many machines
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    /// The PostgreSQL database, as a URL or as `host=… dbname=…`
    #[arg(
        long,
        global = true,
        env = "CODE_COMMIT_GATEWAY_DATABASE",
        hide_env_values = true,
        value_name = "ADDRESS"
    )]
    database: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve models, attempts and results to workers
    Serve(serve::Setup),
    /// Carry one order out, as a task of an engine
    Work(work::Work),
    /// Start a database, `serve` and a local engine, and carry orders out on this machine
    Up(up::Up),
    #[command(flatten)]
    Admin(admin::Admin),
}

fn main() -> ExitCode {
    // Others of this user, such as the order's program, read neither memory nor environment of this process.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::FAILURE;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // 1 is final for engines, and so is a wrong command line.
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr);
    log.with_env_filter(
        EnvFilter::try_from_env("CODE_COMMIT_GATEWAY_LOG")
            .unwrap_or_else(|_| EnvFilter::new("info")),
    )
    .init();
    let done = match cli.command {
        Command::Work(work) => return work.run(),
        Command::Serve(setup) => with_store(cli.database, async |store| {
            serve::serve(store, setup, None, environment::stopped()).await
        }),
        Command::Admin(admin) => with_store(cli.database, async |store| admin.run(&store).await),
        Command::Up(up) => up.run(cli.database),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn with_store(
    address: Option<String>,
    run: impl AsyncFnOnce(Store) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let address = address
        .or_else(up::running)
        .context("set CODE_COMMIT_GATEWAY_DATABASE to the address of a PostgreSQL database")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { run(Store::open(&address)?).await })
}
