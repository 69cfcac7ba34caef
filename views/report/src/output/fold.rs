//! Wraps lines that are wider than the terminal between words, and indents the continuation lines.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use crate::stream::Stream;

/// `text` wrapped to the width of `stream`; unchanged if that has no width. Words that are too
/// long, such as paths, stay whole. Continuation lines begin at column `hang` or, without one,
/// below the text after the first two spaces of the line.
pub(super) fn fold(text: &str, stream: &Stream, hang: Option<usize>) -> String {
    stream
        .columns()
        .map_or_else(|| text.to_owned(), |columns| fold_at(text, columns, hang))
}

fn fold_at(text: &str, columns: usize, hang: Option<usize>) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| fold_line(line, columns, hang))
        .collect();
    lines.join("\n")
}

fn fold_line(line: &str, columns: usize, hang: Option<usize>) -> String {
    if textwrap::core::display_width(line) <= columns {
        return line.to_owned();
    }
    let hang = hang
        .or_else(|| text_begins(line))
        .filter(|hang| *hang < columns / 2)
        .unwrap_or(0);
    let indent = " ".repeat(hang);
    let text = line.trim_start_matches(' ');
    let lead = " ".repeat(line.len() - text.len());
    let options = Options::new(columns)
        .initial_indent(&lead)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options)
}

/// The column of the text in `round 2/4  the build fails`, or in an indented line.
fn text_begins(line: &str) -> Option<usize> {
    let plain = anstream::adapter::strip_str(line).to_string();
    let gap = plain.find("  ")?;
    let blanks = plain.get(gap..)?.chars().take_while(|c| *c == ' ').count();
    Some(gap + blanks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below_its_text() {
        insta::assert_snapshot!(fold_at("round 1/4  the reply was refused as a whole", 24, None), @"
        round 1/4  the reply was
                   refused as a
                   whole
        ");
        insta::assert_snapshot!(fold_at("           `.git/hooks/pre-commit` is git's own folder", 30, None), @"
        `.git/hooks/pre-commit`
        is git's own folder
        ");
        insta::assert_snapshot!(fold_at("warning: not committed: one, two and three", 24, Some(9)), @"
        warning: not committed:
                 one, two and
                 three
        ");
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole_and_a_short_line_as_it_is() {
        insta::assert_snapshot!(fold_at("see agent-config/logs/2026-01-02-03-04-05-commit/events.jsonl there", 20, None), @"
        see
        agent-config/logs/2026-01-02-03-04-05-commit/events.jsonl
        there
        ");
        assert_eq!(fold_at("a  b\n\n  c \n", 20, None), "a  b\n\n  c \n");
    }
}
