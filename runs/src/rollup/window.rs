//! A roll-up that is larger than what its model takes.

use code_commit_report::{phrases, printable_name};
use code_commit_select::tokens;
use code_commit_settings::Settings;

use super::{Options, RollUp, Sources, make};
use crate::exit::Failure;
use crate::model::today;

/// The largest files that are named.
const NAMED: usize = 10;
/// Tokens of a first prompt besides the query and the roll-up, rather too many than too few.
const INSTRUCTIONS: u64 = 4_000;
/// A larger roll-up may be too large for a model whose window is unknown: every window in the price table holds it.
const ALWAYS_FITS: u64 = 100_000;

/// Makes a roll-up, as [`make`] does. Without a budget of its own it gets one if the first model would not take all of
/// it: what that takes, less its answer. Either is said.
pub fn make_within(sources: Sources<'_>, options: &Options, settings: &Settings) -> Result<RollUp, Failure> {
    let mut rollup = make(sources, options)?;
    let (size, model) = (tokens(rollup.text.len()), settings.model.value.iter().next());
    let (Some(model), None) = (model, options.budget) else { return Ok(rollup) };
    let prices = settings.prices();
    let price = today().and_then(|day| prices.of(model, None, &day).cloned());
    let provider = settings.provider_of(model);
    let window =
        price.as_ref().and_then(|price| price.window).or(provider.and_then(|provider| provider.window));
    let answer =
        price.and_then(|price| price.max_output).or(provider.and_then(|provider| provider.max_output));
    let Some(window) = window else {
        rollup.about_size = (size > ALWAYS_FITS).then(|| {
            let size = phrases::count(size, "token");
            format!(
                "the roll-up has {size}, and nobody knows how many {model} takes; --budget TOKENS limits it"
            )
        });
        return Ok(rollup);
    };
    let rest = answer.unwrap_or_default() + tokens(sources.query.len()) + INSTRUCTIONS;
    let budget = window.saturating_sub(rest);
    if size <= budget {
        return Ok(rollup);
    }
    let about_size = format!(
        "all files have {}, so there is a budget: {} tokens, the window of {model} less its answer; the largest are {}",
        phrases::count(size, "token"),
        phrases::thousands(budget),
        largest(&rollup),
    );
    let within = make(sources, &Options { budget: Some(budget), ..options.clone() })?;
    Ok(RollUp { about_size: Some(about_size), ..within })
}

fn largest(rollup: &RollUp) -> String {
    let files = code_commit_prompt::rollup::files(&rollup.text);
    let mut files: Vec<(u64, &str)> = files.map(|(path, text)| (tokens(text.len()), path)).collect();
    files.sort_by(|one, other| other.cmp(one));
    let named = files.iter().take(NAMED);
    let named = named.map(|(size, path)| format!("{} ({})", printable_name(path), phrases::thousands(*size)));
    named.collect::<Vec<_>>().join(", ")
}
