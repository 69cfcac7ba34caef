//! What a roll-up takes of its model's window, and what it costs.

use code_commit_prompt::select::{File, tokens};
use code_commit_report::{Output, phrases, printable_name};
use code_commit_settings::Settings;

use crate::estimate::{input_cost, room};

/// Tokens of a roll-up for which nobody has set a budget.
pub(crate) const DEFAULT_BUDGET: u64 = 60_000;
/// The largest files that are named.
const NAMED: usize = 10;
/// Tokens of a first prompt besides the query and the roll-up, rather too many than too few.
const INSTRUCTIONS: u64 = 4_000;

/// The tokens that the first model takes of a roll-up, less its answer.
pub(super) fn room_for(query: &str, settings: &Settings) -> u64 {
    let room = room(settings.models().first(), settings);
    room.saturating_sub(tokens(query.len()) + INSTRUCTIONS)
}

/// That the first model does not take all files.
pub(super) fn about(files: &[File], all: u64, room: u64, settings: &Settings) -> String {
    format!(
        "all files have {}, so there is a budget: {} tokens, the window of {} less its reply; the largest are {}",
        phrases::count(all, "token"),
        phrases::thousands(room),
        settings.models().first(),
        largest(files)
    )
}

/// What a budget has left of so many files, which have `all` tokens.
pub(super) fn context(
    shown: usize,
    files: &[File],
    text: &str,
    all: u64,
    settings: &Settings,
) -> String {
    format!(
        "context: {} of {}, {}; code-commit rollup --budget none sends all {}",
        phrases::thousands(shown as u64),
        phrases::count(files.len() as u64, "file"),
        size(text, settings),
        phrases::thousands(all)
    )
}

/// Tells what a roll-up of somebody else takes, if that is much: it is sent as it is.
pub(crate) fn tell_of_theirs(text: &str, settings: &Settings, output: &Output) {
    let most = room(settings.models().first(), settings);
    let line = format!("context: {}", size(text, settings));
    if tokens(text.len()) > most / 2 {
        output.warn(&format!("{line}: more than half of what the model takes"));
    } else if tokens(text.len()) > DEFAULT_BUDGET {
        output.note(&line);
    }
}

fn size(text: &str, settings: &Settings) -> String {
    let tokens = tokens(text.len());
    let cost = input_cost(settings.models().first(), settings, tokens);
    let cost = cost.map_or_else(String::new, |usd| format!(" (about ${usd:.2} a round)"));
    format!("{}{cost}", phrases::count(tokens, "token"))
}

fn largest(files: &[File]) -> String {
    let mut files: Vec<_> = files
        .iter()
        .map(|file| (tokens(file.content.bytes), &file.path))
        .collect();
    files.sort_by(|one, other| other.cmp(one));
    let named = files.iter().take(NAMED);
    let named = named
        .map(|(size, path)| format!("{} ({})", printable_name(path), phrases::thousands(*size)));
    named.collect::<Vec<_>>().join(", ")
}
