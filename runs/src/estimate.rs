//! What the first prompt of a run takes: told, or refused, before anything is paid.

use anyhow::anyhow;
use code_commit_llm::{Blind, Model, ModelId, Money, Price, Request, Usage};
use code_commit_prompt::select::tokens;
use code_commit_report::{Output, phrases, printable_name};
use code_commit_settings::Settings;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::model::today;

/// The largest files that are named.
const NAMED: usize = 10;

pub(crate) struct First<'p> {
    pub prompt: String,
    /// The schema of the answer, if it must be JSON.
    pub schema: Option<Value>,
    /// The files in it, each with its bytes.
    pub files: Vec<(&'p str, usize)>,
    /// What makes it smaller.
    pub remedy: &'static str,
}

/// Tells what the first prompt of an agent takes. The agent adds its own to it, and makes its calls itself.
pub fn tell_of_agent(prompt: &str, output: &Output) -> Exit {
    tell(tokens(prompt.len()), None, output)
}

fn tell(input_tokens: u64, input_usd: Option<f64>, output: &Output) -> Exit {
    output.object(&json!({
        "event": "estimate", "input_tokens": input_tokens, "input_usd": input_usd,
    }));
    let cost = input_usd
        .map(|usd| format!(", ${usd:.4}"))
        .unwrap_or_default();
    let size = phrases::count(input_tokens, "token");
    output.report(&format!("the first prompt: about {size}{cost}"));
    Exit::Done
}

impl First<'_> {
    /// Refuses a prompt that is larger than what its model takes. The service is asked for the size only if the
    /// prompt may be.
    pub(crate) fn check(&self, model: &dyn Model, settings: &Settings) -> Result<(), Failure> {
        let window = window(model.id(), settings);
        if self.tokens() <= window {
            return Ok(());
        }
        let request = Request {
            prompt: &self.prompt,
            schema: self.schema.as_ref(),
            ..Request::default()
        };
        let counted = model.count_tokens(&request, &mut Blind).ok().flatten();
        let size = counted.unwrap_or_else(|| self.tokens());
        if size <= window {
            return Ok(());
        }
        let error = anyhow!(
            "the prompt has {}, more than the {} that {} takes",
            phrases::count(size, "token"),
            phrases::thousands(window),
            model.id()
        );
        let largest = self.largest();
        let named = if largest.is_empty() {
            String::new()
        } else {
            format!("; the largest files: {}", largest.join(", "))
        };
        Err(Failure::refused(error, format!("{}{named}", self.remedy)))
    }

    /// Tells what the prompt takes; refuses like [`check`](Self::check).
    pub(crate) fn tell(
        &self,
        model: &dyn Model,
        settings: &Settings,
        output: &Output,
    ) -> Result<Exit, Failure> {
        self.check(model, settings)?;
        let cost = input_cost(model.id(), settings, self.tokens());
        Ok(tell(self.tokens(), cost, output))
    }

    /// Estimated at three bytes a token: rather too many than too few.
    fn tokens(&self) -> u64 {
        let schema = self.schema.as_ref();
        tokens(self.prompt.len() + schema.map_or(0, |schema| schema.to_string().len()))
    }

    fn largest(&self) -> Vec<String> {
        let mut files = self.files.clone();
        files.sort_by_key(|&(path, bytes)| (std::cmp::Reverse(bytes), path));
        let named = files.into_iter().take(NAMED);
        let text = |(path, bytes)| {
            format!(
                "{} ({})",
                printable_name(path),
                phrases::thousands(tokens(bytes))
            )
        };
        named.map(text).collect()
    }
}

/// What this many tokens of input cost, in US dollars.
pub(crate) fn input_cost(model: &ModelId, settings: &Settings, tokens: u64) -> Option<f64> {
    let input = Usage {
        input_tokens: Some(tokens),
        output_tokens: Some(0),
        ..Usage::default()
    };
    let cost = price(model, settings)?.cost(&input);
    cost.map(Money::as_usd)
}

fn price(model: &ModelId, settings: &Settings) -> Option<Price> {
    settings.prices().of(model, None, today()?).cloned()
}

/// The most tokens that one prompt of this model can hold.
pub(crate) fn window(model: &ModelId, settings: &Settings) -> u64 {
    let of_price = price(model, settings).and_then(|price| price.window);
    let of_provider = || settings.provider_of(model)?.window;
    let window = of_price.or_else(of_provider);
    window.unwrap_or_else(|| code_commit_llm::price::window_of(model.name()))
}

/// What a prompt of this model can hold besides its answer, in tokens.
pub(crate) fn room(model: &ModelId, settings: &Settings) -> u64 {
    let of_provider = || settings.provider_of(model)?.max_output;
    let of_price = price(model, settings).and_then(|price| price.max_output);
    let answer = of_price.or_else(of_provider).unwrap_or_default();
    window(model, settings).saturating_sub(answer)
}
