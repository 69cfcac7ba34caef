//! The answer of a model while it arrives: what a person who waits wants to know of it.

use code_commit_logging::Redactor;
use code_commit_parser::partial::Openers;

/// Only for those who watch: what counts is the whole answer, read again from its beginning.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// As the connection counts them, with all that surrounds the text.
    pub(super) bytes: u64,
    text: String,
    openers: Openers,
    files: Vec<String>,
}

impl Arriving {
    pub(super) fn add(&mut self, piece: &str, redactor: &Redactor) {
        self.text.push_str(piece);
        let opened = self.openers.read(&self.text);
        self.files.extend(
            opened
                .into_iter()
                .map(|path| redactor.redact(path).into_owned()),
        );
    }

    pub(super) fn text_bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// The paths whose blocks have begun, redacted, in their order.
    pub(super) fn files(&self) -> &[String] {
        &self.files
    }
}
