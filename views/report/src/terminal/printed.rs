//! The output of a program, which arrives in pieces, as lines.

use std::collections::VecDeque;

use crate::output::printable;

/// In bytes.
const LONGEST_LINE: usize = 1 << 20;

/// The output of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printout {
    /// All of it, or its beginning and end.
    pub text: String,
    /// Whether `text` is all of it.
    pub is_whole: bool,
}

/// Reads a build's output from its file in the record; `None` if it cannot be read.
pub type ReadPrintout = Box<dyn Fn(&str) -> Option<Printout>>;

/// The output since the last newline.
#[derive(Debug, Default)]
pub(super) struct Printed(Vec<u8>);

impl Printed {
    /// Adds a piece; returns the lines that it completes, safe for a terminal and without the last
    /// newline.
    pub(super) fn whole_lines(&mut self, piece: &[u8]) -> Option<String> {
        // Searches only the new piece, because a program may print without ever ending a line. Such
        // a line is cut: nobody reads it.
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            self.0.extend_from_slice(piece);
            return if self.0.len() < LONGEST_LINE {
                None
            } else {
                self.rest()
            };
        };
        let (lines, rest) = piece.split_at(end + 1);
        let mut whole = std::mem::replace(&mut self.0, rest.to_owned());
        whole.extend_from_slice(lines);
        Some(shown(&whole))
    }

    /// The rest, if the output does not end with a newline.
    pub(super) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        (!rest.is_empty()).then(|| shown(&rest))
    }
}

/// At most this many lines of a running command are on the terminal at a time.
const LAST_LINES: usize = 3;
/// In bytes: more than fits on a terminal.
const MOST_KEPT: usize = 8 << 10;

/// The last lines of a program that is still running, without empty ones.
#[derive(Debug, Default)]
pub(super) struct LastLines {
    lines: VecDeque<String>,
    open: Vec<u8>,
}

impl LastLines {
    /// A build prints megabytes, of which hardly anything is seen: only the end of a piece is read.
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.open.extend_from_slice(piece);
        self.open.drain(..self.open.len().saturating_sub(MOST_KEPT));
        let Some(end) = self.open.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let rest = self.open.split_off(end + 1);
        let whole = std::mem::replace(&mut self.open, rest);
        self.lines
            .extend(whole.split(|byte| *byte == b'\n').filter_map(visible));
        self.lines
            .drain(..self.lines.len().saturating_sub(LAST_LINES));
    }

    /// The line that is not complete yet is one of them.
    pub(super) fn shown(&self) -> Vec<String> {
        let open = visible(&self.open);
        let skipped = (self.lines.len() + usize::from(open.is_some())).saturating_sub(LAST_LINES);
        self.lines
            .iter()
            .cloned()
            .chain(open)
            .skip(skipped)
            .collect()
    }
}

/// A line as a terminal would show it in the end: a carriage return begins it again.
fn visible(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line.trim_ascii_end());
    let last = line.rsplit('\r').next().unwrap_or_default();
    let text = printable(last).replace(['\t', '\n'], " ");
    (!text.trim().is_empty()).then_some(text)
}

fn shown(lines: &[u8]) -> String {
    printable(&String::from_utf8_lossy(lines))
        .trim_end_matches('\n')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters_are_whole_however_they_come() {
        let mut printed = Printed::default();
        let came = [&b"\xc3"[..], b"\xa9 on", b"e\ntwo\nth", b"\n\n", b"end"]
            .map(|piece| printed.whole_lines(piece));
        assert_eq!(
            came,
            [
                None,
                None,
                Some("é one\ntwo".to_owned()),
                Some("th".to_owned()),
                None
            ]
        );
        assert_eq!(
            (printed.rest(), printed.rest()),
            (Some("end".to_owned()), None)
        );
    }

    #[test]
    fn the_last_lines_are_short_few_and_hold_nothing_that_a_terminal_obeys() {
        let mut last = LastLines::default();
        let mut shown = |piece: &[u8]| {
            last.add(piece);
            last.shown()
        };
        assert_eq!(shown(b"one\ntw"), ["one", "tw"]);
        assert_eq!(shown(b"o\n\n  \nthree\n"), ["one", "two", "three"]);
        assert_eq!(shown(b"10%\r20%\r\n"), ["two", "three", "20%"]);
        assert_eq!(
            shown(b"\x1b[2J\x1b]0;title\x07a\tb\x9b\xe2\x80\xae\n"),
            ["three", "20%", "a b\u{fffd}\\u{202e}"]
        );
        let long = shown(&b"x".repeat(1 << 20));
        assert_eq!((long.len(), long[2].len()), (3, MOST_KEPT));
    }
}
