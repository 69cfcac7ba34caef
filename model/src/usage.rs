//! Tokens, with the same meaning for every service.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of one or more calls. `None` means that the service did not say, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The tier, if it is not the standard one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// What one model used in one turn of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelUsage {
    /// The model's name.
    pub model: String,
    /// Its tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// The cost as reported by the agent, in US dollars.
    pub cost_usd: Option<f64>,
}

/// A service tier with prices of its own. Nothing here asks for one: an account, or a gateway, may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Answered when there is room.
    Flex,
    /// Answered within a day.
    Batch,
    /// Answered before all others.
    Priority,
}

impl Tier {
    /// By the service's own word. The standard tier has many: `standard`, `default`, `on_demand`.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "flex" => Some(Self::Flex),
            "batch" => Some(Self::Batch),
            "priority" => Some(Self::Priority),
            _ => None,
        }
    }
}

impl Usage {
    /// Counts as output what is in the service's `total` and in no other count: some services leave reasoning out of
    /// the output.
    #[must_use]
    pub fn with_total(self, total: Option<u64>) -> Self {
        let Some(output) = total
            .zip(self.input_tokens)
            .map(|(total, input)| total.saturating_sub(input))
        else {
            return self;
        };
        let hidden = output.saturating_sub(self.output_tokens.unwrap_or(0));
        if hidden == 0 {
            return self;
        }
        let reasoning_tokens = self.reasoning_tokens.or(self.output_tokens.map(|_| hidden));
        Self {
            output_tokens: Some(output),
            reasoning_tokens,
            ..self
        }
    }

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
        self.tier = other.tier.or(self.tier);
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
    fn what_only_the_total_shows_is_output() {
        // Input, output, reasoning, total; output and reasoning after it.
        let cases = [
            ([Some(10), Some(5), None, Some(115)], [Some(105), Some(100)]),
            (
                [Some(10), Some(5), Some(100), Some(115)],
                [Some(105), Some(100)],
            ),
            (
                [Some(10), Some(105), Some(100), Some(115)],
                [Some(105), Some(100)],
            ),
            ([Some(10), None, None, Some(115)], [Some(105), None]),
            ([Some(10), Some(5), None, Some(0)], [Some(5), None]),
            ([Some(10), Some(5), None, None], [Some(5), None]),
            ([Some(10), None, None, Some(10)], [None, None]),
            ([None, Some(5), None, Some(115)], [Some(5), None]),
        ];
        for (case @ [input_tokens, output_tokens, reasoning_tokens, total], shown) in cases {
            let usage = Usage {
                input_tokens,
                output_tokens,
                reasoning_tokens,
                ..Usage::default()
            };
            let usage = usage.with_total(total);
            assert_eq!(
                [usage.output_tokens, usage.reasoning_tokens],
                shown,
                "{case:?}"
            );
        }
    }

    #[test]
    fn a_sum_keeps_unknown_apart_from_zero() {
        let one = Usage {
            input_tokens: Some(3),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let two = Usage {
            input_tokens: Some(4),
            reasoning_tokens: Some(1),
            ..Usage::default()
        };
        let sum: Usage = [one, two].into_iter().sum();
        assert_eq!(sum.input_tokens, Some(7));
        assert_eq!(sum.output_tokens, Some(0));
        assert_eq!(sum.reasoning_tokens, Some(1));
        assert_eq!(sum.cache_read_tokens, None);
        assert_eq!(sum.total(), Some(7));
    }
}
