//! A roll-up that is larger than what its model takes.

use code_commit_prompt::rollup::files;
use code_commit_report::phrases;
use code_commit_select::tokens;
use code_commit_settings::Settings;

use crate::estimate::room;

/// The largest files that are named.
const NAMED: usize = 10;
/// Tokens of a first prompt besides the query and the roll-up, rather too many than too few.
const INSTRUCTIONS: u64 = 4_000;

/// Whether the first model takes a roll-up.
pub(super) enum Fit {
    Fits,
    /// It does not: what it takes less its answer, in tokens, and what a person should know of that.
    TooLarge(u64, String),
}

pub(super) fn fit(text: &str, query: &str, settings: &Settings) -> Fit {
    let Some(model) = settings.model.value.iter().next() else {
        return Fit::Fits;
    };
    let size = tokens(text.len());
    let budget = room(model, settings).saturating_sub(tokens(query.len()) + INSTRUCTIONS);
    if size <= budget {
        return Fit::Fits;
    }
    let about = format!(
        "all files have {}, so there is a budget: {} tokens, the window of {model} less its reply; \
         the largest are {}",
        phrases::count(size, "token"),
        phrases::thousands(budget),
        largest(text)
    );
    Fit::TooLarge(budget, about)
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
