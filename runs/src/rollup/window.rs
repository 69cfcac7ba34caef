//! A roll-up that is larger than what its model takes.

use code_commit_prompt::rollup::files;
use code_commit_report::phrases;
use code_commit_select::tokens;
use code_commit_settings::Settings;

use crate::model::today;

/// The largest files that are named.
const NAMED: usize = 10;
/// Tokens of a first prompt besides the query and the roll-up, rather too many than too few.
const INSTRUCTIONS: u64 = 4_000;
/// A larger roll-up may be too large for a model whose window is unknown: every window in the price table holds it.
const ALWAYS_FITS: u64 = 100_000;

/// Whether the first model takes a roll-up.
pub(super) enum Fit {
    Fits,
    /// Nobody knows, as this says.
    Unknown(String),
    /// It does not: what it takes less its answer, in tokens, and what a person should know of that.
    TooLarge(u64, String),
}

pub(super) fn fit(text: &str, query: &str, settings: &Settings) -> Fit {
    let Some(model) = settings.model.value.iter().next() else {
        return Fit::Fits;
    };
    let size = tokens(text.len());
    let price = today().and_then(|day| settings.prices().of(model, None, &day).cloned());
    let provider = settings.provider_of(model);
    let window = price
        .as_ref()
        .and_then(|price| price.window)
        .or(provider.and_then(|provider| provider.window));
    let answer = price
        .and_then(|price| price.max_output)
        .or(provider.and_then(|provider| provider.max_output));
    let rest = answer.unwrap_or_default() + tokens(query.len()) + INSTRUCTIONS;
    let budget = window.map_or(ALWAYS_FITS, |window| window.saturating_sub(rest));
    let all = phrases::count(size, "token");
    match window {
        _ if size <= budget => Fit::Fits,
        Some(_) => {
            let about = format!(
                "all files have {all}, so there is a budget: {} tokens, the window of {model} less its reply; \
                 the largest are {}",
                phrases::thousands(budget),
                largest(text)
            );
            Fit::TooLarge(budget, about)
        }
        None => Fit::Unknown(format!(
            "the roll-up has {all}, and nobody knows how many {model} takes; --budget TOKENS limits it"
        )),
    }
}

fn largest(text: &str) -> String {
    let mut files: Vec<_> = files(text)
        .map(|(path, text)| (tokens(text.len()), path))
        .collect();
    files.sort_by(|one, other| other.cmp(one));
    let named = files.iter().take(NAMED);
    let named = named.map(|(size, path)| {
        format!(
            "{} ({})",
            code_commit_report::printable_name(path),
            phrases::thousands(*size)
        )
    });
    named.collect::<Vec<_>>().join(", ")
}
