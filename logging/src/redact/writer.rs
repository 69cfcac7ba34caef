//! Redacts a stream, in which a key may arrive in pieces.

use std::io;

use super::view::Rest;
use super::{PIECE, Redactor, tokens, whole_keys};

/// See [`Redactor::writer`]. Holds back only what may be the beginning of a key. If dropped without
/// [`finish`](Self::finish), that part is lost.
#[derive(Debug)]
pub struct RedactWriter<W: io::Write> {
    redactor: Redactor,
    held: Vec<u8>,
    inner: W,
}

impl<W: io::Write> RedactWriter<W> {
    pub(super) fn new(redactor: Redactor, inner: W) -> Self {
        RedactWriter {
            redactor,
            held: Vec::new(),
            inner,
        }
    }

    #[cfg(test)]
    pub(super) fn inner(&self) -> &W {
        &self.inner
    }

    /// Writes what was held back, flushes, and returns the inner writer.
    pub fn finish(mut self) -> io::Result<W> {
        let held = std::mem::take(&mut self.held);
        self.inner.write_all(&self.redactor.redact_bytes(&held))?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    /// Up to where nothing that follows can make a token of what is held.
    fn before_tokens(&self, end: usize) -> usize {
        if self.redactor.tokens {
            tokens::settled(self.held.get(..end).unwrap_or_default())
        } else {
            end
        }
    }

    /// Writes everything in `held` that following text cannot make part of a key.
    fn settle(&mut self) -> io::Result<()> {
        let Some(automaton) = &self.redactor.known.automaton else {
            let over = self.before_tokens(self.held.len());
            let settled: Vec<u8> = self.held.drain(..over).collect();
            return self.inner.write_all(&self.redactor.redact_tokens(&settled));
        };
        let mut searched = self.redactor.search(automaton, &self.held, Rest::MayFollow);
        // A key may end where a token begins, and the other way round.
        loop {
            let over = whole_keys(&searched.found, self.before_tokens(searched.settled));
            if over >= searched.settled {
                break;
            }
            searched.settled = over;
        }
        let mut redacted = Vec::with_capacity(searched.settled);
        self.redactor.replace(&self.held, &searched, &mut redacted);
        self.held.drain(..searched.settled);
        self.inner
            .write_all(&self.redactor.redact_tokens(&redacted))
    }
}

impl<W: io::Write> io::Write for RedactWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..PIECE).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        self.settle()?;
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
