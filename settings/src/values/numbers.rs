//! Numbers with bounds.

use std::borrow::Cow;

use llm::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Bases;
use crate::slot::Written;

/// How many there may be, at least one: no limit is written by leaving the key out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Count(pub u64);

shaped!(Count, { "type": "integer", "minimum": 1 });
in_force!(Count, u64, |count| json!(count));

/// US dollars, more than none.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dollars(pub Money);

shaped!(Dollars, { "type": "number", "exclusiveMinimum": 0 });
in_force!(Dollars, Money, |money| json!(money.as_usd()));

/// Between 0 and 2, as the services have it; zero has no sign.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Temperature(pub f64);

shaped!(Temperature, { "type": "number", "minimum": 0, "maximum": 2 });
in_force!(Temperature, f64, |value| json!(value));

/// Said of every limit of zero.
const NOTHING: &str = "0 would allow nothing; for no limit leave it out";

impl TryFrom<u64> for Count {
    type Error = &'static str;

    fn try_from(count: u64) -> Result<Self, Self::Error> {
        if count == 0 { Err(NOTHING) } else { Ok(Self(count)) }
    }
}

impl std::str::FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count: u64 = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
        Ok(Self::try_from(count)?)
    }
}

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(usd: f64) -> Result<Self, String> {
        let money = Money::from_usd(usd).map_err(|error| format!("{usd} is {error} in US dollars"))?;
        if money == Money::ZERO { Err(NOTHING.to_owned()) } else { Ok(Self(money)) }
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usd: f64 =
            text.parse().map_err(|_| format!("`{text}` is no amount of US dollars, such as 0.50"))?;
        Self::try_from(usd)
    }
}

impl TryFrom<f64> for Temperature {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=2.0).contains(&value) {
            // Adding zero makes a plain zero of a negative one.
            Ok(Self(value + 0.0))
        } else {
            Err(format!("{value} is not between 0 and 2"))
        }
    }
}

impl std::str::FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        Self::try_from(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temperature_is_a_number_from_0_to_2_and_zero_has_no_sign() {
        let temperature = |text: &str| text.parse::<Temperature>().map(|read| read.0);
        assert_eq!(temperature("0.7"), Ok(0.7));
        assert_eq!(temperature("-0").map(|zero| zero.to_string()), Ok("0".to_owned()));
        for bad in ["-0.1", "2.1", "nan", "inf", "x"] {
            assert!(temperature(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert_eq!("0".parse::<Count>(), Err(NOTHING.to_owned()));
        assert_eq!("0".parse::<Dollars>(), Err(NOTHING.to_owned()));
        for bad in ["-1", "NaN", "inf", "x"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }
}
