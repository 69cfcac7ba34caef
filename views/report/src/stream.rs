//! Where text is written to.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A stream, whether it supports colours, and its width. Clones write to the same stream.
#[derive(Clone)]
pub struct Stream {
    to: Arc<Mutex<dyn Write + Send>>,
    columns: fn() -> Option<usize>,
    /// Whether it supports colours.
    pub(crate) colour: bool,
}

impl Stream {
    /// A stream without a width: lines are never wrapped.
    pub fn new(to: impl Write + Send + 'static, colour: bool) -> Self {
        Self {
            to: Arc::new(Mutex::new(to)),
            columns: || None,
            colour,
        }
    }

    /// Wraps lines at this width, which may change while the program runs.
    #[must_use]
    pub fn as_wide_as(self, columns: fn() -> Option<usize>) -> Self {
        Self { columns, ..self }
    }

    pub(crate) fn columns(&self) -> Option<usize> {
        (self.columns)()
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.write_all(bytes).and_then(|()| to.flush())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("colour", &self.colour)
            .finish_non_exhaustive()
    }
}
