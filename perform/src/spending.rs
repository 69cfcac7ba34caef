//! What a run may spend and has spent: checked before a call is sent, not noticed afterwards.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use code_commit_llm::{
    Attempt, Budget, BudgetError, Day, Forecast, Model, ModelId, Money, Price, Prices, Request,
    Spend, Spent, Usage, Watch,
};

use code_commit_engine::{AtMost, Cause, Event};
use code_commit_runner::Cancel;
use code_commit_timeline::{Call, Remark, RunView, What};

/// The code of the warning that another model is asked for the same answer.
pub(crate) const OTHER_MODEL: &str = "other-model";
/// The code of the warning that the same answer is waited for.
pub(crate) const OUT_OF_QUOTA: &str = "out-of-quota";

/// The limits of a run, the prices, and the usage so far.
#[derive(Debug, Clone, Default)]
pub struct Spending {
    budget: Budget,
    prices: Prices,
    /// The date that selects the prices.
    today: Option<Day>,
    spent: Cell<Spent>,
    /// When this part of the run began; earlier time is in `spent`.
    since: Option<Instant>,
}

impl Spending {
    /// Nothing spent; starts the run's clock.
    pub fn new(budget: Budget, prices: Prices, today: Option<Day>) -> Self {
        Self {
            budget,
            prices,
            today,
            spent: Cell::default(),
            since: Some(now()),
        }
    }

    /// Counts the earlier usage of a resumed run, whose first model is `first`. A call without an answer counts as the
    /// most it can have used, plus the time of its attempts.
    pub fn count(&self, lines: &[Event], first: &ModelId) {
        let mut attempts = Attempts::default();
        // Another call is for the same answer: of another model, or after a wait.
        let mut goes_on = false;
        for step in RunView::untimed(lines).all {
            match &step.what {
                What::Call(call) => {
                    self.count_call(call, first, &mut attempts);
                    if call.answer.is_some() || !std::mem::take(&mut goes_on) {
                        // An answer includes all of its attempts, unless the run was killed in between.
                        self.take_time(call.elapsed_ms.max(std::mem::take(&mut attempts).took_ms));
                    }
                }
                What::Command(_) => self.take_time(step.elapsed_ms()),
                What::Remark(Remark {
                    warning: Some(warning),
                    ..
                }) => {
                    goes_on |= [OTHER_MODEL, OUT_OF_QUOTA].contains(&warning.code.as_str());
                }
                What::Change(_) | What::Remark(_) => {}
            }
        }
        self.take_time(attempts.took_ms);
    }

    fn count_call(&self, call: &Call, first: &ModelId, attempts: &mut Attempts) {
        let model = call
            .asked_model
            .as_ref()
            .and_then(|model| model.parse().ok());
        let (model, forecast) = (model.as_ref().unwrap_or(first), forecast(call.at_most));
        for attempt in &call.attempts {
            attempts.add(attempt);
            self.add(attempt, &forecast, model);
        }
        if call.is_in_flight() {
            self.add(
                &Attempt {
                    spend: Spend::Unknown,
                    ..Attempt::default()
                },
                &forecast,
                model,
            );
        }
    }

    /// The usage so far.
    pub fn spent(&self) -> Spent {
        let mut spent = self.spent.get();
        spent.time += self.since.map(|since| since.elapsed()).unwrap_or_default();
        spent
    }

    /// What the run has cost so far, a call without an answer as the most that it can have cost; `None` as long as
    /// nothing was paid for, and if the price of any call is unknown.
    pub(crate) fn known_cost_usd(&self) -> Option<f64> {
        let Spent { cost, unpriced, .. } = self.spent.get();
        (unpriced == 0 && cost > Money::ZERO).then(|| cost.as_usd())
    }

    /// Whether the cost limit can be enforced for this model. It cannot if the price is unknown, which is not
    /// zero.
    pub fn keeps_cost(&self, model: &ModelId) -> Result<(), BudgetError> {
        match self.budget_for(model).max_cost {
            Some(limit) if self.price(model, None).is_none() => {
                Err(BudgetError::Unpriced { limit })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether `request` may be sent. If so, limits it to what is left and gives the most that it can use. If
    /// the prompt has too many bytes to be sure, asks the service for its number of tokens.
    pub(crate) fn allow(
        &self,
        model: &dyn Model,
        request: &mut Request<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Forecast, BudgetError> {
        let price = self.price(model.id(), None);
        let budget = self.budget_for(model.id());
        let mut forecast = Forecast::of(request, None, price);
        let mut allowed = budget.allow(&self.spent(), &forecast, price);
        if matches!(
            allowed,
            Err(BudgetError::Tokens { .. } | BudgetError::Cost { .. })
        ) && let Ok(Some(counted)) = model.count_tokens(request, watch)
        {
            forecast = Forecast::of(request, Some(counted), price);
            allowed = budget.allow(&self.spent(), &forecast, price);
        }
        let allowance = allowed?;
        request.max_output_tokens = request.max_output_tokens.or(allowance.max_output_tokens);
        request.time_left = [request.time_left, allowance.time_left]
            .into_iter()
            .flatten()
            .min();
        // The output may be limited now, so that its price is known: a call that is lost counts with it.
        Ok(Forecast::of(request, Some(forecast.input_tokens), price))
    }

    /// What is left of the run's wall time, if it is limited.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.budget
            .time_left(&self.spent())
            .unwrap_or(Some(Duration::ZERO))
    }

    /// The time limit, once reached: distinguishes a call ended by it from one that timed out itself.
    pub(crate) fn out_of_time(&self) -> Option<BudgetError> {
        self.budget.time_left(&self.spent()).err()
    }

    /// Ends long work on files when the time of the run is over, or after Ctrl-C.
    pub(crate) fn interrupt<'s>(&'s self, cancel: &'s Cancel) -> impl Fn() -> io::Result<()> + 's {
        move || {
            if cancel.is_set() || self.out_of_time().is_some() {
                return Err(io::Error::other("there is no time left"));
            }
            Ok(())
        }
    }

    fn add(&self, attempt: &Attempt, forecast: &Forecast, model: &ModelId) {
        let mut spent = self.spent.get();
        spent.add(
            attempt,
            forecast,
            self.price(model, attempt.served_model.as_deref()),
        );
        self.spent.set(spent);
    }

    /// The cost of an answer in US dollars; `None` if the price is unknown. Uses the model that actually
    /// answered.
    pub(crate) fn cost_usd(
        &self,
        model: &ModelId,
        served: Option<&str>,
        usage: &Usage,
    ) -> Option<f64> {
        Some(self.price(model, served)?.cost(usage)?.as_usd())
    }

    fn take_time(&self, elapsed_ms: u64) {
        let mut spent = self.spent.get();
        spent.time += Duration::from_millis(elapsed_ms);
        self.spent.set(spent);
    }

    fn price(&self, asked: &ModelId, served: Option<&str>) -> Option<&Price> {
        self.prices.of(asked, served, self.today?)
    }

    /// Replies from a file cost nothing, whatever the name of the model.
    fn budget_for(&self, model: &ModelId) -> Budget {
        if model.is_file() {
            Budget {
                max_cost: None,
                ..self.budget
            }
        } else {
            self.budget
        }
    }
}

/// The most that an attempt can use, as the record has it. Replies from a file cost nothing.
pub(crate) fn at_most(forecast: &Forecast, model: &ModelId) -> AtMost {
    let cost = if model.is_file() {
        Some(Money::ZERO)
    } else {
        forecast.cost
    };
    AtMost {
        tokens: forecast.tokens(),
        cost_usd: cost.map(Money::as_usd),
    }
}

fn forecast(at_most: Option<AtMost>) -> Forecast {
    let AtMost { tokens, cost_usd } = at_most.unwrap_or_default();
    let cost = cost_usd.and_then(|usd| Money::from_usd(usd).ok());
    Forecast {
        input_tokens: tokens,
        output_tokens: None,
        cost,
    }
}

/// Time spent on the attempts of a call whose answer is not on record.
#[derive(Default)]
struct Attempts {
    took_ms: u64,
    /// The wait after the last attempt. It may have been cut short, so it counts only once another attempt
    /// follows.
    wait_ms: u64,
}

impl Attempts {
    fn add(&mut self, attempt: &Attempt) {
        let took_ms = self.wait_ms.saturating_add(attempt.duration_ms);
        self.took_ms = self.took_ms.saturating_add(took_ms);
        self.wait_ms = attempt.wait_ms.unwrap_or(0);
    }
}

pub(crate) struct CallSpending<'p> {
    pub(crate) spending: &'p Spending,
    pub(crate) forecast: Forecast,
    pub(crate) model: &'p ModelId,
}

impl CallSpending<'_> {
    /// Whether it may be retried after a failed attempt that is not counted yet.
    pub(crate) fn allows_another(&self, attempt: &Attempt) -> bool {
        let Self {
            spending,
            forecast,
            model,
        } = self;
        let mut spent = spending.spent();
        spent.add(
            attempt,
            forecast,
            spending.price(model, attempt.served_model.as_deref()),
        );
        spending
            .budget_for(model)
            .allow(&spent, forecast, spending.price(model, None))
            .is_ok()
    }

    pub(crate) fn add(&self, attempt: &Attempt) {
        self.spending.add(attempt, &self.forecast, self.model);
    }
}

/// Why the model may not be called, or no longer: `limit-cost` and the like.
pub(crate) fn cause(error: &BudgetError) -> Cause {
    let flag = error.limit().flag();
    let remedy = if matches!(error, BudgetError::Unpriced { .. }) {
        format!(
            "put its price into [[price]] of the configuration, or drop {flag}, and begin a new run"
        )
    } else {
        format!("raise {flag} if it is worth that")
    };
    let code = error.limit().code().to_owned();
    Cause {
        code,
        message: error.to_string(),
        remedy: Some(remedy),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the driver measures how long a call takes"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
