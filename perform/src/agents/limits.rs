//! What a run may use, and has used: checked before each turn, using what the agents report.

use code_commit_engine::{Amount, Cause, Event, ModelUsage, TurnAdvice, Turned};
use code_commit_llm::Limit;
use code_commit_timeline::{RunView, What};
use serde::{Deserialize, Serialize};

/// Limits of a run; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLimits {
    /// US dollars, as the agents count them.
    pub max_cost_usd: Option<f64>,
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// Time of turns and of the user's commands; waiting for a quota does not count.
    pub max_time_ms: Option<u64>,
}

/// Usage so far. `None` means "not reported", which is not zero.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentUsage {
    used: Amount,
    time_ms: u64,
    /// The most that one turn has reported.
    largest: Amount,
    /// How the last turn ended that counts as everything that was left.
    assumed: Option<String>,
}

impl Default for AgentUsage {
    fn default() -> Self {
        Self {
            used: Amount {
                cost_usd: Some(0.0),
                tokens: Some(0),
            },
            time_ms: 0,
            largest: Amount::default(),
            assumed: None,
        }
    }
}

impl AgentUsage {
    /// Usage so far according to the record, including work that was repeated.
    pub fn of(lines: &[Event]) -> Self {
        let mut used = Self::default();
        for step in RunView::untimed(lines).all {
            match &step.what {
                What::Call(call) => {
                    let remaining = call.begun.as_ref().map(|begun| begun.remaining);
                    let remaining = remaining.unwrap_or_default();
                    let turned = call.turned.iter();
                    turned.for_each(|turned| used.add(turned, remaining));
                }
                What::Command(_) => used.add_time(step.elapsed_ms()),
                What::Change(_) | What::Remark(_) => {}
            }
        }
        used
    }

    /// Counts a turn that could use this much. Agents report their usage at the end of a turn: one
    /// that was cut off before counts as the largest so far or, if none has reported, as all that was left.
    pub fn add(&mut self, turned: &Turned, remaining: Amount) {
        let (mut cost, mut tokens) = (cost(turned.cost_usd), tokens(&turned.usage));
        let costs = [self.largest.cost_usd, cost].into_iter().flatten();
        self.largest.cost_usd = costs.reduce(f64::max);
        self.largest.tokens = self.largest.tokens.max(tokens);
        if turned.end.then == TurnAdvice::Repeat {
            cost = cost.or(self.largest.cost_usd);
            tokens = tokens.or(self.largest.tokens);
            let is_assumed = (cost.is_none() && remaining.cost_usd.is_some())
                || (tokens.is_none() && remaining.tokens.is_some());
            if is_assumed {
                self.assumed = Some(turned.end.to_string());
            }
            cost = cost.or(remaining.cost_usd).or(Some(0.0));
            tokens = tokens.or(remaining.tokens).or(Some(0));
        }
        let used = &mut self.used;
        used.cost_usd = used.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
        let sum = used.tokens.zip(tokens);
        used.tokens = sum.map(|(sum, tokens)| sum.saturating_add(tokens));
        self.add_time(turned.elapsed_ms);
    }

    pub(super) fn remaining(&self, limits: &AgentLimits) -> Amount {
        let cost = limits.max_cost_usd.zip(self.used.cost_usd);
        let tokens = limits.max_tokens.zip(self.used.tokens);
        Amount {
            cost_usd: cost.map(|(most, used)| (most - used).max(0.0)),
            tokens: tokens.map(|(most, used)| most.saturating_sub(used)),
        }
    }

    /// Counts time spent outside turns.
    pub(crate) fn add_time(&mut self, ms: u64) {
        self.time_ms = self.time_ms.saturating_add(ms);
    }

    /// A limit that was reached, or can no longer be enforced.
    pub fn passed(&self, limits: &AgentLimits) -> Option<Cause> {
        self.cost(limits)
            .or_else(|| self.tokens(limits))
            .or_else(|| self.time(limits))
    }

    /// The limit that cut off a turn that is already counted. No turn may take longer than the whole run.
    pub fn cut_off(&self, turned: &Turned, limits: &AgentLimits) -> Option<Cause> {
        let out_of_time = turned.end.how == code_commit_llm::ErrorCode::Timeout.as_str();
        out_of_time.then(|| self.time(limits)).flatten()
    }

    fn cost(&self, limits: &AgentLimits) -> Option<Cause> {
        let (most, assumed) = (limits.max_cost_usd?, self.assumption());
        let message = match self.used.cost_usd {
            Some(cost) if cost < most => return None,
            Some(cost) => format!("spent ${cost:.2} of at most ${most:.2}{assumed}"),
            None => {
                format!(
                    "the limit of ${most:.2} cannot be enforced: an agent did not report the cost of its turn"
                )
            }
        };
        Some(limit(Limit::Cost, message))
    }

    fn tokens(&self, limits: &AgentLimits) -> Option<Cause> {
        let (most, assumed) = (limits.max_tokens?, self.assumption());
        let message = match self.used.tokens {
            Some(tokens) if tokens < most => return None,
            Some(tokens) => {
                format!("used {tokens} of at most {most} tokens{assumed}")
            }
            None => format!(
                "the limit of {most} tokens cannot be enforced: an agent did not report the tokens of its turn"
            ),
        };
        Some(limit(Limit::Tokens, message))
    }

    fn assumption(&self) -> String {
        let ended = self.assumed.as_ref().map(|ended| {
            format!(
                "; a turn that ended without figures ({ended}) counts as everything that was left"
            )
        });
        ended.unwrap_or_default()
    }

    fn time(&self, limits: &AgentLimits) -> Option<Cause> {
        let most = limits.max_time_ms.filter(|most| self.time_ms >= *most)?;
        let (took, most) = (self.time_ms / 1000, most / 1000);
        let message = format!("the run took {took} of at most {most} seconds");
        Some(limit(Limit::Time, message))
    }
}

fn limit(limit: Limit, message: String) -> Cause {
    Cause {
        code: limit.code().to_owned(),
        message,
        remedy: None,
    }
}

/// `None` if it is not a valid amount of money.
fn cost(said: Option<f64>) -> Option<f64> {
    said.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

/// `None` if any model of the turn reports no tokens, or no model is named.
fn tokens(usage: &[ModelUsage]) -> Option<u64> {
    let each = usage.iter().map(|used| used.usage.total());
    let sum = each.sum::<Option<u64>>()?;
    (!usage.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Stored, Text, TurnBegins, TurnEnd, Usage};

    use super::*;

    /// A turn with this usage and this end.
    fn turned(cost_usd: Option<f64>, tokens: Option<u64>, then: TurnAdvice) -> Event {
        let usage = Usage {
            input_tokens: tokens,
            output_tokens: Some(0),
            ..Usage::default()
        };
        let used = ModelUsage {
            model: "m".into(),
            usage,
            cost_usd: None,
        };
        Event::Turned(Box::new(Turned {
            number: 1,
            role: "planning".into(),
            end: TurnEnd {
                how: "ok".into(),
                said: "answered".into(),
                then,
                asks_for_another: false,
            },
            answer: Text::in_file("f", ""),
            markers: Vec::new(),
            session: None,
            usage: tokens.map(|_| used).into_iter().collect(),
            cost_usd,
            denials: Vec::new(),
            changed: Vec::new(),
            gone: Vec::new(),
            put_back: Vec::new(),
            went_on: false,
            elapsed_ms: 2000,
            at: String::new(),
        }))
    }

    fn passed(lines: &[Event], limits: &AgentLimits) -> Option<String> {
        AgentUsage::of(lines)
            .passed(limits)
            .map(|cause| format!("{}: {}", cause.code, cause.message))
    }

    #[test]
    fn no_turn_begins_past_a_limit_or_where_nobody_can_tell() {
        let cost = AgentLimits {
            max_cost_usd: Some(1.0),
            ..AgentLimits::default()
        };
        let tokens = AgentLimits {
            max_tokens: Some(10),
            ..AgentLimits::default()
        };
        let time = AgentLimits {
            max_time_ms: Some(4000),
            ..AgentLimits::default()
        };
        let turn = |cost, tokens| turned(cost, tokens, TurnAdvice::Use);
        let (one, silent) = (turn(Some(0.6), Some(6)), turn(None, None));
        for limits in [&cost, &tokens, &time] {
            assert_eq!(passed(std::slice::from_ref(&one), limits), None);
        }
        let two = [one.clone(), one];
        insta::assert_snapshot!([&cost, &tokens, &time].map(|of| passed(&two, of).unwrap()).join("\n"), @"
        limit-cost: spent $1.20 of at most $1.00
        limit-tokens: used 12 of at most 10 tokens
        limit-time: the run took 4 of at most 4 seconds
        ");
        let silent = [silent];
        insta::assert_snapshot!([&cost, &tokens].map(|of| passed(&silent, of).unwrap()).join("\n"), @"
        limit-cost: the limit of $1.00 cannot be enforced: an agent did not report the cost of its turn
        limit-tokens: the limit of 10 tokens cannot be enforced: an agent did not report the tokens of its turn
        ");
    }

    #[test]
    fn what_a_turn_that_was_cut_off_has_used_counts_when_the_run_goes_on() {
        let limits = AgentLimits {
            max_tokens: Some(10),
            ..AgentLimits::default()
        };
        let cut_off = |tokens| turned(None, tokens, TurnAdvice::Repeat);
        assert_eq!(
            passed(&[cut_off(None)], &limits),
            None,
            "it did not come to say"
        );
        assert!(passed(&[cut_off(Some(6)), cut_off(Some(6))], &limits).is_some());
    }

    /// A turn is about to begin with this many tokens left.
    fn begins(tokens: u64) -> Event {
        let remaining = Amount {
            tokens: Some(tokens),
            cost_usd: None,
        };
        let (prompt, role) = (
            Stored {
                file: "f".into(),
                bytes: 0,
                sha256: String::new(),
            },
            "planning".into(),
        );
        let request = serde_json::Value::Null;
        Event::TurnBegins(TurnBegins {
            number: 1,
            role,
            prompt,
            at: String::new(),
            request,
            remaining,
        })
    }

    #[test]
    fn a_turn_that_was_cut_off_before_it_reported_counts_as_the_largest_or_as_all_that_was_left() {
        let limits = AgentLimits {
            max_tokens: Some(20),
            ..AgentLimits::default()
        };
        let raised = AgentLimits {
            max_tokens: Some(30),
            ..limits
        };
        let cut_off = || [begins(20), turned(None, None, TurnAdvice::Repeat)];
        let alone = cut_off();
        insta::assert_snapshot!(passed(&alone, &limits).unwrap(), @"limit-tokens: used 20 of at most 20 tokens; a turn that ended without figures (answered) counts as everything that was left");
        assert_eq!(
            passed(&alone, &raised),
            None,
            "a person goes on by raising it"
        );
        let answered = [begins(20), turned(None, Some(6), TurnAdvice::Use)];
        let once = [answered, cut_off()].concat();
        assert_eq!(AgentUsage::of(&once).used.tokens, Some(12));
        assert_eq!(passed(&once, &limits), None);
        assert!(
            passed(
                &[once, cut_off().to_vec(), cut_off().to_vec()].concat(),
                &limits
            )
            .is_some()
        );
    }
}
