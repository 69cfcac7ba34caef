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
    let search = &*if search.ends_with('\n') { search.to_owned() } else { format!("{search}\n") };
    let lines: Vec<&str> = old.lines().collect();
    let wanted = search.lines().count();
    let start = best_window(&lines, search, wanted)?;
    let there: String = lines.iter().skip(start).take(wanted).map(|line| format!("{line}\n")).collect();
    if there.len() > MOST_BYTES {
        return None;
    }
    let diff = TextDiff::from_lines(search, &there);
    let changes = diff.iter_all_changes().take(MOST_LINES);
    let shown = changes.map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let line: String = change.value().trim_end_matches('\n').chars().take(MOST_CHARS).collect();
        format!("\n    {sign}{}", line.replace('\r', "\\r"))
    });
    let shown: String = shown.collect();
    Some(format!(" Nearest are those from line {} on (`-` yours, `+` the file's):{shown}", start + 1))
}

/// The first line of the window of `wanted` lines that shares most words with `search`. A line that is the
/// same but for white space around it counts for all of its words twice.
fn best_window(lines: &[&str], search: &str, wanted: usize) -> Option<usize> {
    let words: HashSet<&str> = search.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let same: HashSet<&str> = search.lines().map(str::trim).collect();
    let score = |line: &&str| {
        let shared = line.split(is_between_words).filter(|word| words.contains(word)).count();
        if same.contains(line.trim()) { 2 * shared } else { shared }
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
        insta::assert_snapshot!(nearest(old, "fn b() {\n    one(2);\n    two(4);\n").unwrap(), @"
        Nearest are those from line 5 on (`-` yours, `+` the file's):
            fn b() {
           -    one(2);
           -    two(4);
           +	one(2);
           +    two(3);
        ");
        assert_eq!(nearest(old, "fn b() {"), nearest(old, "fn b() {\n"));
        assert_eq!(nearest(old, "nothing of it\n"), None);
        assert_eq!(nearest("", "a\n"), None);
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
        assert!(near.contains("from line 101 on") && near.lines().count() <= MOST_LINES + 2, "{near}");
    }
}
