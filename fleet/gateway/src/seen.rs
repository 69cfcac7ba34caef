//! What monitors see.

use metrics::{counter, gauge, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use store::{Snapshot, State};

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

    /// In the text format of Prometheus.
    pub(crate) fn page(&self, snapshot: &Snapshot) -> String {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2⁵² of each")]
        let number = |count: i64| count as f64;
        with_local_recorder(&self.recorder, || {
            for state in State::ALL {
                let orders = snapshot.orders.get(&state).copied().unwrap_or(0);
                gauge!("fleet_orders", "state" => state.word()).set(number(orders));
            }
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
