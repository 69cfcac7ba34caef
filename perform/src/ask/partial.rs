//! An answer on disk while it arrives: what was paid for is not lost when the run is killed.

use std::fs::File;
use std::io::Write as _;

use code_commit_logging::{RedactWriter, RunFolder};

/// The parts of the answers to one prompt: `1-partial.txt`, then `1-partial-2.txt` for what was sent after the first
/// broke off. They only help a person: nothing is decided from them, a run goes on without them, and the prompt is sent
/// again.
#[derive(Debug)]
pub(super) struct Partial {
    round: u32,
    /// Those of this call.
    files: Vec<String>,
    /// Whether the last of them is that of the present attempt.
    has_begun: bool,
    /// It, as long as it can be written.
    writer: Option<RedactWriter<File>>,
}

impl Partial {
    pub(super) fn of_round(round: u32) -> Self {
        Self {
            round,
            files: Vec::new(),
            has_begun: false,
            writer: None,
        }
    }

    /// Appends what has arrived. The first of an attempt begins a new file: an earlier one is what a killed run has left.
    pub(super) fn add(&mut self, bytes: &[u8], folder: &RunFolder) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.writer = self.begin(folder);
        }
        self.writer
            .take_if(|writer| writer.write_all(bytes).is_err());
    }

    fn begin(&mut self, folder: &RunFolder) -> Option<RedactWriter<File>> {
        let names = (1_u32..).map(|number| match number {
            1 => format!("{}-partial.txt", self.round),
            _ => format!("{}-partial-{number}.txt", self.round),
        });
        let file = names
            .into_iter()
            .find(|file| !folder.path().join(file).exists())?;
        let writer = folder.writer(&file).ok()?;
        self.files.push(file);
        Some(writer)
    }

    /// The attempt is over: its part is kept, and another may begin.
    pub(super) fn end(&mut self) {
        self.has_begun = false;
        let _ = self.writer.take().map(RedactWriter::finish);
    }

    /// The whole answer is on disk: its parts are needed no longer.
    pub(super) fn discard(mut self, folder: &RunFolder) {
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
