//! Waiting until a service that is out of quota answers again.

use std::time::{Duration, Instant};

use code_commit_engine::{Cause, Problem};
use code_commit_llm::{BudgetError, CallError, Limit};
use code_commit_logging::Stamp;
use code_commit_runner::Cancel;

use crate::Progress;
use crate::fault::Fault;
use crate::record::Record;
use crate::spending::{OUT_OF_QUOTA, now};

/// Why a model gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It was not asked.
    #[error(transparent)]
    OverLimit(BudgetError),
    #[error(transparent)]
    Failed(CallError),
}

impl NoAnswer {
    /// Whether another model may answer. A cheaper one may fit into a limit that this one would exceed.
    pub(super) fn asks_for_another_model(&self) -> bool {
        match self {
            Self::OverLimit(limit) => matches!(limit.limit(), Limit::Cost | Limit::Tokens),
            Self::Failed(error) => error.asks_for_another_model(),
        }
    }
}

/// The services of one round that are out of quota.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    first: Option<Reset>,
}

/// When the first of them answers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reset {
    at: Instant,
    /// Whether the service named the time.
    is_named: bool,
}

impl Quotas {
    pub(super) fn learn(&mut self, no_answer: &NoAnswer) {
        let NoAnswer::Failed(error) = no_answer else {
            return;
        };
        let at = error
            .out_of_quota_for()
            .and_then(|wait| now().checked_add(wait));
        let reset = at.map(|at| Reset {
            at,
            is_named: error.retry_after().is_some(),
        });
        self.first = [self.first, reset].into_iter().flatten().min();
    }

    pub(super) fn first_reset(&self) -> Option<Reset> {
        self.first
    }
}

/// How long a call may still wait. It counts from the first time that all services are out of quota.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    since: Option<Instant>,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, since: None }
    }

    /// Whether it lasts until then; nor may the run's own time be over before.
    pub(super) fn lasts(&mut self, reset: &Reset, time_left: Option<Duration>) -> bool {
        let since = *self.since.get_or_insert_with(now);
        reset.at.saturating_duration_since(since) <= self.limit
            && time_left.is_none_or(|left| reset.left() < left)
    }
}

impl Reset {
    fn left(&self) -> Duration {
        self.at.saturating_duration_since(now())
    }

    /// `2026-11-21 09:30:00 UTC`
    fn time(&self) -> Option<String> {
        Stamp::now().after(self.left()).map(Stamp::words)
    }

    /// The cause of a run that ends instead of waiting, with the time at which to come again.
    pub(super) fn told_in(&self, cause: Cause) -> Cause {
        let Some(time) = self.time().filter(|_| self.is_named) else {
            return cause;
        };
        let wait = flag_value(self.left());
        Cause {
            remedy: Some(format!(
                "try again at {time}, or let the run wait with --wait {wait}"
            )),
            ..cause
        }
    }

    /// Waits, and shows for how long.
    pub(super) fn wait(
        &self,
        round: u32,
        cause: &Cause,
        cancel: &Cancel,
        record: &mut Record,
    ) -> Result<(), Fault> {
        let time = self.time().unwrap_or_default();
        let message = format!("{}; waiting until {time}", cause.message);
        record.warn(Problem::new(OUT_OF_QUOTA, message))?;
        loop {
            let left = self.left();
            if left.is_zero() {
                return Ok(());
            }
            record.tell(&Progress::CountingDown { round, left });
            if cancel.wait(left.min(Duration::from_secs(1))) {
                return Err(Fault::Interrupted);
            }
        }
    }
}

/// As the flag takes it, a minute longer than needed: `2h5m`.
pub(crate) fn flag_value(wait: Duration) -> String {
    let minutes = wait.as_secs() / 60 + 2;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_is_proposed_lasts_for_the_wait() {
        for (seconds, value) in [
            (1, "2m"),
            (121, "4m"),
            (3479, "59m"),
            (3500, "1h"),
            (9 * 3600, "9h2m"),
        ] {
            assert_eq!(
                flag_value(Duration::from_secs(seconds)),
                value,
                "{seconds} s"
            );
        }
    }

    #[test]
    fn patience_counts_from_the_first_wait_and_ends_with_the_run() {
        let reset = |seconds| Reset {
            at: now() + Duration::from_secs(seconds),
            is_named: true,
        };
        let mut patience = Patience::new(Duration::from_hours(1));
        assert!(patience.lasts(&reset(3000), None));
        assert!(
            !patience.lasts(&reset(3700), None),
            "it does not begin anew"
        );
        assert!(!patience.lasts(&reset(3000), Some(Duration::from_mins(5))));
        assert!(!Patience::new(Duration::ZERO).lasts(&reset(1), None));
    }
}
