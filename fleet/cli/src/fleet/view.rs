//! `status`, `results`, `costs`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_store::{Filter, OrderId, OrderRow, State, Store};

use crate::print::{Out, short, usd};
use crate::{Exit, Which};

/// Between two looks of `--watch`.
const GLANCE: Duration = Duration::from_secs(1);

/// The fleet, or one order.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// An order; without it the whole fleet
    order: Option<i64>,
    #[command(flatten)]
    which: Which,
    /// Look again until all of the orders are over; ends with 0 if all of them passed, or landed where they should, else with 1
    #[arg(long)]
    watch: bool,
}

impl Status {
    pub(crate) async fn run(&self, store: &Store, out: Out) -> anyhow::Result<Exit> {
        if self.watch {
            return self.watch(store, out).await;
        }
        match self.order {
            Some(order) => one(store, OrderId(order), out).await,
            None => fleet(store, out).await,
        }
    }

    async fn watch(&self, store: &Store, out: Out) -> anyhow::Result<Exit> {
        let filter = Filter { order: self.order.map(OrderId), ..self.which.filter() };
        let mut last = Vec::new();
        loop {
            let orders = store.orders(&filter).await?;
            let now: Vec<(OrderId, State)> = orders.iter().map(|row| (row.order, row.state)).collect();
            for row in orders.iter().filter(|row| !last.contains(&(row.order, row.state))) {
                out.line(row, || words(row));
            }
            if are_over(&orders) {
                return Ok(if orders.iter().all(OrderRow::is_done) { Exit::Done } else { Exit::No });
            }
            last = now;
            tokio::time::sleep(GLANCE).await;
        }
    }
}

/// Whether nothing will happen to any of them: all are over, or wait for one that ended without success.
fn are_over(orders: &[OrderRow]) -> bool {
    let mut blocked = BTreeSet::new();
    // An order comes after one with a smaller number, and they are sorted.
    for row in orders {
        let is_blocked =
            row.state == State::Waiting && row.after.is_some_and(|after| blocked.contains(&after));
        if is_blocked || row.state.is_failure() {
            blocked.insert(row.order);
        } else if !row.is_done() {
            return false;
        }
    }
    true
}

async fn one(store: &Store, order: OrderId, out: Out) -> anyhow::Result<Exit> {
    let rows = store.orders(&Filter { order: Some(order), ..Filter::default() }).await?;
    let Some(row) = rows.first() else { return Ok(Exit::Nothing) };
    out.line(row, || words(row));
    for event in store.events(order).await? {
        let detail = event.detail.as_deref().unwrap_or_default();
        out.line(&event, || format!("  {}  {} {} {detail}", event.at, event.epoch, event.event));
    }
    Ok(Exit::Done)
}

async fn fleet(store: &Store, out: Out) -> anyhow::Result<Exit> {
    let snapshot = store.snapshot().await?;
    let lines = || {
        let mut lines: Vec<String> =
            snapshot.orders.iter().map(|(state, count)| format!("{count:>8}  {}", state.word())).collect();
        lines.push(format!("{:>8}  lost leases", snapshot.lost));
        lines.push(format!("{:>8}  calls under way", snapshot.open_calls));
        lines.push(format!("{:>7.0}s  the oldest order has waited", snapshot.oldest_queued_s));
        lines.join("\n")
    };
    out.line(&snapshot, lines);
    if out.is_json { Ok(Exit::Done) } else { budgets(store, out).await }
}

pub(crate) async fn budgets(store: &Store, out: Out) -> anyhow::Result<Exit> {
    for budget in store.budgets().await? {
        let code_commit_fleet_store::Budget { scope, cap_usd, held_usd, spent_usd } = &budget;
        let words =
            || format!("{scope}: {} spent, {} held of {}", usd(*spent_usd), usd(*held_usd), usd(*cap_usd));
        out.line(&budget, words);
    }
    Ok(Exit::Done)
}

fn words(row: &OrderRow) -> String {
    let mut line = format!("order {}  {}  {}", row.order.0, row.state.word(), row.tenant);
    for part in [row.batch.as_deref(), row.commit.as_deref().map(short), row.reference.as_deref()] {
        line.extend(part.into_iter().flat_map(|part| ["  ", part]));
    }
    if row.lost > 0 {
        line.push_str(&format!("  lost {}", row.lost));
    }
    line.push_str(&format!("  {}", usd(row.cost_usd)));
    line.extend(row.reason.iter().flat_map(|reason| ["  ", reason.as_str()]));
    line
}

/// Results, or one of them.
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// The order whose exported run is wanted
    #[arg(requires = "output")]
    order: Option<i64>,
    /// Where it goes; `code-commit verify FILE` checks it
    #[arg(short, long, value_name = "FILE", requires = "order")]
    output: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

impl Results {
    pub(crate) async fn run(&self, store: &Store, out: Out) -> anyhow::Result<Exit> {
        if let (Some(order), Some(file)) = (self.order, &self.output) {
            let Some(content) = store.bundle(OrderId(order)).await? else { return Ok(Exit::Nothing) };
            let mut output = std::fs::File::create_new(file)
                .with_context(|| format!("{} cannot be made", file.display()))?;
            std::io::Write::write_all(&mut output, &content)
                .with_context(|| format!("{} cannot be written", file.display()))?;
            let fact = serde_json::json!({ "order": order, "file": file, "bytes": content.len() });
            out.line(&fact, || format!("{}: {} bytes", file.display(), content.len()));
            return Ok(Exit::Done);
        }
        let mut exit = Exit::Nothing;
        for row in store.orders(&self.which.filter()).await?.iter().filter(|row| row.state.is_over()) {
            exit = Exit::Done;
            out.line(row, || words(row));
        }
        Ok(exit)
    }
}

pub(crate) async fn costs(store: &Store, filter: &Filter, out: Out) -> anyhow::Result<Exit> {
    let costs = store.costs(filter).await?;
    for cost in &costs {
        let batch = cost.batch.as_deref().unwrap_or("-");
        let words = || {
            let mut line =
                format!("{}  {batch}  {}  {} calls  {}", cost.tenant, cost.model, cost.calls, usd(cost.usd));
            if cost.again > 0 {
                line.push_str(&format!("  {} paid twice", cost.again));
            }
            if cost.unknown > 0 {
                line.push_str(&format!("  {} open or unknown, counted in full", cost.unknown));
            }
            line
        };
        out.line(cost, words);
    }
    Ok(if costs.is_empty() { Exit::Nothing } else { Exit::Done })
}
