//! The output of a program, which arrives in pieces, as lines.

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
            return if self.0.len() < LONGEST_LINE { None } else { self.rest() };
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

fn shown(lines: &[u8]) -> String {
    printable(&String::from_utf8_lossy(lines)).trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters_are_whole_however_they_come() {
        let mut printed = Printed::default();
        let came = [&b"\xc3"[..], b"\xa9 on", b"e\ntwo\nth", b"\n\n", b"end"]
            .map(|piece| printed.whole_lines(piece));
        assert_eq!(came, [None, None, Some("é one\ntwo".to_owned()), Some("th".to_owned()), None]);
        assert_eq!((printed.rest(), printed.rest()), (Some("end".to_owned()), None));
    }
}
