//! What tokens cost: a dated table that the configuration can override.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::LazyLock;

pub use jiff::civil::Date as Day;
use serde::{Deserialize, Serialize};

use crate::{ModelId, Provider, Tier, Usage};

const BUILT_IN: &str = include_str!("../data/prices.toml");
const WINDOWS: &str = include_str!("../data/windows.toml");

/// The window of a model that nobody knows, in tokens: nearly all models of today have at least this.
const USUAL_WINDOW: u64 = 128_000;

/// Tokens that a price is for.
const PER: u128 = 1_000_000;
/// Micro-micro-dollars in a dollar.
const PICO: f64 = 1e12;

/// An amount of money in US dollars, exact to 10⁻¹² of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Money(u64);

/// Not a valid amount: negative, not a number, or too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an amount of money")]
#[non_exhaustive]
pub struct MoneyError;

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// From dollars.
    pub fn from_usd(usd: f64) -> Result<Self, MoneyError> {
        const MOST: f64 = 1e6;
        if !(0.0..=MOST).contains(&usd) {
            return Err(MoneyError);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 10¹⁸"
        )]
        Ok(Self((usd * PICO).round() as u64))
    }

    /// In dollars.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact enough for any sum that is shown"
    )]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / PICO
    }

    /// The price of this many tokens, where `self` is the price of a million; rounded up.
    fn times(self, tokens: u64) -> Self {
        let sum = (u128::from(self.0) * u128::from(tokens)).div_ceil(PER);
        Self(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    /// How many tokens it buys at `price` a million.
    pub(crate) fn buys(self, price: Self) -> u64 {
        let tokens = (u128::from(self.0) * PER).checked_div(u128::from(price.0));
        tokens
            .and_then(|t| u64::try_from(t).ok())
            .unwrap_or(u64::MAX)
    }

    /// What is left after `spent`.
    #[must_use]
    pub fn less(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, more: Self) {
        self.0 = self.0.saturating_add(more.0);
    }
}

impl fmt::Display for Money {
    /// Two digits for cents and more; for less, as many digits as needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.as_usd();
        match usd {
            0.0 => f.write_str("$0.00"),
            _ if usd >= 0.1 => write!(f, "${usd:.2}"),
            _ if usd >= 0.0001 => write!(f, "${usd:.4}"),
            _ => write!(f, "${usd:.8}"),
        }
    }
}

impl TryFrom<f64> for Money {
    type Error = MoneyError;

    fn try_from(usd: f64) -> Result<Self, MoneyError> {
        Self::from_usd(usd)
    }
}

impl From<Money> for f64 {
    fn from(money: Money) -> Self {
        money.as_usd()
    }
}

/// Prices of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The model's name without its version.
    pub prefix: String,
    /// The last day on which this price is valid.
    pub until: Option<Day>,
    /// A million tokens of input.
    pub input: Money,
    /// A million tokens of cached input; if missing, the price of input.
    pub cached: Option<Money>,
    /// A million tokens written to a cache; if missing, the price of input.
    pub cache_write: Option<Money>,
    /// A million tokens of output.
    pub output: Money,
    /// How many times all of it a call of the priority tier costs; if missing, its price is unknown.
    pub priority: Option<f64>,
    /// The maximum number of tokens of one reply.
    pub max_output: Option<u64>,
    /// The maximum number of tokens of one prompt.
    pub window: Option<u64>,
    /// Other prices for long prompts.
    pub long: Option<LongPrice>,
}

/// Prices of the whole call once its input is long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// The largest number of input tokens for which the other prices hold.
    pub above: u64,
    /// A million tokens of input.
    pub input: Money,
    /// A million tokens of cached input.
    pub cached: Option<Money>,
    /// A million tokens written to a cache.
    pub cache_write: Option<Money>,
    /// A million tokens of output.
    pub output: Money,
}

/// Input, cached, cache write and output, for calls of one size.
struct Rates {
    input: Money,
    cached: Money,
    cache_write: Money,
    output: Money,
}

impl Price {
    fn rates(&self, input_tokens: u64) -> Rates {
        let (input, cached, cache_write, output) = match self.long {
            Some(long) if input_tokens > long.above => {
                (long.input, long.cached, long.cache_write, long.output)
            }
            _ => (self.input, self.cached, self.cache_write, self.output),
        };
        let or_input = |price: Option<Money>| price.unwrap_or(input);
        Rates {
            input,
            cached: or_input(cached),
            cache_write: or_input(cache_write),
            output,
        }
    }

    /// The cost of the usage; `None` if a count is missing.
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let rates = self.rates(input);
        let read = usage.cache_read_tokens.unwrap_or(0).min(input);
        let written = usage.cache_write_tokens.unwrap_or(0).min(input - read);
        let mut cost = rates.input.times(input - read - written);
        cost += rates.cached.times(read);
        cost += rates.cache_write.times(written);
        cost += rates.output.times(output);
        match usage.tier {
            None => Some(cost),
            // Every service halves its prices for both.
            Some(Tier::Flex | Tier::Batch) => Some(Money(cost.0.div_ceil(2))),
            Some(Tier::Priority) => Money::from_usd(cost.as_usd() * self.priority?).ok(),
        }
    }

    /// The most that this many input tokens can cost, cached or not.
    pub(crate) fn input_at_most(&self, tokens: u64) -> Money {
        let rates = self.rates(tokens);
        rates
            .input
            .max(rates.cache_write)
            .max(rates.cached)
            .times(tokens)
    }

    /// The price of a million tokens of output after this many tokens of input.
    pub(crate) fn output_after(&self, input_tokens: u64) -> Money {
        self.rates(input_tokens).output
    }

    /// The most that this many output tokens can cost after this many input tokens.
    pub(crate) fn output_at_most(&self, tokens: u64, input_tokens: u64) -> Money {
        self.output_after(input_tokens).times(tokens)
    }
}

/// All prices.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// When they were looked up.
    pub date: Option<Day>,
    /// The first match counts.
    #[serde(rename = "model")]
    models: Vec<Price>,
    /// The user's own, which override all others.
    #[serde(skip)]
    own: Vec<Price>,
    #[serde(skip)]
    by_provider: BTreeMap<String, Vec<Price>>,
}

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the price table cannot be read")]
#[non_exhaustive]
pub struct PricesError(#[from] toml::de::Error);

impl Prices {
    /// The table that this version was built with.
    pub fn built_in() -> Self {
        // A test parses the table, so the default is never used in practice.
        static TABLE: LazyLock<Prices> =
            LazyLock::new(|| Prices::parse(BUILT_IN).unwrap_or_default());
        TABLE.clone()
    }

    /// Reads a table.
    pub fn parse(text: &str) -> Result<Self, PricesError> {
        Ok(toml::from_str(text)?)
    }

    /// Overrides the table with the user's own prices.
    #[must_use]
    pub fn behind(self, own: Vec<Price>) -> Self {
        Self { own, ..self }
    }

    /// Adds the prices of another provider. A server that is not built in may ask
    /// for another price than the service whose model it serves, or for none.
    #[must_use]
    pub fn and_of(mut self, provider: &Provider) -> Self {
        if let Some(prices) = &provider.prices {
            self.by_provider
                .insert(provider.name.clone(), prices.clone());
        }
        self
    }

    /// The price of a model on a given day; `None` means unknown, never free. `served` is the model that
    /// answered, if that is known.
    pub fn of(&self, asked: &ModelId, served: Option<&str>, day: Day) -> Option<&Price> {
        let of_provider = self
            .by_provider
            .get(asked.provider())
            .unwrap_or(&self.models);
        self.find(served.unwrap_or(asked.name()), of_provider, day)
    }

    /// The price of a model of which only the name is known, as agents report it.
    pub fn of_name(&self, model: &str, day: Day) -> Option<&Price> {
        self.find(model, &self.models, day)
    }

    fn find<'p>(&'p self, model: &str, of_provider: &'p [Price], day: Day) -> Option<&'p Price> {
        let holds = |price: &&Price| price.until.is_none_or(|until| day <= until);
        let model = model.strip_prefix("models/").unwrap_or(model);
        let all = self.own.iter().chain(of_provider);
        all.filter(holds)
            .find(|price| is_version_of(model, &price.prefix))
    }
}

/// The most tokens that one prompt of a model can hold, by its name alone. A server of many makers' models puts the maker before it.
pub fn window_of(model: &str) -> u64 {
    let name = model.rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    windows()
        .filter(|(begins, _)| name.starts_with(begins))
        .max_by_key(|(begins, _)| begins.len())
        .map_or(USUAL_WINDOW, |(_, window)| window)
}

/// How the names of models begin, and their windows. The table is TOML in its simplest form, a key and a number on each line:
/// every run reads it, and a TOML parser would take most of the time of an estimate.
fn windows() -> impl Iterator<Item = (&'static str, u64)> {
    WINDOWS.lines().filter_map(|line| {
        let (begins, window) = line.strip_prefix('"')?.split_once("\" = ")?;
        Some((begins, window.parse().ok()?))
    })
}

/// Whether `name` is `prefix`, possibly with a version: `gemini-3.8-flash-001` is,
/// `gemini-3.8-flash-lite` is not. A single digit is part of the name: `claude-opus-5-5` is not a
/// `claude-opus-5`.
fn is_version_of(name: &str, prefix: &str) -> bool {
    let is_version = |part: &str| {
        matches!(part, "preview" | "latest" | "exp")
            || (part.len() > 1 && part.bytes().all(|b| b.is_ascii_digit()))
    };
    match name.strip_prefix(prefix) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('-')
            .is_some_and(|version| version.split('-').all(is_version)),
        None => false,
    }
}

#[cfg(test)]
mod tests;
