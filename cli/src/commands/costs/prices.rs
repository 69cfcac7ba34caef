//! The price of a call whose record does not state it.

use code_commit_engine::Usage;
use code_commit_llm::{Day, Money, Prices};
use code_commit_perform::client_usage;
use code_commit_runs::model::today;
use code_commit_settings::Settings;

/// Today's prices: those of the configuration, then the built-in list.
pub struct Today {
    prices: Prices,
    day: Option<Day>,
}

impl Today {
    pub fn of(settings: &Settings) -> Self {
        Self { prices: settings.prices(), day: today() }
    }

    /// US dollars; `None` if no price is known.
    pub fn cost(&self, model: &str, usage: Usage) -> Option<f64> {
        self.prices.of_name(model, self.day.as_ref()?)?.cost(&client_usage(usage)).map(Money::as_usd)
    }
}
