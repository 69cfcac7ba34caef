//! Amounts of money as integers.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;
use code_commit_llm::Money;

/// Nanodollars in a dollar.
const NANO: i64 = 1_000_000_000;
/// The product's amounts are whole 10⁻¹² dollars.
const PICO_IN_NANO: u64 = 1000;
/// Below this many dollars, a float still holds every 10⁻¹² of one.
const EXACT_USD: f64 = 1000.0;

/// An amount in 10⁻⁹ US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanodollars(pub(crate) i64);

impl Nanodollars {
    /// Rounded up; `None` if it is too large for the cost of one call.
    pub(crate) fn of(money: Money) -> Option<Self> {
        let usd = money.as_usd();
        if usd >= EXACT_USD {
            return None;
        }
        // The product shows its integer as dollars only; below the limit this gives the same integer back.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 10¹⁵"
        )]
        let pico = (usd * 1e12).round() as u64;
        i64::try_from(pico.div_ceil(PICO_IN_NANO)).ok().map(Self)
    }
}

impl fmt::Display for Nanodollars {
    /// All digits that count, and at least cents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nano = NANO.unsigned_abs();
        let (dollars, rest) = (self.0.unsigned_abs() / nano, self.0.unsigned_abs() % nano);
        let digits = format!("{rest:09}");
        let digits = digits.trim_end_matches('0');
        write!(f, "{sign}{dollars}.{digits:0<2}")
    }
}

impl FromStr for Nanodollars {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (dollars, rest) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty();
        anyhow::ensure!(
            is_number(dollars) && is_number(rest) && rest.len() <= 9,
            "`{text}` is not an amount in dollars such as 12.50"
        );
        let nanos: i64 = format!("{rest:0<9}").parse()?;
        let dollars: i64 = dollars.parse().context("the amount is too large")?;
        let sum = dollars
            .checked_mul(NANO)
            .and_then(|sum| sum.checked_add(nanos));
        sum.map(Self).context("the amount is too large")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_shown_without_loss() {
        for (text, nanos, shown) in [
            ("20", 20 * NANO, "20.00"),
            ("0.000000001", 1, "0.000000001"),
            ("12.5", 12_500_000_000, "12.50"),
        ] {
            let amount: Nanodollars = text.parse().unwrap();
            assert_eq!((amount.0, amount.to_string().as_str()), (nanos, shown));
        }
        for bad in ["", "-1", "1.", ".5", "1e3", "0.0000000001", "99999999999"] {
            assert!(bad.parse::<Nanodollars>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_cost_is_rounded_up_and_otherwise_exact() {
        for (usd, nanos) in [
            (0.0, 0),
            (1e-12, 1),
            (0.1, 100_000_000),
            (999.000_000_001, 999_000_000_001),
        ] {
            assert_eq!(
                Nanodollars::of(Money::from_usd(usd).unwrap()),
                Some(Nanodollars(nanos))
            );
        }
        assert_eq!(Nanodollars::of(Money::from_usd(5000.0).unwrap()), None);
    }
}
