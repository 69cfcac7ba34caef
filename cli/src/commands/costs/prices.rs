//! What a call costs where its record does not say.

use engine::Usage;
use llm::{Day, Money, Prices};
use perform::client_usage;
use runs::model::today;
use settings::Settings;

/// The prices of today: those of the configuration, then the built-in list.
pub struct Today {
    prices: Prices,
    day: Option<Day>,
}

impl Today {
    /// As these settings have them.
    pub fn of(settings: &Settings) -> Self {
        Self { prices: settings.prices(), day: today() }
    }

    /// US dollars; none where no price is known.
    pub fn cost(&self, model: &str, usage: Usage) -> Option<f64> {
        self.prices.of(model, self.day.as_ref()?)?.cost(&client_usage(usage)).map(Money::as_usd)
    }
}
