//! Metrics.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use code_commit_fleet_store::{Outcome, Snapshot, State};
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::ask::Question;

/// Models that have metrics of their own; programs choose the names of models, and each one would stay in memory.
const MODELS: usize = 64;
/// The label of all other models.
const OTHER: &str = "other";

/// Names and values.
type Labels<const N: usize> = [(&'static str, String); N];
/// Of a number that need not be whole.
type Amounts<const N: usize> = Family<Labels<N>, Gauge<f64, AtomicU64>>;

/// Counters since the gateway began, and the fleet as the database has it.
#[derive(Debug)]
pub(crate) struct Seen {
    registry: Registry,
    fenced: Family<Labels<1>, Counter>,
    calls: Family<Labels<2>, Counter>,
    tokens: Family<Labels<2>, Counter>,
    cost: Family<Labels<1>, Counter<f64, AtomicU64>>,
    call_time: Family<Labels<1>, Histogram>,
    wait_time: Histogram,
    run_time: Histogram,
    looks: Counter,
    /// Those that a vendor has answered for.
    models: Mutex<BTreeSet<String>>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let all = &mut registry;
        let fenced = Family::default();
        let fenced = add(
            all,
            "fleet_fenced",
            "Requests whose lease did not hold any more",
            fenced,
        );
        let calls = add(
            all,
            "fleet_calls",
            "Requests for models by how they were answered",
            Family::default(),
        );
        let tokens = add(
            all,
            "fleet_tokens",
            "Tokens that vendors counted",
            Family::default(),
        );
        let cost = add(
            all,
            "fleet_cost_dollars",
            "Cost of answers of known price",
            Family::default(),
        );
        // A quarter of a second to a bit more than half an hour.
        let call_time = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.25, 2.0, 14))) as fn() -> Histogram,
        );
        let call_time = add(
            all,
            "fleet_call_seconds",
            "Time of a call of a model, to its end",
            call_time,
        );
        // A tenth of a second to a bit less than two days.
        let wait_time = Histogram::new(exponential_buckets(0.1, 3.0, 14));
        let help = "Time of an order in the queue, from when it could begin to its lease";
        let wait_time = add(all, "fleet_wait_seconds", help, wait_time);
        // A second to a bit more than two hours.
        let run_time = Histogram::new(exponential_buckets(1.0, 2.0, 14));
        let run_time = add(
            all,
            "fleet_run_seconds",
            "Time of a run, from its lease to its verdict",
            run_time,
        );
        let looks = add(
            all,
            "fleet_looks",
            "Questions to the database for an order",
            Counter::default(),
        );
        let models = Mutex::default();
        Self {
            registry,
            fenced,
            calls,
            tokens,
            cost,
            call_time,
            wait_time,
            run_time,
            looks,
            models,
        }
    }

    /// A request came too late: its lease was gone.
    pub(crate) fn fenced(&self, what: &'static str) {
        self.fenced
            .get_or_create(&[("request", what.to_owned())])
            .inc();
    }

    /// A request for a model was answered in this way.
    pub(crate) fn call(&self, model: &str, answer: &'static str) {
        if matches!(answer, "answered" | "kept") {
            self.learn(model);
        }
        let model = self.label(model);
        self.calls
            .get_or_create(&[("model", model), ("answer", answer.to_owned())])
            .inc();
    }

    /// A call of a vendor has ended.
    pub(crate) fn ended(&self, question: &Question, outcome: &Outcome, after: Duration) {
        let model = question.model.name();
        let Outcome::Answered {
            cost,
            input_tokens,
            output_tokens,
            ..
        } = outcome
        else {
            return self.call(
                model,
                if *outcome == Outcome::Unknown {
                    "unknown"
                } else {
                    "failed"
                },
            );
        };
        self.call(model, "answered");
        if question.is_free {
            return;
        }
        let model = self.label(model);
        for (kind, tokens) in [("input", input_tokens), ("output", output_tokens)] {
            let count = tokens
                .and_then(|count| u64::try_from(count).ok())
                .unwrap_or(0);
            self.tokens
                .get_or_create(&[("model", model.clone()), ("kind", kind.to_owned())])
                .inc_by(count);
        }
        let cost = cost.map_or(0.0, code_commit_fleet_store::Nanodollars::as_usd);
        self.cost
            .get_or_create(&[("model", model.clone())])
            .inc_by(cost);
        self.call_time
            .get_or_create(&[("model", model)])
            .observe(after.as_secs_f64());
    }

    /// An order was leased after this time.
    pub(crate) fn waited(&self, time: Duration) {
        self.wait_time.observe(time.as_secs_f64());
    }

    /// An order has ended with a verdict.
    pub(crate) fn run(&self, elapsed_ms: i64) {
        self.run_time
            .observe(Duration::from_millis(elapsed_ms.max(0).unsigned_abs()).as_secs_f64());
    }

    /// The database was asked for an order.
    pub(crate) fn looked(&self) {
        self.looks.inc();
    }

    /// In the text format of `OpenMetrics`; `waiting` is how many slots of workers have nothing to do.
    pub(crate) fn page(&self, snapshot: &Snapshot, waiting: usize) -> String {
        let mut page = String::new();
        // Nothing that is written to memory fails.
        let _ = encode_registry(&mut page, &self.registry);
        let _ = encode(&mut page, &of_database(snapshot, waiting));
        page
    }

    fn learn(&self, model: &str) {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() < MODELS {
            models.insert(model.to_owned());
        }
    }

    fn label(&self, model: &str) -> String {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.contains(model) { model } else { OTHER }.to_owned()
    }
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Made anew for each page, so that what the database forgets is not shown any more.
fn of_database(snapshot: &Snapshot, waiting: usize) -> Registry {
    let mut registry = Registry::default();
    let all = &mut registry;
    let mut whole = |name: &str, help: &str, value: i64| {
        add(all, name, help, Gauge::<i64>::default()).set(value);
    };
    let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
    whole(
        "fleet_waiting_slots",
        "Slots of workers that wait for an order at this gateway",
        waiting,
    );
    whole(
        "fleet_lost_leases",
        "Leases of known orders that lapsed or were given back",
        snapshot.lost,
    );
    whole(
        "fleet_open_calls",
        "Calls that money is reserved for",
        snapshot.open_calls,
    );
    let mut age = |name: &str, help: &str, seconds: f64| {
        add(all, name, help, Gauge::<f64, AtomicU64>::default()).set(seconds);
    };
    age(
        "fleet_oldest_queued_seconds",
        "Age of the oldest queued order",
        snapshot.oldest_queued_s,
    );
    age(
        "fleet_oldest_lease_seconds",
        "Age of the oldest lease",
        snapshot.oldest_lease_s,
    );
    let orders = Family::<Labels<1>, Gauge>::default();
    let orders = add(all, "fleet_orders", "Orders by state", orders);
    for state in State::ALL {
        let count = snapshot.orders.get(&state).copied().unwrap_or(0);
        orders
            .get_or_create(&[("state", state.word().to_owned())])
            .set(count);
    }
    let mut amounts = |name: &str, help: &str| add(all, name, help, Amounts::<1>::default());
    let cap = amounts(
        "fleet_budget_cap_dollars",
        "The most that a scope may spend",
    );
    let held = amounts(
        "fleet_budget_held_dollars",
        "Reserved by calls that are under way",
    );
    let spent = amounts(
        "fleet_budget_spent_dollars",
        "Paid, or unknown and counted in full",
    );
    for budget in &snapshot.budgets {
        let scope = [("scope", budget.scope.clone())];
        cap.get_or_create(&scope).set(budget.cap_usd);
        held.get_or_create(&scope).set(budget.held_usd);
        spent.get_or_create(&scope).set(budget.spent_usd);
    }
    registry
}
