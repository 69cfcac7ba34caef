//! A streamed answer on disk while it arrives: what was paid for is not lost when the run is killed.

use std::fs::File;
use std::io::Write as _;

use logging::{RedactWriter, RunFolder};

/// The parts of the answers to one prompt: `1-partial.txt`, then `1-partial-2.txt` for what was sent after the first
/// broke off. They only help a person: nothing is decided from them, a run goes on without them, and the prompt is sent
/// again.
#[derive(Debug)]
pub(super) struct Partial {
    round: u32,
    /// Those of this call.
    files: Vec<String>,
    /// The last of them, while it is written. Without it no part has begun; `Some(None)`: it cannot be written.
    writer: Option<Option<RedactWriter<File>>>,
}

impl Partial {
    pub(super) fn of_round(round: u32) -> Self {
        Self { round, files: Vec::new(), writer: None }
    }

    /// Appends text. The first text of an attempt begins a new file: an earlier one is what a killed run has left.
    pub(super) fn add(&mut self, text: &str, folder: &RunFolder) {
        let mut writer = self.writer.take().unwrap_or_else(|| self.begin(folder));
        let is_written = writer.as_mut().is_some_and(|writer| writer.write_all(text.as_bytes()).is_ok());
        self.writer = Some(writer.filter(|_| is_written));
    }

    fn begin(&mut self, folder: &RunFolder) -> Option<RedactWriter<File>> {
        let names = (1_u32..).map(|number| match number {
            1 => format!("{}-partial.txt", self.round),
            _ => format!("{}-partial-{number}.txt", self.round),
        });
        let file = names.into_iter().find(|file| !folder.path().join(file).exists())?;
        let writer = folder.writer(&file).ok()?;
        self.files.push(file);
        Some(writer)
    }

    /// The attempt is over: its part is kept, and another may begin.
    pub(super) fn end(&mut self) {
        let _ = self.writer.take().flatten().map(RedactWriter::finish);
    }

    /// The whole answer is on disk: its parts are needed no longer.
    pub(super) fn is_whole(mut self, folder: &RunFolder) {
        for file in std::mem::take(&mut self.files) {
            let _ = std::fs::remove_file(folder.path().join(file));
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.end();
    }
}
