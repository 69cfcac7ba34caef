//! The start and the end of a stream that may be longer than memory.

/// The first and the last bytes of a stream, and how long it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, none of which is in `head`.
    pub tail: Vec<u8>,
    /// How long the stream was, kept or not.
    pub total_bytes: u64,
}

impl Captured {
    /// The number of bytes between `head` and `tail`.
    pub fn left_out_bytes(&self) -> u64 {
        self.total_bytes
            .saturating_sub(self.head.len() as u64)
            .saturating_sub(self.tail.len() as u64)
    }

    /// The stream as text, with a note where bytes are missing; invalid UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        let left_out = self.left_out_bytes();
        if left_out == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat())
                .into_owned();
        }
        let head = String::from_utf8_lossy(without_cut_end(&self.head));
        let tail = String::from_utf8_lossy(without_cut_start(&self.tail));
        format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
    }
}

/// Drops an incomplete character at the end.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or(bytes)
        }
        Ok(_) | Err(_) => bytes,
    }
}

/// Drops an incomplete character at the start.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    bytes.get(rest..).unwrap_or(bytes)
}

/// Takes a stream piece by piece and keeps its two ends.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    head_limit: usize,
    tail_limit: usize,
    kept: Captured,
}

impl Capture {
    pub(crate) fn new(head_limit: usize, tail_limit: usize) -> Self {
        Self {
            head_limit,
            tail_limit,
            kept: Captured::default(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.kept.total_bytes += bytes.len() as u64;
        let room = self
            .head_limit
            .saturating_sub(self.kept.head.len())
            .min(bytes.len());
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.kept.head.extend_from_slice(head);
        let rest = rest
            .get(rest.len().saturating_sub(self.tail_limit)..)
            .unwrap_or(rest);
        self.kept.tail.extend_from_slice(rest);
        // Twice the limit, so that each byte is moved at most once more.
        if self.kept.tail.len() > self.tail_limit.saturating_mul(2) {
            self.cut_tail();
        }
    }

    pub(crate) fn finish(mut self) -> Captured {
        self.cut_tail();
        self.kept
    }

    fn cut_tail(&mut self) {
        let surplus = self.kept.tail.len().saturating_sub(self.tail_limit);
        self.kept.tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(head: usize, tail: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(head, tail);
        for piece in pieces {
            capture.push(piece);
        }
        capture.finish()
    }

    #[test]
    fn the_gap_is_named_and_counted() {
        insta::assert_snapshot!(captured(5, 4, &[b"start of ", b"a long", b" line\n"]).text(), @r"
        start
        [… 12 bytes left out …]
        ine
        ");
    }

    #[test]
    fn a_character_cut_by_the_gap_is_left_out_and_real_rubbish_is_shown() {
        insta::assert_snapshot!(captured(4, 4, &["aö€b-----x€\u{301}".as_bytes()]).text(), @r"
        aö
        [… 10 bytes left out …]
        ́
        ");
        insta::assert_snapshot!(captured(9, 9, &[b"\xff\xfe ok \xc3"]).text(), @"�� ok �");
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_two_ends_whatever_the_pieces(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            cuts in proptest::collection::vec(0_usize..60, 0..20),
            head in 0_usize..80,
            tail in 0_usize..80,
        ) {
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            let kept = captured(head, tail, &pieces);
            prop_assert_eq!(kept.total_bytes, bytes.len() as u64);
            prop_assert_eq!(&kept.head[..], &bytes[..head.min(bytes.len())]);
            let after_head = &bytes[kept.head.len()..];
            prop_assert_eq!(&kept.tail[..], &after_head[after_head.len().saturating_sub(tail)..]);
        }
    }
}
