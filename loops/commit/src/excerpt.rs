//! Shortening in the middle, for output that is larger than a prompt should be.

use std::borrow::Cow;

/// `text` whole, or when it has more than `limit` bytes, its first and last half of that with a line between them that says how
/// much was left out of `whole_bytes`: of a very long one the text is but the two ends. The end of a build's output names the error, its
/// beginning the cause.
pub(crate) fn middle_left_out(text: &str, whole_bytes: usize, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let head = text
        .get(..text.floor_char_boundary(limit / 2))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - limit / 2)..)
        .unwrap_or_default();
    let left_out = whole_bytes.max(text.len()) - head.len() - tail.len();
    let break_line = if head.ends_with('\n') { "" } else { "\n" };
    Cow::Owned(format!(
        "{head}{break_line}[… {left_out} bytes left out here …]\n{tail}"
    ))
}

/// How a line that tells of a failure is told from others, in lower case.
const TELLING: [&str; 12] = [
    "error",
    "fail",
    "panic",
    "exception",
    "traceback",
    "assert",
    "expected",
    "undefined",
    "not found",
    "fatal",
    "cannot",
    "unresolved",
];
/// Lines that are kept before a telling one, after it, and at the end of the output.
const BEFORE: usize = 2;
const AFTER: usize = 12;
const LAST: usize = 10;

/// The lines of an output that tell of a failure, those around them and the last ones, with a line for each stretch that is
/// left out.
pub(crate) fn failing_part(text: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept = vec![false; lines.len()];
    let mut keep = |from: usize, to: usize| {
        kept.iter_mut()
            .take(to)
            .skip(from)
            .for_each(|line| *line = true)
    };
    keep(lines.len().saturating_sub(LAST), lines.len());
    let mut done = 0;
    for (at, line) in lines.iter().enumerate() {
        let line = line.to_lowercase();
        if TELLING.iter().any(|word| line.contains(word)) {
            keep(done.max(at.saturating_sub(BEFORE)), at + AFTER + 1);
            done = at;
        }
    }
    let mut part = String::new();
    let mut left = 0;
    for (line, is_kept) in lines
        .iter()
        .zip(kept)
        .map(|(line, kept)| (*line, kept))
        .chain([("", true)])
    {
        if is_kept {
            if left > 0 {
                part.push_str(&format!("[\u{2026} {left} lines left out here \u{2026}]\n"));
            }
            part.push_str(line);
            left = 0;
        } else {
            left += 1;
        }
    }
    if part.len() < text.len() {
        Cow::Owned(part)
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_part_of_an_output_is_what_tells_of_it_and_the_end() {
        let ok = |lines: std::ops::Range<usize>| {
            lines
                .map(|n| format!("test t{n} ... ok\n"))
                .collect::<String>()
        };
        let output = format!(
            "{}test ring ... FAILED\nleft: 1\n{}exit code: 101\n",
            ok(0..50),
            ok(50..100)
        );
        let part = failing_part(&output);
        assert_eq!(part.matches("left out here").count(), 2);
        assert!(
            part.starts_with("[\u{2026} 48 lines left out here \u{2026}]\ntest t48 ... ok\n"),
            "{part}"
        );
        assert!(
            part.contains("FAILED\nleft: 1\n") && part.ends_with("exit code: 101\n"),
            "{part}"
        );
        assert_eq!(failing_part("a\nb"), "a\nb");
    }

    #[test]
    fn short_output_is_sent_whole() {
        assert_eq!(middle_left_out("12345678", 8, 8), "12345678");
    }

    #[test]
    fn long_output_loses_its_middle_and_says_so() {
        assert_eq!(
            middle_left_out("1\n345678\n0", 10, 4),
            "1\n[… 6 bytes left out here …]\n\n0"
        );
    }

    #[test]
    fn what_memory_does_not_hold_is_left_out_as_well() {
        assert_eq!(
            middle_left_out("1\n3…8\n0", 100, 4),
            "1\n[… 96 bytes left out here …]\n\n0"
        );
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "ä".repeat(100);
        for limit in 0..210 {
            assert!(
                middle_left_out(&text, text.len(), limit)
                    .chars()
                    .all(|c| c == 'ä' || c.is_ascii() || c == '…')
            );
        }
    }
}
