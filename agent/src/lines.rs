//! Bytes as they come, in lines.

/// A longer line is no event of any CLI: it is let through in pieces, so that memory stays bounded.
const LONGEST: usize = 64 << 20;

/// Puts lines together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Vec<u8>,
}

impl Lines {
    /// Hands every line that is complete to `take`, without its end.
    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.open.extend_from_slice(piece);
            if pieces.peek().is_some() || self.open.len() > LONGEST {
                take(self.open.strip_suffix(b"\r").unwrap_or(&self.open));
                self.open.clear();
            }
        }
    }

    /// The last line, if nothing ended it.
    pub(crate) fn finish(self, take: &mut dyn FnMut(&[u8])) {
        if !self.open.is_empty() {
            take(&self.open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut all, mut lines) = (Vec::new(), Lines::default());
        pieces.iter().for_each(|piece| lines.push(piece, &mut |line| all.push(line.to_vec())));
        lines.finish(&mut |line| all.push(line.to_vec()));
        all
    }

    #[test]
    fn a_line_longer_than_a_pipe_comes_whole() {
        let long = vec![b'x'; 200_000];
        let (first, second) = long.split_at(70_000);
        assert_eq!(lines(&[first, second, b"\r\nend"]), [long, b"end".to_vec()]);
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
