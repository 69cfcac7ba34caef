//! The model that a run uses: how it is called, and what it may cost.

use std::time::Duration;

use code_commit_llm::Day;
use code_commit_llm::http::BaseUrl;
use code_commit_logging::Stamp;
use code_commit_perform::{Asking, Spending};
use code_commit_report::Output;
use code_commit_settings::Settings;

/// Anyone on the network path could read the key and the code, and answer in the service's place.
pub fn warn_in_the_clear(base: &BaseUrl, output: &Output) {
    if base.is_in_the_clear() {
        output.warn(&format!(
            "{} is not encrypted: the key and the code travel in the clear, and anybody on the way can change the reply; use \
             https, or a tunnel that ends on this machine",
            base.join("")
        ));
    }
}

pub(crate) fn asking(settings: &Settings) -> Asking {
    Asking {
        stream: settings.stream(),
        temperature: settings.model.temperature.map(f64::from),
        call_limit: settings.patience().call,
        wait: settings.model.wait.map(Duration::from).unwrap_or_default(),
        spending: spending(settings),
    }
}

/// The spending limits of a run; starts its clock.
pub(crate) fn spending(settings: &Settings) -> Spending {
    Spending::new(settings.budget(), settings.prices(), today())
}

/// The date that selects the prices (UTC); `None` if the clock is off by thousands of years.
pub fn today() -> Option<Day> {
    let now = Stamp::now().rfc3339();
    now.split_once('T')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_is_a_day_of_this_decade() {
        assert!(today() > "2024-12-31".parse().ok());
    }
}
