//! What a command prints, for a program that serves it.

use std::io::{self, Write};

use code_commit_report::{Output, Stream, Volume};
use serde_json::Value;

/// One line of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An object, as `--json` prints it: an event, or a result.
    Object(Value),
    /// A note, a warning or an error: one or more lines of text.
    Note(String),
}

/// The output of a command whose lines go to `hear`, each with the keys redacted that `output` knows.
pub fn captured(output: &Output, hear: impl Fn(Heard) + Clone + Send + 'static) -> Output {
    let object = hear.clone();
    let out = Lines(move |line: &str| {
        // It was JSON when it was printed.
        if let Ok(value) = serde_json::from_str(line) {
            object(Heard::Object(value));
        }
    });
    let err = Lines(move |line: &str| hear(Heard::Note(line.to_owned())));
    let mut output = output.onto(Stream::new(out, false), Stream::new(err, false));
    (output.json, output.volume, output.live) = (true, Volume::Verbose, false);
    output
}

/// An [`Output`] writes whole lines.
struct Lines<F>(F);

impl<F: Fn(&str)> Write for Lines<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
