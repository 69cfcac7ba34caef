//! Redacts a stream, in which a key may arrive in pieces.

use std::io;

use super::view::Rest;
use super::{PIECE, Redactor};

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
        RedactWriter { redactor, held: Vec::new(), inner }
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

    /// Writes everything in `held` that following text cannot make part of a key.
    fn settle(&mut self) -> io::Result<()> {
        let Some(automaton) = &self.redactor.0.automaton else {
            return self.inner.write_all(&std::mem::take(&mut self.held));
        };
        let searched = self.redactor.search(automaton, &self.held, Rest::MayFollow);
        let mut redacted = Vec::with_capacity(searched.settled);
        self.redactor.replace(&self.held, &searched, &mut redacted);
        self.held.drain(..searched.settled);
        self.inner.write_all(&redacted)
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
