//! Metrics.

use code_commit_fleet_store::{Outcome, Snapshot, State};
use metrics::{counter, gauge, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Counters since the gateway began, and the fleet as the database has it.
pub(crate) struct Seen {
    recorder: PrometheusRecorder,
    page: PrometheusHandle,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seen")
    }
}

impl Seen {
    pub(crate) fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        Self { page: recorder.handle(), recorder }
    }

    /// A request came too late: its lease was gone.
    pub(crate) fn fenced(&self, what: &'static str) {
        with_local_recorder(&self.recorder, || {
            counter!("fleet_fenced_total", "request" => what).increment(1);
        });
    }

    /// A request for a model was answered in this way.
    pub(crate) fn call(&self, model: &str, answer: &'static str) {
        let model = model.to_owned();
        with_local_recorder(&self.recorder, || {
            counter!("fleet_calls_total", "model" => model, "answer" => answer).increment(1);
        });
    }

    /// Tokens and cost of a call.
    pub(crate) fn paid(&self, model: &str, outcome: &Outcome) {
        let Outcome::Answered { cost, input_tokens, output_tokens, .. } = outcome else { return };
        let count = |count: &Option<i64>| count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let (model, cost) = (model.to_owned(), cost.map_or(0, |cost| cost.0));
        with_local_recorder(&self.recorder, || {
            for (kind, tokens) in [("input", input_tokens), ("output", output_tokens)] {
                counter!("fleet_tokens_total", "model" => model.clone(), "kind" => kind)
                    .increment(count(tokens));
            }
            counter!("fleet_nanodollars_total", "model" => model).increment(count(&Some(cost)));
        });
    }

    /// The database was asked for an order.
    pub(crate) fn looked(&self) {
        with_local_recorder(&self.recorder, || counter!("fleet_looks_total").increment(1));
    }

    /// In the text format of Prometheus; `waiting` is how many slots of workers have nothing to do.
    pub(crate) fn page(&self, snapshot: &Snapshot, waiting: usize) -> String {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2⁵² of each")]
        let number = |count: i64| count as f64;
        with_local_recorder(&self.recorder, || {
            for state in State::ALL {
                let orders = snapshot.orders.get(&state).copied().unwrap_or(0);
                gauge!("fleet_orders", "state" => state.word()).set(number(orders));
            }
            gauge!("fleet_waiting_slots").set(number(i64::try_from(waiting).unwrap_or(i64::MAX)));
            gauge!("fleet_lost").set(number(snapshot.lost));
            gauge!("fleet_open_calls").set(number(snapshot.open_calls));
            gauge!("fleet_oldest_queued_seconds").set(snapshot.oldest_queued_s);
            gauge!("fleet_oldest_lease_seconds").set(snapshot.oldest_lease_s);
            for budget in &snapshot.budgets {
                let amounts =
                    [("cap", budget.cap_usd), ("held", budget.held_usd), ("spent", budget.spent_usd)];
                for (kind, usd) in amounts {
                    gauge!("fleet_budget_usd", "scope" => budget.scope.clone(), "kind" => kind).set(usd);
                }
            }
        });
        self.page.render()
    }
}
