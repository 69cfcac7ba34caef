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

#[cfg(test)]
mod tests {
    use super::*;

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
