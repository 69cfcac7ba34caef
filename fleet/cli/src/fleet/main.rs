//! `code-commit-fleet`: submits orders, shows what became of them, and runs the fleet's own processes.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the program that prints"
)]

mod fleet;
mod gc;
mod page;
mod print;
mod serve;
mod steer;
mod submit;
mod token;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use code_commit_fleet_store::{Filter, Nanodollars, Request, Scope, State, Store};
use code_commit_fleet_traces::{Tells, Traces};
use code_commit_fleet_worker::{Client, Endpoint};

use crate::fleet::Fleet;

/// Carries out thousands of orders on many machines.
#[derive(Debug, Parser)]
#[command(name = "code-commit-fleet", version)]
struct Flags {
    /// The database, as `host=… user=… dbname=…` or `postgresql://…`
    #[arg(
        long,
        global = true,
        env = "CODE_COMMIT_FLEET_DATABASE",
        hide_env_values = true,
        value_name = "ADDRESS",
        default_value = "host=/run/postgresql user=code-commit-fleet dbname=code-commit-fleet"
    )]
    database: String,
    /// A gateway to ask instead of the database, with the token in `CODE_COMMIT_FLEET_TOKEN`
    #[arg(
        long,
        global = true,
        env = "CODE_COMMIT_FLEET_GATEWAY",
        value_name = "HOST:PORT"
    )]
    gateway: Option<String>,
    #[arg(
        long,
        global = true,
        env = "CODE_COMMIT_FLEET_TOKEN",
        hide = true,
        hide_env_values = true
    )]
    token: Option<String>,
    /// The authority of the gateway's certificate, in PEM
    #[arg(long, global = true, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Print one JSON object per line on standard output, and nothing else
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the database's schema up to date
    Migrate,
    /// Submit orders; the same tenant, content, base, repository, model and branch are the same order
    Submit(submit::Submit),
    /// Show how many orders are in which state, or what happened to one
    Status(view::Status),
    /// End orders that are not over
    Cancel(steer::Orders),
    /// Queue orders again that failed, stopped, died or were cancelled
    Retry(steer::Orders),
    /// Let nobody lease orders that have something in common; what is leased goes on
    Pause {
        /// `tenant:NAME`, `repo:URL` or `model:MODEL`
        #[arg(value_parser = steer::target)]
        what: steer::Target,
    },
    /// Lease them again, also those of a model whose service was out of order
    Resume {
        /// `tenant:NAME`, `repo:URL` or `model:MODEL`
        #[arg(value_parser = steer::target)]
        what: steer::Target,
    },
    /// List workers that have asked for orders within a day
    Workers,
    /// Give a worker no more orders
    Drain {
        /// Its name in `workers`
        worker: String,
        /// Give it orders again
        #[arg(long)]
        undo: bool,
    },
    /// List results, or fetch the exported run of one order
    Results(view::Results),
    /// Show what was paid, by tenant, batch and model
    Costs(Which),
    /// Make a page to look at: batches, costs, orders, and a page of each order's run
    Page(page::Page),
    /// Set the most that may be spent
    Cap {
        /// `fleet`, `tenant:NAME` or `batch:TENANT/NAME`
        #[arg(value_parser = scope)]
        scope: Scope,
        /// In US dollars
        #[arg(value_parser = usd)]
        usd: Nanodollars,
    },
    /// Make, list or revoke tokens for the gateway
    #[command(subcommand)]
    Token(token::Token),
    /// Remove bundles, answers and events of orders that ended long ago; verdicts and costs stay
    Gc(gc::Gc),
    /// Serve workers and their programs: the only process with the database's password and the vendors' keys
    Gateway(serve::Gateway),
    /// Move branches to the results of orders that were submitted with --land
    Land(serve::Land),
}

/// Which orders.
#[derive(Debug, Clone, Args)]
struct Which {
    /// Only this tenant's
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only this batch's
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
    /// Only those for this repository
    #[arg(long = "of-repo", value_name = "URL")]
    repo: Option<String>,
    /// Only those for this model
    #[arg(long = "of-model", value_name = "MODEL")]
    model: Option<String>,
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<State>,
}

impl Which {
    fn filter(&self) -> Filter {
        let Self {
            tenant,
            batch,
            repo,
            model,
            state,
        } = self.clone();
        Filter {
            tenant,
            batch,
            repo,
            model,
            state,
            orders: Vec::new(),
        }
    }
}

/// The product's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Done = 0,
    No = 1,
    Refused = 3,
    Nothing = 7,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let out = print::Out {
        is_json: flags.json,
    };
    match run(&flags, out).await {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(Exit::Refused as u8)
        }
    }
}

async fn run(flags: &Flags, out: print::Out) -> anyhow::Result<Exit> {
    let is_process = matches!(flags.command, Command::Gateway(_) | Command::Land(_));
    let tells = if is_process {
        Tells::Everything
    } else {
        Tells::Traces
    };
    let _traces = Traces::begin("code-commit-fleet", tells)?;
    if let Command::Migrate = flags.command {
        Store::migrate(&flags.database).await?;
        out.line(&serde_json::json!({ "migrated": true }), || {
            "the schema is up to date".into()
        });
        return Ok(Exit::Done);
    }
    let fleet = async || flags.reach().await;
    let store = async || Store::open(&flags.database).await;
    match &flags.command {
        Command::Migrate => Ok(Exit::Done),
        Command::Submit(submit) => submit.run(&fleet().await?, out).await,
        Command::Status(status) => status.run(&fleet().await?, out).await,
        Command::Cancel(orders) => {
            steer::each(&fleet().await?, orders, out, "cancelled", |filter| {
                Request::Cancel { filter }
            })
            .await
        }
        Command::Retry(orders) => {
            steer::each(&fleet().await?, orders, out, "queued again", |filter| {
                Request::Retry { filter }
            })
            .await
        }
        Command::Pause { what } => steer::pause(&fleet().await?, what, out).await,
        Command::Resume { what } => steer::resume(&fleet().await?, what, out).await,
        Command::Workers => steer::workers(&fleet().await?, out).await,
        Command::Drain { worker, undo } => steer::drain(&fleet().await?, worker, !undo, out).await,
        Command::Results(results) => results.run(&fleet().await?, out).await,
        Command::Costs(which) => view::costs(&fleet().await?, which.filter(), out).await,
        Command::Cap { scope, usd } => steer::cap(&fleet().await?, scope, usd.as_usd(), out).await,
        Command::Page(page) => page.run(&store().await?, out).await,
        Command::Gc(gc) => gc.run(&store().await?, out).await,
        Command::Token(token) => token.run(&store().await?, out).await,
        Command::Gateway(gateway) => gateway.run(store().await?).await,
        Command::Land(land) => land.run(&store().await?, out).await,
    }
}

impl Flags {
    /// The gateway if there is one, else the database.
    async fn reach(&self) -> anyhow::Result<Fleet> {
        let Some(address) = self.gateway.clone() else {
            return Ok(Fleet::Database(Box::new(
                Store::open(&self.database).await?,
            )));
        };
        let token = self
            .token
            .clone()
            .context("the gateway needs a token in CODE_COMMIT_FLEET_TOKEN")?;
        Ok(Fleet::Gateway(Client::new(
            Endpoint::Tcp { address, token },
            self.tls_ca.as_deref(),
        )?))
    }
}

fn state(text: &str) -> Result<State, String> {
    let all = || State::ALL.map(State::word).join(", ");
    State::ALL
        .into_iter()
        .find(|state| state.word() == text)
        .ok_or_else(|| format!("`{text}` is none of {}", all()))
}

fn usd(text: &str) -> Result<Nanodollars, String> {
    let usd: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of dollars"))?;
    Nanodollars::from_usd(usd).ok_or_else(|| format!("`{text}` is not between 0 and 1000000"))
}

fn scope(text: &str) -> Result<Scope, String> {
    let refused = || format!("`{text}` is none of fleet, tenant:NAME, batch:TENANT/NAME");
    match text.split_once(':') {
        None if text == "fleet" => Ok(Scope::Fleet),
        Some(("tenant", tenant)) if !tenant.is_empty() => Ok(Scope::Tenant(tenant.to_owned())),
        Some(("batch", rest)) => {
            let (tenant, batch) = rest.split_once('/').ok_or_else(refused)?;
            Ok(Scope::Batch {
                tenant: tenant.to_owned(),
                batch: batch.to_owned(),
            })
        }
        _ => Err(refused()),
    }
}
