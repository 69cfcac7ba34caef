//! Limits that a run may not exceed: checked before a call is sent, not noticed afterwards.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::price::{Money, Price};
use crate::{Attempt, Request, Spend};

/// The limits. `None` means no limit; zero allows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Attempts that were, or may have been, paid for.
    pub max_calls: Option<u64>,
    /// Input and output together.
    pub max_tokens: Option<u64>,
    /// In US dollars.
    pub max_cost: Option<Money>,
    /// Wall time of the run.
    pub max_time: Option<Duration>,
}

/// What a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Attempts that were, or may have been, paid for.
    pub calls: u64,
    /// Input and output together. An attempt without a usage report counts as the most that it can
    /// have used.
    pub tokens: u64,
    /// Likewise, in money.
    pub cost: Money,
    /// Calls with an unknown price; they are not part of `cost`.
    pub unpriced: u64,
    /// Since the run began.
    pub time: Duration,
}

/// The most that one call can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Tokens of input.
    pub input_tokens: u64,
    /// Tokens of output; `None` if neither the request nor the price table limits them.
    pub output_tokens: Option<u64>,
    /// The cost of both; `None` without a price or a limit.
    pub cost: Option<Money>,
}

/// What a call may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// For [`Request::max_output_tokens`]: set if a limit of the run depends on it.
    pub max_output_tokens: Option<u64>,
    /// For [`Request::time_left`].
    pub time_left: Option<Duration>,
}

/// Which limit the next call could exceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum BudgetError {
    /// The maximum number of calls is reached.
    #[error("the limit of {limit} {} is reached", if *limit == 1 { "call" } else { "calls" })]
    Calls { limit: u64 },
    /// Too few tokens are left.
    #[error("used {spent} of {limit} tokens, and the next call may need {need}")]
    Tokens { limit: u64, spent: u64, need: u64 },
    /// Too little money is left.
    #[error("spent {spent} of {limit}, and the next call may cost {need}")]
    Cost {
        limit: Money,
        spent: Money,
        need: Money,
    },
    /// A limit on money cannot be enforced if the price is unknown.
    #[error("the price of this model is unknown, so the limit of {limit} cannot be enforced")]
    Unpriced { limit: Money },
    /// The time is over.
    #[error("the run has reached its limit of {} s", .limit.as_secs())]
    Time { limit: Duration },
}

impl BudgetError {
    /// Which limit it is.
    pub fn limit(&self) -> Limit {
        match self {
            Self::Calls { .. } => Limit::Calls,
            Self::Tokens { .. } => Limit::Tokens,
            Self::Cost { .. } | Self::Unpriced { .. } => Limit::Cost,
            Self::Time { .. } => Limit::Time,
        }
    }
}

/// Which of the limits. Agents have limits with the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of the budget")]
pub enum Limit {
    Calls,
    Tokens,
    Cost,
    Time,
}

impl Limit {
    /// In the order of the reference.
    pub const ALL: [Self; 4] = [Self::Calls, Self::Tokens, Self::Cost, Self::Time];

    /// The error code of a run that ended at it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Calls => "limit-calls",
            Self::Tokens => "limit-tokens",
            Self::Cost => "limit-cost",
            Self::Time => "limit-time",
        }
    }

    /// The flag that sets it.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Calls => "--max-calls",
            Self::Tokens => "--max-tokens",
            Self::Cost => "--max-cost",
            Self::Time => "--max-time",
        }
    }
}

impl Forecast {
    /// Estimates the input with the tokens that the service counted or, if it did not, with one
    /// token per byte: no tokenizer produces more.
    pub fn of(request: &Request<'_>, counted: Option<u64>, price: Option<&Price>) -> Self {
        let input_tokens = counted.unwrap_or_else(|| bytes_of(request));
        let output_tokens = request.max_output_tokens.or_else(|| price?.max_output);
        let cost = price.zip(output_tokens).map(|(price, output)| {
            let mut cost = price.input_at_most(input_tokens);
            cost += price.output_at_most(output, input_tokens);
            cost
        });
        Self {
            input_tokens,
            output_tokens,
            cost,
        }
    }

    /// Tokens of both; of the input alone where nothing limits the output.
    pub fn tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens.unwrap_or(0))
    }
}

/// The size of the prompt, including what the service adds to it.
fn bytes_of(request: &Request<'_>) -> u64 {
    const ENVELOPE: usize = 64;
    let schema = request.schema.map_or(0, |schema| schema.to_string().len());
    (request.prompt.len() + request.system.map_or(0, str::len) + schema + ENVELOPE) as u64
}

impl Spent {
    /// Adds the usage of an attempt: what it reported or, if it reported nothing, the most it can
    /// have used.
    pub fn add(&mut self, attempt: &Attempt, forecast: &Forecast, price: Option<&Price>) {
        let (tokens, cost) = match attempt.spend {
            Spend::Nothing => return,
            Spend::Usage => (
                attempt.usage.total(),
                price.and_then(|p| p.cost(&attempt.usage)),
            ),
            Spend::Unknown => (None, None),
        };
        self.calls += 1;
        self.tokens = self
            .tokens
            .saturating_add(tokens.unwrap_or_else(|| forecast.tokens()));
        match cost.or(forecast.cost.filter(|_| price.is_some())) {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }
}

impl Budget {
    /// Checks whether a call that uses at most `forecast` is allowed. If nothing else limits its
    /// output, the rest of the limit does.
    pub fn allow(
        &self,
        spent: &Spent,
        forecast: &Forecast,
        price: Option<&Price>,
    ) -> Result<Allowance, BudgetError> {
        self.allow_call(spent)?;
        let by_tokens = self.output_by_tokens(spent, forecast)?;
        let by_cost = self.output_by_cost(spent, forecast, price)?;
        let bounds = [by_tokens, by_cost];
        Ok(Allowance {
            max_output_tokens: if forecast.output_tokens.is_some() {
                None
            } else {
                bounds.into_iter().flatten().min()
            },
            time_left: self.time_left(spent)?,
        })
    }

    fn allow_call(&self, spent: &Spent) -> Result<(), BudgetError> {
        match self.max_calls {
            Some(limit) if spent.calls >= limit => Err(BudgetError::Calls { limit }),
            _ => Ok(()),
        }
    }

    fn output_by_tokens(
        &self,
        spent: &Spent,
        forecast: &Forecast,
    ) -> Result<Option<u64>, BudgetError> {
        let Some(limit) = self.max_tokens else {
            return Ok(None);
        };
        let need = forecast
            .input_tokens
            .saturating_add(forecast.output_tokens.unwrap_or(1));
        let left = limit.saturating_sub(spent.tokens);
        if need > left {
            return Err(BudgetError::Tokens {
                limit,
                spent: spent.tokens,
                need,
            });
        }
        Ok(Some(left - forecast.input_tokens))
    }

    fn output_by_cost(
        &self,
        spent: &Spent,
        forecast: &Forecast,
        price: Option<&Price>,
    ) -> Result<Option<u64>, BudgetError> {
        let Some(limit) = self.max_cost else {
            return Ok(None);
        };
        let price = price
            .filter(|_| spent.unpriced == 0)
            .ok_or(BudgetError::Unpriced { limit })?;
        let left = limit.less(spent.cost);
        let input = price.input_at_most(forecast.input_tokens);
        let need = forecast.cost.unwrap_or_else(|| {
            let mut least = input;
            least += price.output_at_most(1, forecast.input_tokens);
            least
        });
        if need > left || (left == Money::ZERO && limit == Money::ZERO) {
            return Err(BudgetError::Cost {
                limit,
                spent: spent.cost,
                need,
            });
        }
        Ok(Some(
            left.less(input)
                .buys(price.output_after(forecast.input_tokens)),
        ))
    }

    /// What is left of the run's wall time; an error if nothing is left.
    pub fn time_left(&self, spent: &Spent) -> Result<Option<Duration>, BudgetError> {
        let Some(limit) = self.max_time else {
            return Ok(None);
        };
        let left = limit.saturating_sub(spent.time);
        if left.is_zero() {
            Err(BudgetError::Time { limit })
        } else {
            Ok(Some(left))
        }
    }
}

#[cfg(test)]
mod tests;
