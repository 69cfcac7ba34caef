//! Tokens, with the same meaning for every service.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of one or more calls. `None` means that the service did not say, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All input, **including cached tokens**.
    pub input_tokens: Option<u64>,
    /// The part of the input that was read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// The part of the input that was written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// All output, **including reasoning**.
    pub output_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// The sum of input and output; `None` unless both are known.
    pub fn total(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }
}

impl AddAssign for Usage {
    /// Unknown plus known is the known part: a sum never loses what was reported.
    fn add_assign(&mut self, other: Self) {
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = match (*sum, more) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        let mut sum = Self::default();
        each.for_each(|usage| sum += usage);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_unknown_apart_from_zero() {
        let one = Usage { input_tokens: Some(3), output_tokens: Some(0), ..Usage::default() };
        let two = Usage { input_tokens: Some(4), reasoning_tokens: Some(1), ..Usage::default() };
        let sum: Usage = [one, two].into_iter().sum();
        assert_eq!(sum.input_tokens, Some(7));
        assert_eq!(sum.output_tokens, Some(0));
        assert_eq!(sum.reasoning_tokens, Some(1));
        assert_eq!(sum.cache_read_tokens, None);
        assert_eq!(sum.total(), Some(7));
    }
}
