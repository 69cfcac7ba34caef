//! The framing of server-sent events (WHATWG HTML §9.2.6), of which only `data` is used.

use crate::CallError;

/// The maximum length of an event: no service sends a tenth of this at once.
const LONGEST_EVENT: usize = 32 << 20;

/// Takes bytes as they arrive, split anywhere, and returns the data of complete events.
///
/// ```
/// let mut frames = code_commit_llm::sse::Frames::default();
/// let mut seen = Vec::new();
/// for bytes in ["data: o", "ne\r", "\n\r\ndata: two\n\n"] {
///     frames.push(bytes.as_bytes(), |data| { seen.push(data.to_vec()); Ok(()) })?;
/// }
/// assert_eq!(seen, [b"one", b"two"]);
/// # Ok::<(), code_commit_llm::CallError>(())
/// ```
#[derive(Debug, Default)]
pub struct Frames {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    begun: bool,
    after_cr: bool,
}

impl Frames {
    /// Takes the next bytes and calls `each` with every event that they complete.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                return self.keep(bytes);
            };
            let (line, rest) = bytes.split_at(end);
            self.keep(line)?;
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            self.end_line(&mut each)?;
        }
        Ok(())
    }

    /// Ends the stream. Data without its final blank line still counts, because several servers
    /// leave it out.
    pub fn finish(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        if !self.line.is_empty() {
            self.end_line(&mut each)?;
        }
        self.end_event(&mut each)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), CallError> {
        if self.line.len() + self.data.len() + part.len() > LONGEST_EVENT {
            let detail = format!("an event longer than {LONGEST_EVENT} bytes");
            return Err(CallError::BadReply { detail });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Handles one line: a blank line ends the event, `data` adds to it, everything else is
    /// ignored.
    fn end_line(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let line = std::mem::take(&mut self.line);
        let bom: &[u8] = if std::mem::replace(&mut self.begun, true) {
            b""
        } else {
            b"\xef\xbb\xbf"
        };
        let text = line.strip_prefix(bom).unwrap_or(&line);
        if text.is_empty() {
            self.end_event(each)?;
        } else if let Some(value) = text.strip_prefix(b"data:") {
            self.add(value.strip_prefix(b" ").unwrap_or(value));
        } else if text == b"data" {
            self.add(b"");
        }
        self.line = line;
        self.line.clear();
        Ok(())
    }

    fn add(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
    }

    fn end_event(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        each(&self.data)?;
        self.data.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
