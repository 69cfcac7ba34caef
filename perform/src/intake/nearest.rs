//! The lines of a file that are nearest to those that a hunk looks for.

use std::collections::HashSet;

use similar::{ChangeTag, TextDiff};

/// Lines of a diff that are shown.
const MOST_LINES: usize = 40;
/// A longer line is cut.
const MOST_CHARS: usize = 200;
/// A diff of more than this is not made: its time may grow with the square of the size.
const MOST_BYTES: usize = 32 << 10;

/// The place with the most words in common, as a diff from the wanted lines to those of the file; `None` if
/// no word of them occurs, or they are too long.
pub(super) fn nearest(old: &str, search: &str) -> Option<String> {
    if search.len() > MOST_BYTES {
        return None;
    }
    let search = &*if search.ends_with('\n') {
        search.to_owned()
    } else {
        format!("{search}\n")
    };
    let lines: Vec<&str> = old.lines().collect();
    let wanted = search.lines().count();
    let start = best_window(&lines, search, wanted)?;
    let there: String = lines
        .iter()
        .skip(start)
        .take(wanted)
        .map(|line| format!("{line}\n"))
        .collect();
    if there.len() > MOST_BYTES {
        return None;
    }
    let diff = TextDiff::from_lines(search, &there);
    let mut first = None;
    let shown: String = diff
        .iter_all_changes()
        .take(MOST_LINES)
        .map(|change| {
            let (sign, is_equal) = match change.tag() {
                ChangeTag::Equal => (' ', true),
                ChangeTag::Delete => ('-', false),
                ChangeTag::Insert => ('+', false),
            };
            let line: String = change
                .value()
                .trim_end_matches('\n')
                .chars()
                .take(MOST_CHARS)
                .collect();
            if !is_equal {
                first = first.or(change.new_index().or(change.old_index()));
            }
            format!(
                "\n    {sign}{}",
                if is_equal { line } else { visible(&line) }
            )
        })
        .collect();
    let differs = start + first.unwrap_or_default() + 1;
    let differs = if differs == start + 1 {
        String::new()
    } else {
        format!(", which differ first in line {differs}")
    };
    let slip = slip(search)
        .map(|slip| format!(" {slip}"))
        .unwrap_or_default();
    Some(format!(
        "{slip} Nearest are those from line {} on{differs} (`-` yours, `+` the file's):{shown}",
        start + 1
    ))
}

/// A line whose invisible characters can be told apart.
fn visible(line: &str) -> String {
    let text = line.trim_end_matches(' ');
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\t'
            | '\r'
            | '\u{ad}'
            | '\u{a0}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{2060}'
            | '\u{3000}'
            | '\u{feff}' => {
                shown.extend(c.escape_default());
            }
            _ => shown.push(c),
        }
    }
    shown + &"\u{b7}".repeat(line.len() - text.len())
}

/// What all lines of a hunk have that lines of a file do not.
fn slip(search: &str) -> Option<&'static str> {
    let lines = || search.lines().filter(|line| !line.trim().is_empty());
    let is_numbered = |line: &str| {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && rest.trim_start().starts_with([':', '|', '\t', '\u{2192}'])
    };
    let is_signed = |line: &str| line.starts_with(['+', '-', ' ']);
    let is_ellipsis = |line: &str| line.contains("...") || line.contains('\u{2026}');
    if lines().all(is_numbered) {
        Some("Leave out the line numbers.")
    } else if lines().all(is_signed) && lines().any(|line| line.starts_with(['+', '-'])) {
        Some("Leave out the signs of a diff.")
    } else if lines().any(is_ellipsis) {
        Some("No line stands for others: write all lines, or two hunks.")
    } else {
        None
    }
}

/// The first line of the window of `wanted` lines that shares most words with `search`. A line that is the
/// same but for white space around it counts for all of its words twice.
fn best_window(lines: &[&str], search: &str, wanted: usize) -> Option<usize> {
    let words: HashSet<&str> = search
        .split(is_between_words)
        .filter(|word| !word.is_empty())
        .collect();
    let same: HashSet<&str> = search.lines().map(str::trim).collect();
    let score = |line: &&str| {
        let shared = line
            .split(is_between_words)
            .filter(|word| words.contains(word))
            .count();
        if same.contains(line.trim()) {
            2 * shared
        } else {
            shared
        }
    };
    let scores: Vec<usize> = lines.iter().map(score).collect();
    let mut sum: usize = scores.iter().take(wanted).sum();
    let mut best = (sum, 0);
    for (start, (gone, new)) in scores.iter().zip(scores.iter().skip(wanted)).enumerate() {
        sum = sum + new - gone;
        if sum > best.0 {
            best = (sum, start + 1);
        }
    }
    (best.0 > 0).then_some(best.1)
}

fn is_between_words(c: char) -> bool {
    !(c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_lines_are_shown_beside_the_wanted_ones() {
        let old = "fn a() {\n    one(1);\n}\n\nfn b() {\n\tone(2);\n    two(3);\n}\n";
        insta::assert_snapshot!(nearest(old, "fn b() {\n    one(2);\n    two(4);\n").unwrap(), @r"
        Nearest are those from line 5 on, which differ first in line 6 (`-` yours, `+` the file's):
            fn b() {
           -    one(2);
           -    two(4);
           +\tone(2);
           +    two(3);
        ");
        assert_eq!(nearest(old, "fn b() {"), nearest(old, "fn b() {\n"));
        assert_eq!(nearest(old, "nothing of it\n"), None);
        assert_eq!(nearest("", "a\n"), None);
    }

    #[test]
    fn a_slip_is_named_if_all_lines_have_it() {
        let last_word = |search: &str| slip(search).and_then(|slip| slip.split(' ').next_back());
        let numbers = ["1: a\n\n2| b", "1: a\nb"].map(last_word);
        assert_eq!(numbers, [Some("numbers."), None]);
        let signs = ["+a\n\n b", " a\n b", "+a\nb"].map(last_word);
        assert_eq!(signs, [Some("diff."), None, None]);
        assert_eq!(last_word("a\n..."), Some("hunks."));
    }

    #[test]
    fn lines_that_are_too_long_are_not_compared() {
        let long = "word ".repeat(MOST_BYTES / 5 + 1);
        assert_eq!(nearest("word\n", &long), None);
        assert_eq!(nearest(&long, "word\n"), None);
        assert!(nearest("some word\n", "word\n").is_some());
    }

    #[test]
    fn a_long_hunk_is_shown_in_part() {
        let old: String = (0..500).map(|line| format!("line {line}\n")).collect();
        let search: String = (100..400).map(|line| format!("line  {line}\n")).collect();
        let near = nearest(&old, &search).unwrap();
        assert!(
            near.contains("from line 101 on") && near.lines().count() <= MOST_LINES + 2,
            "{near}"
        );
    }
}
