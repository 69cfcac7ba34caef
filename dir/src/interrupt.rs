use std::io::{self, Read};

/// Called between the steps of long work; its error ends the work.
pub type Interrupt<'i> = &'i dyn Fn() -> io::Result<()>;

/// The work goes on to its end.
pub const NEVER: Interrupt<'static> = &|| Ok(());

/// A reader that can be interrupted before each read.
pub struct Interruptible<'i, R> {
    inner: R,
    interrupt: Interrupt<'i>,
}

impl<'i, R> Interruptible<'i, R> {
    /// Reads from `inner`.
    pub fn new(inner: R, interrupt: Interrupt<'i>) -> Self {
        Self { inner, interrupt }
    }
}

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.interrupt)()?;
        self.inner.read(buffer)
    }
}
