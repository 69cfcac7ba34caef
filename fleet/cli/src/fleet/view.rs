//! `status`, `results`, `costs`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_store::{
    Cost, Event, Filter, OrderId, OrderRow, PAGE, Request, Snapshot, State,
};

use crate::fleet::Fleet;
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
    pub(crate) async fn run(&self, fleet: &Fleet, out: Out) -> anyhow::Result<Exit> {
        if self.watch {
            return self.watch(fleet, out).await;
        }
        match self.order {
            Some(order) => one(fleet, OrderId(order), out).await,
            None => whole(fleet, out).await,
        }
    }

    async fn watch(&self, fleet: &Fleet, out: Out) -> anyhow::Result<Exit> {
        let filter = Filter {
            orders: self.order.map(OrderId).into_iter().collect(),
            ..self.which.filter()
        };
        let mut last = Vec::new();
        loop {
            let orders = fleet.orders(&filter).await?;
            let now: Vec<(OrderId, State)> =
                orders.iter().map(|row| (row.order, row.state)).collect();
            for row in orders
                .iter()
                .filter(|row| !last.contains(&(row.order, row.state)))
            {
                out.line(row, || words(row));
            }
            if are_over(&orders) {
                return Ok(if orders.iter().all(OrderRow::is_done) {
                    Exit::Done
                } else {
                    Exit::No
                });
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

async fn one(fleet: &Fleet, order: OrderId, out: Out) -> anyhow::Result<Exit> {
    let rows = fleet
        .orders(&Filter {
            orders: vec![order],
            ..Filter::default()
        })
        .await?;
    let Some(row) = rows.first() else {
        return Ok(Exit::Nothing);
    };
    out.line(row, || words(row));
    for event in fleet.ask::<Vec<Event>>(Request::Events { order }).await? {
        let detail = event.detail.as_deref().unwrap_or_default();
        out.line(&event, || {
            format!("  {}  {} {} {detail}", event.at, event.epoch, event.event)
        });
    }
    Ok(Exit::Done)
}

async fn whole(fleet: &Fleet, out: Out) -> anyhow::Result<Exit> {
    let snapshot: Snapshot = fleet.ask(Request::Snapshot).await?;
    let lines = || {
        let mut lines: Vec<String> = snapshot
            .orders
            .iter()
            .map(|(state, count)| format!("{count:>8}  {}", state.word()))
            .collect();
        lines.push(format!("{:>8}  lost leases", snapshot.lost));
        lines.push(format!("{:>8}  calls under way", snapshot.open_calls));
        lines.push(format!(
            "{:>7.0}s  the oldest order has waited",
            snapshot.oldest_queued_s
        ));
        for budget in &snapshot.budgets {
            let [spent, held, cap] = [budget.spent_usd, budget.held_usd, budget.cap_usd].map(usd);
            lines.push(format!(
                "{}: {spent} spent, {held} held of {cap}",
                budget.scope
            ));
        }
        for pause in &snapshot.pauses {
            let until = pause.until.as_deref().unwrap_or("it is resumed");
            lines.push(format!(
                "{}:{} waits until {until}: {}",
                pause.kind.word(),
                pause.name,
                pause.reason
            ));
        }
        lines.join("\n")
    };
    out.line(&snapshot, lines);
    Ok(Exit::Done)
}

fn words(row: &OrderRow) -> String {
    let mut line = format!(
        "order {}  {}  {}",
        row.order.0,
        row.state.word(),
        row.tenant
    );
    for part in [
        row.batch.as_deref(),
        row.commit.as_deref().map(short),
        row.reference.as_deref(),
    ] {
        line.extend(part.into_iter().flat_map(|part| ["  ", part]));
    }
    line.extend(
        row.parked
            .iter()
            .flat_map(|parked| ["  waits: ", parked.as_str()]),
    );
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
    /// Begin after this order
    #[arg(long, value_name = "ORDER")]
    from: Option<i64>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    limit: usize,
    #[command(flatten)]
    which: Which,
}

impl Results {
    pub(crate) async fn run(&self, fleet: &Fleet, out: Out) -> anyhow::Result<Exit> {
        if let (Some(order), Some(file)) = (self.order, &self.output) {
            let Some(content) = fleet.bundle(OrderId(order)).await? else {
                return Ok(Exit::Nothing);
            };
            let mut output = std::fs::File::create_new(file)
                .with_context(|| format!("{} cannot be made", file.display()))?;
            std::io::Write::write_all(&mut output, &content)
                .with_context(|| format!("{} cannot be written", file.display()))?;
            let fact = serde_json::json!({ "order": order, "file": file, "bytes": content.len() });
            out.line(&fact, || {
                format!("{}: {} bytes", file.display(), content.len())
            });
            return Ok(Exit::Done);
        }
        let (mut left, mut after) = (self.limit, OrderId(self.from.unwrap_or(0)));
        let mut exit = Exit::Nothing;
        while left > 0 {
            let request = Request::Orders {
                filter: self.which.filter(),
                after,
                limit: PAGE,
            };
            let rows: Vec<OrderRow> = fleet.ask(request).await?;
            let Some(last) = rows.last() else { break };
            after = last.order;
            for row in rows.iter().filter(|row| row.state.is_over()).take(left) {
                (exit, left) = (Exit::Done, left - 1);
                out.line(row, || words(row));
            }
        }
        Ok(exit)
    }
}

pub(crate) async fn costs(fleet: &Fleet, filter: Filter, out: Out) -> anyhow::Result<Exit> {
    let costs: Vec<Cost> = fleet.ask(Request::Costs { filter }).await?;
    for cost in &costs {
        let batch = cost.batch.as_deref().unwrap_or("-");
        let words = || {
            let mut line = format!(
                "{}  {batch}  {}  {} calls  {}",
                cost.tenant,
                cost.model,
                cost.calls,
                usd(cost.usd)
            );
            if cost.again > 0 {
                line.push_str(&format!("  {} paid twice", cost.again));
            }
            if cost.unknown > 0 {
                line.push_str(&format!(
                    "  {} open or unknown, counted in full",
                    cost.unknown
                ));
            }
            line
        };
        out.line(cost, words);
    }
    Ok(if costs.is_empty() {
        Exit::Nothing
    } else {
        Exit::Done
    })
}
