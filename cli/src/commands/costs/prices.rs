//! The price of a call whose record does not state it.

use engine::Usage;
use llm::{Day, Money, Prices};
use perform::client_usage;
use runs::model::today;
use settings::Settings;

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
