//! Whether a program printed what a page says.

/// Stands for anything: within a line for any characters, alone on a line for any lines.
const ANYTHING: &str = "…";

/// Whether `printed` is what `expected` says.
pub(crate) fn matches(expected: &[String], printed: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return printed.is_empty() };
    if first == ANYTHING {
        return (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]));
    }
    printed.split_first().is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others))
}

fn line_matches(expected: &str, line: &str) -> bool {
    let Some((before, behind)) = expected.split_once(ANYTHING) else { return expected == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| line_matches(behind, rest.get(at..).unwrap_or_default()))
}

#[test]
fn an_ellipsis_stands_for_anything_and_all_else_for_itself() {
    let says = |expected: &str, printed: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        matches(&expected, &printed.lines().collect::<Vec<_>>())
    };
    assert!(says("a\n…\nd", "a\nb\nc\nd") && says("a\n…\nd", "a\nd"));
    assert!(says("took … s, … bytes", "took 0.1 s, 12 bytes") && says("key …77]", "key …77]"));
    assert!(
        !says("a\n…\nd", "a\nb")
            && !says("took … s", "took 1 ms")
            && !says("a", "a\nb")
            && !says("a\nb", "a")
    );
}
