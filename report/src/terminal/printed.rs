//! What a program prints, line by line: it comes in pieces that end anywhere.

use crate::output::printable;

/// In bytes.
const LONGEST_LINE: usize = 1 << 20;

/// What has come since the last line end.
#[derive(Debug, Default)]
pub(super) struct Printed(Vec<u8>);

impl Printed {
    /// Takes in a piece; gives the lines that are whole with it, as a terminal may have them, without their last line end.
    pub(super) fn whole_lines(&mut self, piece: &[u8]) -> Option<String> {
        // Only the piece is searched: a program may print without ever ending a line. It is ended for it, since nobody reads such a line.
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            self.0.extend_from_slice(piece);
            return if self.0.len() < LONGEST_LINE { None } else { self.rest() };
        };
        let (lines, rest) = piece.split_at(end + 1);
        let mut whole = std::mem::replace(&mut self.0, rest.to_owned());
        whole.extend_from_slice(lines);
        Some(shown(&whole))
    }

    /// Whatever is left: a program may end within a line.
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
