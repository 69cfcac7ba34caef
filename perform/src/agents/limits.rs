//! What a run may use, and has used: looked at before each turn, as far as the agents say what they use.

use agent::{End, ModelUsage};
use llm::Limit;
use serde::{Deserialize, Serialize};

use crate::Turned;

/// What a run may use; everything where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLimits {
    /// US dollars, by the reckoning of the agents.
    pub max_cost_usd: Option<f64>,
    /// Tokens in and out.
    pub max_tokens: Option<u64>,
    /// Time of turns and of the user's lines; the wait for a quota does not count.
    pub max_time_ms: Option<u64>,
}

/// What was used so far. `None` is "not said", which is not zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentUsage {
    cost_usd: Option<f64>,
    tokens: Option<u64>,
    time_ms: u64,
}

impl Default for AgentUsage {
    fn default() -> Self {
        Self { cost_usd: Some(0.0), tokens: Some(0), time_ms: 0 }
    }
}

/// Why no further turn may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitPassed {
    /// The same codes as those of the other loops.
    pub code: &'static str,
    /// For the person.
    pub message: String,
}

impl AgentUsage {
    /// Counts a turn.
    pub fn add(&mut self, turned: &Turned) {
        self.add_parts(cost(turned.cost_usd), tokens(&turned.usage), turned.elapsed_ms);
    }

    /// Counts a turn that a person has cut off, as far as its agent came to say what it used. What it did not come to say is no reason to
    /// end the run: all that the agents say comes at the end of a turn.
    pub fn add_cut_off(&mut self, usage: &[ModelUsage], cost_usd: Option<f64>, elapsed_ms: u64) {
        self.add_parts(cost(cost_usd).or(Some(0.0)), tokens(usage).or(Some(0)), elapsed_ms);
    }

    fn add_parts(&mut self, cost: Option<f64>, tokens: Option<u64>, elapsed_ms: u64) {
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
        self.tokens = self.tokens.zip(tokens).map(|(sum, tokens)| sum.saturating_add(tokens));
        self.add_time(elapsed_ms);
    }

    /// Counts the time of something else.
    pub fn add_time(&mut self, ms: u64) {
        self.time_ms = self.time_ms.saturating_add(ms);
    }

    /// A limit that was reached, or that nobody can keep any more.
    pub fn passed(&self, limits: &AgentLimits) -> Option<LimitPassed> {
        self.cost(limits).or_else(|| self.tokens(limits)).or_else(|| self.time(limits))
    }

    /// The limit that cut off a turn which is counted already. No turn may take longer than the whole run.
    pub fn cut_off(&self, turned: &Turned, limits: &AgentLimits) -> Option<LimitPassed> {
        let out_of_time = turned.end == End::TimedOut { idle: false };
        out_of_time.then(|| self.time(limits)).flatten()
    }

    fn cost(&self, limits: &AgentLimits) -> Option<LimitPassed> {
        let most = limits.max_cost_usd?;
        let message = match self.cost_usd {
            Some(cost) if cost < most => return None,
            Some(cost) => format!("the run has cost ${cost:.2}, and may cost ${most:.2}"),
            None => format!("the run may cost ${most:.2}, and an agent did not say what its turn has"),
        };
        Some(LimitPassed { code: Limit::Cost.code(), message })
    }

    fn tokens(&self, limits: &AgentLimits) -> Option<LimitPassed> {
        let most = limits.max_tokens?;
        let message = match self.tokens {
            Some(tokens) if tokens < most => return None,
            Some(tokens) => format!("the run has used {tokens} tokens, and may use {most}"),
            None => format!("the run may use {most} tokens, and an agent did not say how many its turn has"),
        };
        Some(LimitPassed { code: Limit::Tokens.code(), message })
    }

    fn time(&self, limits: &AgentLimits) -> Option<LimitPassed> {
        let most = limits.max_time_ms.filter(|most| self.time_ms >= *most)?;
        let (took, most) = (self.time_ms / 1000, most / 1000);
        let message = format!("the run has taken {took} seconds, and may take {most}");
        Some(LimitPassed { code: Limit::Time.code(), message })
    }
}

/// None if it is no amount of money.
fn cost(said: Option<f64>) -> Option<f64> {
    said.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

/// None if any model of the turn is not counted, or none is named at all.
fn tokens(usage: &[ModelUsage]) -> Option<u64> {
    let each = usage.iter().map(|used| Some(used.input_tokens?.saturating_add(used.output_tokens?)));
    let sum = each.sum::<Option<u64>>()?;
    (!usage.is_empty()).then_some(sum)
}
