//! Splits arriving bytes into lines.

/// Longer lines are skipped, so that memory stays bounded: parsed as JSON, a line may take forty
/// times its size.
const LONGEST: usize = 4 << 20;

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'l> {
    /// All of it.
    Whole(&'l [u8]),
    /// Its length; it was skipped.
    TooLong(usize),
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Vec<u8>,
    /// The number of skipped bytes of the current line.
    passed: usize,
}

impl Lines {
    /// Calls `take` with every complete line.
    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Line<'_>)) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.keep(piece);
            if pieces.peek().is_some() {
                take(self.line(|open| open.strip_suffix(b"\r").unwrap_or(open)));
                self.passed = 0;
                self.open.clear();
            }
        }
    }

    /// The last line, if it has no line ending.
    pub(crate) fn finish(self, take: &mut dyn FnMut(Line<'_>)) {
        if !self.open.is_empty() || self.passed > 0 {
            take(self.line(|open| open));
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.passed == 0 && self.open.len() + piece.len() <= LONGEST {
            self.open.extend_from_slice(piece);
        } else {
            self.passed += std::mem::take(&mut self.open).len() + piece.len();
        }
    }

    fn line<'l>(&'l self, without_end: impl Fn(&'l [u8]) -> &'l [u8]) -> Line<'l> {
        if self.passed > 0 {
            Line::TooLong(self.passed)
        } else {
            Line::Whole(without_end(&self.open))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut all, mut lines) = (Vec::new(), Lines::default());
        let mut take = |line: Line<'_>| match line {
            Line::Whole(line) => all.push(line.to_vec()),
            Line::TooLong(bytes) => all.push(format!("{bytes} bytes").into_bytes()),
        };
        pieces.iter().for_each(|piece| lines.push(piece, &mut take));
        lines.finish(&mut take);
        all
    }

    #[test]
    fn a_line_longer_than_a_pipe_comes_whole() {
        let long = vec![b'x'; 200_000];
        let (first, second) = long.split_at(70_000);
        assert_eq!(lines(&[first, second, b"\r\nend"]), [long, b"end".to_vec()]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_not() {
        let piece = vec![b'x'; LONGEST / 2 + 1];
        let too_long = format!("{} bytes", 3 * piece.len()).into_bytes();
        assert_eq!(
            lines(&[&piece, &piece, &piece, b"\nend"]),
            [too_long.clone(), b"end".to_vec()]
        );
        assert_eq!(
            lines(&[b"a\n", &piece, &piece, &piece]),
            [b"a".to_vec(), too_long]
        );
        let just = vec![b'x'; LONGEST];
        assert_eq!(lines(&[&just, b"\n"]), [just]);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(text in "[a\n\r]{0,40}", at in 0_usize..40) {
            let bytes = text.as_bytes();
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(lines(&[first, second]), lines(&[bytes]));
        }
    }
}
