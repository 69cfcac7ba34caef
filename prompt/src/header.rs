//! Headers of files in a prompt, which no content can imitate.

/// The dashes of a header (S1 §Running the Build), unless a content holds such a line.
pub(crate) const PLAIN: usize = 3;

/// Explains the headers of files if one of them holds a line that looks like one.
pub(crate) const LONGER_HEADERS: &str = "Here, the lines that name a file begin with as many dashes as the very first of \
them. A line with fewer dashes is content.\n";

/// The dashes that a header needs so that no line of these contents looks like it: one more than the
/// longest imitation has. `begins` is what follows the dashes.
pub(crate) fn dashes<'c>(contents: impl IntoIterator<Item = &'c str>, begins: &str) -> usize {
    let needle = format!("-{begins}");
    let longest = contents
        .into_iter()
        .map(|content| longest_imitation(content, &needle))
        .max();
    PLAIN.max(longest.unwrap_or_default() + 1)
}

/// The dashes of the longest line that begins with dashes and then goes on like a header.
fn longest_imitation(content: &str, needle: &str) -> usize {
    let runs = content.match_indices(needle).filter_map(|(last, _)| {
        let before = content.get(..=last)?.trim_end_matches('-');
        let is_at_start = before.is_empty() || before.ends_with(['\n', '\r']);
        is_at_start.then_some(last + 1 - before.len())
    });
    runs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::dashes;

    #[test]
    fn a_header_is_longer_than_every_line_that_looks_like_one() {
        for (content, needed) in [
            ("", 3),
            ("fn a() {}\n", 3),
            ("- FILE a ---\n", 3),
            ("--- FILE a ---\n", 4),
            ("x\n----- FILE a\n--- FILE b ---\n", 6),
            ("x\r----- FILE a", 6),
            ("x --- FILE a ---\n --- FILE a ---\n", 3),
            ("--- file a ---\n--- FILES ---\n", 3),
        ] {
            assert_eq!(dashes([content], " FILE "), needed, "{content}");
        }
        assert_eq!(dashes(["--- FILE a", "---- FILE b"], " FILE "), 5);
    }
}
