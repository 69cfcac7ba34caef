//! `code-commit-fleet`: submits orders, shows what became of them, and runs the fleet's own processes.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the program that prints")]

mod gc;
mod page;
mod print;
mod serve;
mod submit;
mod view;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use code_commit_fleet_store::{Fence, Filter, Nanodollars, OrderId, Scope, Store};
use code_commit_fleet_traces::{Tells, Traces};

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
    /// Submit orders; the same tenant, content and base are the same order
    Submit(submit::Submit),
    /// Show how many orders are in which state, or what happened to one
    Status(view::Status),
    /// End orders that are not over
    Cancel(Orders),
    /// Queue orders again that failed, stopped, died or were cancelled
    Retry(Orders),
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
    /// Remove bundles, answers and events of orders that ended long ago; verdicts and costs stay
    Gc(gc::Gc),
    /// Serve workers and their programs: the only process with the database's password and the vendors' keys
    Gateway(serve::Gateway),
    /// Move branches to the results of orders that were submitted with --land
    Land(serve::Land),
}

/// Orders by their numbers.
#[derive(Debug, Args)]
struct Orders {
    #[arg(required = true, value_name = "ORDER")]
    orders: Vec<i64>,
}

/// Which orders.
#[derive(Debug, Args)]
struct Which {
    /// Only this tenant's
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only this batch's
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
}

impl Which {
    fn filter(&self) -> Filter {
        Filter { tenant: self.tenant.clone(), batch: self.batch.clone(), ..Filter::default() }
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
    let out = print::Out { is_json: flags.json };
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
    let tells = if is_process { Tells::Everything } else { Tells::Traces };
    let _traces = Traces::begin("code-commit-fleet", tells)?;
    if let Command::Migrate = flags.command {
        Store::migrate(&flags.database).await?;
        out.line(&serde_json::json!({ "migrated": true }), || "the schema is up to date".into());
        return Ok(Exit::Done);
    }
    let store = Store::open(&flags.database).await?;
    match &flags.command {
        Command::Migrate => Ok(Exit::Done),
        Command::Submit(submit) => submit.run(&store, out).await,
        Command::Status(status) => status.run(&store, out).await,
        Command::Cancel(orders) => {
            each(orders, out, "cancelled", async |order| store.cancel(order).await).await
        }
        Command::Retry(orders) => {
            each(orders, out, "queued again", async |order| store.retry(order).await).await
        }
        Command::Results(results) => results.run(&store, out).await,
        Command::Costs(which) => view::costs(&store, &which.filter(), out).await,
        Command::Page(page) => page.run(&store, out).await,
        Command::Cap { scope, usd } => {
            store.cap(scope, *usd).await?;
            view::budgets(&store, out).await
        }
        Command::Gc(gc) => gc.run(&store, out).await,
        Command::Gateway(gateway) => gateway.run(store).await,
        Command::Land(land) => land.run(&store, out).await,
    }
}

/// Does the same to each order; 7 if there was nothing to do for any of them.
async fn each(
    orders: &Orders,
    out: print::Out,
    done: &str,
    act: impl AsyncFn(OrderId) -> Result<Fence, code_commit_fleet_store::StoreError>,
) -> anyhow::Result<Exit> {
    let mut exit = Exit::Nothing;
    for &order in &orders.orders {
        let is_done = act(OrderId(order)).await? == Fence::Held;
        if is_done {
            exit = Exit::Done;
        }
        let word =
            if is_done { done } else { "unchanged: its state does not allow it, or there is no such order" };
        out.line(&serde_json::json!({ "order": order, "done": is_done }), || {
            format!("order {order}: {word}")
        });
    }
    Ok(exit)
}

fn usd(text: &str) -> Result<Nanodollars, String> {
    let usd: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of dollars"))?;
    Nanodollars::from_usd(usd).ok_or_else(|| format!("`{text}` is not between 0 and 1000000"))
}

fn scope(text: &str) -> Result<Scope, String> {
    let refused = || format!("`{text}` is none of fleet, tenant:NAME, batch:TENANT/NAME");
    match text.split_once(':') {
        None if text == "fleet" => Ok(Scope::Fleet),
        Some(("tenant", tenant)) if !tenant.is_empty() => Ok(Scope::Tenant(tenant.to_owned())),
        Some(("batch", rest)) => {
            let (tenant, batch) = rest.split_once('/').ok_or_else(refused)?;
            Ok(Scope::Batch { tenant: tenant.to_owned(), batch: batch.to_owned() })
        }
        _ => Err(refused()),
    }
}
