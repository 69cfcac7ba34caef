//! Words for numbers and facts.

use std::time::Duration;

use code_commit_engine::{Action, Changed, Ended, Usage};
use code_commit_timeline::{Lost, names_failure};

use crate::output::{printable, printable_name};

/// `0.4 s`, `12 s`, `3 min 5 s`.
pub fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{whole} s"),
        _ => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// The same for milliseconds.
pub fn took(ms: u64) -> String {
    seconds(Duration::from_millis(ms))
}

/// `just now`, `5 minutes ago`, `1 hour ago`, `3 days ago`.
pub fn ago(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{} ago", count(minutes, "minute")),
        60..1440 => format!("{} ago", count(minutes / 60, "hour")),
        _ => format!("{} ago", count(minutes / 1440, "day")),
    }
}

/// `820 B`, `12.3 kB`, `4.0 MB`.
#[expect(
    clippy::cast_precision_loss,
    reason = "one digit behind the point is shown"
)]
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `1,200 files`.
pub fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", thousands(number))
}

/// `a, b and 3 more`: the first `most` of these names.
pub fn first(names: &[String], most: usize) -> String {
    let first: Vec<String> = names
        .iter()
        .take(most)
        .map(|name| printable_name(name))
        .collect();
    let more = rest(names.len(), most).map(|more| format!(" {more}"));
    first.join(", ") + &more.unwrap_or_default()
}

/// `and 3 more`: the names of `all` after the first `most`.
pub fn rest(all: usize, most: usize) -> Option<String> {
    (all > most).then(|| format!("and {} more", all - most))
}

/// The first `most` lines of a text that comes from outside, and how many more are in `place`.
pub fn first_lines(text: &str, most: usize, place: &str) -> Vec<String> {
    let lines = text.trim().lines();
    let mut shown: Vec<String> = lines.clone().take(most).map(printable).collect();
    let more = lines.skip(most).count() as u64;
    if more > 0 {
        shown.push(format!("… {} in {place}", count(more, "more line")));
    }
    shown
}

/// The lines of an output that say why a command failed: the first that name a failure, and all at its end. The end of a test
/// runner's says how many failed and not which.
pub fn last_lines<'l>(lines: &'l [&'l str]) -> (Vec<&'l str>, &'l [&'l str]) {
    const LAST: usize = 12;
    const NAMED: usize = 3;
    let (above, last) = lines.split_at(lines.len().saturating_sub(LAST));
    let named = above.iter().filter(|line| names_failure(line)).take(NAMED);
    (named.copied().collect(), last)
}

/// `, 1,200 tokens in (900 cached), 340 out`, as far as the service reported them.
pub fn tokens(usage: &Usage) -> String {
    let cached = usage.cache_read_tokens.filter(|cached| *cached > 0);
    let cached = cached
        .map(|cached| format!(" ({} cached)", thousands(cached)))
        .unwrap_or_default();
    match (usage.input_tokens, usage.output_tokens) {
        (Some(read), Some(written)) => {
            format!(
                ", {} in{cached}, {} out",
                count(read, "token"),
                thousands(written)
            )
        }
        (Some(read), None) => format!(", {} in{cached}", count(read, "token")),
        (None, Some(written)) => format!(", {} out", count(written, "token")),
        (None, None) => String::new(),
    }
}

/// `wrote src/a.rs`.
pub fn change(change: &Changed) -> String {
    let verb = match (change.action, change.created) {
        (Action::Write, true) => "created",
        (Action::Write, false) => "wrote",
        (Action::Delete, _) => "deleted",
        (Action::None, _) => "unchanged:",
    };
    format!("{verb} {}", printable_name(&change.path))
}

/// `$0.0123`, `$0.0123 and at most $0.2560 for 1 lost call`.
pub(crate) fn cost_and_lost(answers_usd: Option<f64>, lost: Lost) -> String {
    let (known, calls) = (cost(answers_usd), count(lost.calls, "lost call"));
    match lost.at_most_usd {
        _ if lost.calls == 0 => known,
        Some(usd) => format!("{known} and at most ${usd:.4} for {calls}"),
        None => format!("{known} and an unknown cost for {calls}"),
    }
}

/// `$0.0123`, `cost unknown`.
pub fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| "cost unknown".to_owned(), |usd| format!("${usd:.4}"))
}

/// `restored 1 file to its state`, `restored 2 files to their state`.
pub fn restored(count: usize) -> String {
    match count {
        0 => "all files are already in their state".to_owned(),
        1 => "restored 1 file to its state".to_owned(),
        count => format!("restored {count} files to their state"),
    }
}

/// `wrote src/a.rs, created README.md`: what became of the first of these files.
pub(crate) fn changes(changes: &[Changed]) -> Option<String> {
    const NAMED: usize = 6;
    let told: Vec<String> = changes.iter().map(change).collect();
    (!told.is_empty()).then(|| first(&told, NAMED))
}

/// `exit code 1`, `it ran out of time and was killed`.
pub fn ended(ended: Ended) -> String {
    match ended.exit_code() {
        Some(code) => format!("exit code {code}"),
        None => format!("it {ended}"),
    }
}

/// The setting for a build that exceeded one of its limits.
pub fn hint(ended: Ended) -> Option<&'static str> {
    match ended {
        Ended::TimedOut => Some("--build-timeout allows more time, --max-time for the whole run"),
        Ended::TooMuchOutput => Some("`output_limit` of `[build]` lets it print more"),
        Ended::TooMuchMemory => Some("`memory` of `[build]` gives it more"),
        Ended::TooManyProcesses => Some("`processes` of `[build]` lets it start more"),
        Ended::Exited(_)
        | Ended::Signaled(_)
        | Ended::NotFound
        | Ended::NotExecutable
        | Ended::Interrupted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_are_said_and_the_others_counted() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            [1, 2, 3].map(|most| first(&names, most)),
            ["a and 2 more", "a, b and 1 more", "a, b, c"]
        );
    }

    #[test]
    fn tokens_from_a_cache_are_told_where_there_are_some() {
        let usage = |cache_read_tokens| Usage {
            input_tokens: Some(1200),
            cache_read_tokens,
            output_tokens: Some(340),
            ..Usage::default()
        };
        let told = [None, Some(0), Some(900)].map(|cached| tokens(&usage(cached)));
        let plain = ", 1,200 tokens in, 340 out";
        assert_eq!(
            told,
            [plain, plain, ", 1,200 tokens in (900 cached), 340 out"]
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0, 1, 2_000].map(|number| count(number, "file")),
            ["0 files", "1 file", "2,000 files"]
        );
        assert_eq!(
            [820, 12_345, 4_000_000].map(bytes),
            ["820 B", "12.3 kB", "4.0 MB"]
        );
        assert_eq!(
            [400, 12_000, 185_000].map(|ms| seconds(Duration::from_millis(ms))),
            ["0.4 s", "12 s", "3 min 5 s"]
        );
    }
}
