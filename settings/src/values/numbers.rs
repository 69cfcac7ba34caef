//! Numbers with bounds.

use std::borrow::Cow;

use code_commit_llm::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use crate::slot::in_force;

/// A value that is a number, its JSON schema, and how to parse it: from the number in a file, or
/// from the argument of a flag.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty), $number:ty, $wire:literal, $read:expr, $no:literal, $schema:tt) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
        #[serde(try_from = $wire)]
        pub struct $name(pub $inner);

        impl TryFrom<$number> for $name {
            type Error = String;

            fn try_from(number: $number) -> Result<Self, String> {
                $read(number).map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::try_from(number::<$number>(text).ok_or_else(|| format!($no, text = text))?)
            }
        }

        shaped!($name, $schema);
    };
}

number! {
    /// How many there may be, at least one: no limit is written by leaving the key out.
    Count(u64), u64, "u64", count, "`{text}` is not a whole number", { "type": "integer", "minimum": 1 }
}
number! {
    /// US dollars, more than none.
    Dollars(Money), f64, "f64", dollars, "`{text}` is no amount of US dollars, such as 0.50",
    { "type": "number", "exclusiveMinimum": 0 }
}
number! {
    /// Between 0 and 2, as the services have it; zero has no sign.
    Temperature(f64), f64, "f64", temperature, "`{text}` is no number", { "type": "number", "minimum": 0, "maximum": 2 }
}

in_force!(Count as u64, |it| it.0, |count| json!(count));
in_force!(Dollars as Money, |it| it.0, |money| json!(money.as_usd()));
in_force!(Temperature as f64, |it| it.0, |value| json!(value));

/// A number as a person writes it: Rust's parsers also take a plus sign.
pub(super) fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// The error for every limit of zero.
const NOTHING: &str = "0 would allow nothing; for no limit leave it out";

fn count(count: u64) -> Result<u64, String> {
    if count == 0 {
        Err(NOTHING.to_owned())
    } else {
        Ok(count)
    }
}

fn dollars(usd: f64) -> Result<Money, String> {
    let money = Money::from_usd(usd).map_err(|error| format!("{usd} is {error} in US dollars"))?;
    if money == Money::ZERO {
        Err(NOTHING.to_owned())
    } else {
        Ok(money)
    }
}

fn temperature(value: f64) -> Result<f64, String> {
    let is_one = (0.0..=2.0).contains(&value);
    // Adding zero turns negative zero into zero.
    is_one
        .then_some(value + 0.0)
        .ok_or_else(|| format!("{value} is not between 0 and 2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temperature_is_a_number_from_0_to_2_and_zero_has_no_sign() {
        let temperature = |text: &str| text.parse::<Temperature>().map(|read| read.0);
        assert_eq!(temperature("0.7"), Ok(0.7));
        assert_eq!(
            temperature("-0").map(|zero| zero.to_string()),
            Ok("0".to_owned())
        );
        for bad in ["-0.1", "2.1", "nan", "inf", "x"] {
            assert!(temperature(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert_eq!("0".parse::<Count>(), Err(NOTHING.to_owned()));
        assert!("+5".parse::<Count>().is_err() && "+0.5".parse::<Dollars>().is_err());
        assert_eq!("0".parse::<Dollars>(), Err(NOTHING.to_owned()));
        for bad in ["-1", "NaN", "inf", "x"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }
}
