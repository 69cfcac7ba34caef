//! The page of the fleet.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use code_commit_fleet_store::{Budget, Cost, OrderRow, State};
use code_commit_page::{SCRIPT, STYLE, plain, policy};

use crate::name;

/// What the page shows.
#[derive(Debug, Clone, Copy)]
pub struct Fleet<'a> {
    /// One row each.
    pub orders: &'a [OrderRow],
    /// Of these orders.
    pub costs: &'a [Cost],
    /// All caps.
    pub budgets: &'a [Budget],
    /// The files that are beside the page; an order whose page is not among them has no link.
    pub files: &'a BTreeSet<String>,
}

#[derive(Template)]
#[template(path = "fleet.html")]
struct Page<'a> {
    policy: String,
    style: &'static str,
    script: &'static str,
    total: String,
    tenants: BTreeSet<&'a str>,
    states: BTreeSet<State>,
    batches: Vec<Batch<'a>>,
    costs: &'a [Cost],
    budgets: &'a [Budget],
    rows: Vec<Row<'a>>,
}

/// The orders of a batch, summed up.
#[derive(Debug, Default)]
struct Batch<'a> {
    tenant: &'a str,
    name: &'a str,
    orders: usize,
    good: usize,
    bad: usize,
    open: usize,
    lost: i64,
    usd: f64,
}

/// An order.
struct Row<'a> {
    order: &'a OrderRow,
    link: Option<String>,
    class: &'static str,
    /// Texts of programs and people.
    reason: String,
    land: String,
    worker: String,
    seconds: String,
}

/// The page, with the newest order first.
pub fn html(fleet: &Fleet<'_>) -> String {
    let batches = batches(fleet.orders);
    let lost: i64 = batches.iter().map(|batch| batch.lost).sum();
    let usd: f64 = fleet.costs.iter().map(|cost| cost.usd).sum();
    let page = Page {
        policy: policy(Some(SCRIPT)),
        style: STYLE,
        script: SCRIPT,
        total: format!(
            "orders: {}, lost leases: {lost}, ${usd:.2}",
            fleet.orders.len()
        ),
        tenants: fleet
            .orders
            .iter()
            .map(|order| order.tenant.as_str())
            .collect(),
        states: fleet.orders.iter().map(|order| order.state).collect(),
        batches,
        costs: fleet.costs,
        budgets: fleet.budgets,
        rows: fleet
            .orders
            .iter()
            .rev()
            .map(|order| row(order, fleet.files))
            .collect(),
    };
    // Rendering into a string fails only if a template's own expression does, and none of ours can.
    page.render().unwrap_or_default()
}

fn batches(orders: &[OrderRow]) -> Vec<Batch<'_>> {
    let mut batches: BTreeMap<_, Batch<'_>> = BTreeMap::new();
    for order in orders {
        let (tenant, name) = (order.tenant.as_str(), order.batch.as_deref().unwrap_or("–"));
        let batch = batches.entry((tenant, name)).or_insert_with(|| Batch {
            tenant,
            name,
            ..Batch::default()
        });
        batch.orders += 1;
        match class(order) {
            "good" => batch.good += 1,
            "bad" => batch.bad += 1,
            _ => batch.open += 1,
        }
        batch.lost += i64::from(order.lost);
        batch.usd += order.cost_usd;
    }
    batches.into_values().collect()
}

/// As in the style: a result that still has to land is neither good nor bad.
fn class(order: &OrderRow) -> &'static str {
    if order.is_done() {
        "good"
    } else if order.state.is_failure() {
        "bad"
    } else {
        "open"
    }
}

fn row<'a>(order: &'a OrderRow, files: &BTreeSet<String>) -> Row<'a> {
    let shown = |text: &Option<String>| plain(text.as_deref().unwrap_or_default()).into_owned();
    #[expect(clippy::cast_precision_loss, reason = "far less than 2⁵² ms")]
    let seconds = order
        .elapsed_ms
        .map(|ms| format!("{:.1}", ms as f64 / 1000.0));
    Row {
        order,
        link: name(order).filter(|name| files.contains(name)),
        class: class(order),
        reason: shown(&order.reason),
        land: shown(&order.land),
        worker: shown(&order.worker),
        seconds: seconds.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use code_commit_fleet_store::OrderId;

    use super::*;

    fn order(number: i64, state: State, reason: &str) -> OrderRow {
        OrderRow {
            order: OrderId(number),
            tenant: "a".into(),
            batch: Some("b".into()),
            state,
            reason: Some(reason.into()),
            repo: "/hub".into(),
            onto: "b".repeat(40),
            commit: None,
            reference: None,
            land: None,
            after: None,
            epoch: 1,
            lost: 2,
            worker: None,
            elapsed_ms: Some(1500),
            bundle: Some("0123456789abcdef".into()),
            cost_usd: 0.25,
            parked: None,
        }
    }

    #[test]
    fn texts_of_programs_are_text() {
        let orders = [order(7, State::Failed, "<script>alert(1)</script>\u{202e}")];
        let fleet = Fleet {
            orders: &orders,
            costs: &[],
            budgets: &[],
            files: &BTreeSet::new(),
        };
        let html = html(&fleet);
        assert!(!html.contains("<script>alert") && !html.contains('\u{202e}'));
        assert!(html.contains("default-src &#39;none&#39;"), "{html}");
    }

    #[test]
    fn batches_are_sums_of_their_orders_and_only_pages_that_exist_are_linked() {
        let orders = [
            order(1, State::Passed, ""),
            order(2, State::Dead, ""),
            order(3, State::Queued, ""),
        ];
        let files = BTreeSet::from(["order-1-0123456789ab.html".to_owned()]);
        let html = html(&Fleet {
            orders: &orders,
            costs: &[],
            budgets: &[],
            files: &files,
        });
        let sums =
            ["3", "1", "1", "1", "6", "0.7500"].map(|sum| format!("<td class=\"num\">{sum}</td>"));
        assert!(
            html.contains(&format!(
                "<tr><td>a</td><th scope=\"row\">b</th>{}</tr>",
                sums.concat()
            )),
            "{html}"
        );
        assert_eq!(html.matches("href=\"order-").count(), 1);
        assert!(html.contains("href=\"order-1-0123456789ab.html\">1</a>"));
    }
}
