//! The strict JSON write proposal of S2 §4.2: one object with `summary` and `writes`, with nothing
//! before or after it.

mod json;
mod read;

use std::borrow::Cow;

use crate::code::{Wording, codes};
use crate::diagnostic::Errors;

/// The files that a model proposes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal<'t> {
    /// The model's own description of the change.
    pub summary: Cow<'t, str>,
    /// At least one file; no path occurs twice.
    pub writes: Vec<FileWrite<'t>>,
}

/// The full new content of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite<'t> {
    /// The path as the model wrote it: not checked yet.
    pub path: Cow<'t, str>,
    /// The hash of the content that the model wants to replace, as it wrote it. An invalid hash
    /// counts as the hash of an empty file (S2 §6.4).
    pub base_sha256: Cow<'t, str>,
    /// The whole new content.
    pub content: Cow<'t, str>,
}

/// Size limits of a proposal (S2 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of one file's content, in bytes.
    pub file_bytes: usize,
    /// Maximum size of all contents together, in bytes.
    pub total_bytes: usize,
}

impl Default for Limits {
    /// 200 KB per file and 500 KB in total, where a KB is 1,024 bytes.
    fn default() -> Self {
        Self { file_bytes: 200 * 1024, total_bytes: 500 * 1024 }
    }
}

codes! {
    /// A reason why a proposal cannot be used.
    ProposalCode {
        /// Bytes that are not UTF-8.
        InvalidUtf8 = "invalid-utf8",
        /// The object is wrapped in a Markdown fence.
        MarkdownFence = "markdown-fence",
        /// Not JSON.
        Syntax = "syntax",
        /// The text ends before the object does.
        CutOff = "cut-off",
        /// Text after the object.
        TrailingData = "trailing-data",
        /// `NaN` or an infinity, which JSON does not have.
        NotANumber = "not-a-number",
        /// A string with a raw control character, an unknown escape or half a surrogate pair.
        BadString = "bad-string",
        /// A value of the wrong type.
        WrongType = "wrong-type",
        /// A key that is not in the schema.
        UnknownKey = "unknown-key",
        /// A required key is missing.
        MissingKey = "missing-key",
        /// The same key twice in one object.
        DuplicateKey = "duplicate-key",
        /// No file at all.
        EmptyWrites = "empty-writes",
        /// A file without a path.
        EmptyPath = "empty-path",
        /// The same path twice.
        DuplicatePath = "duplicate-path",
        /// Content with a NUL character, so it is not text (S2 §4.2).
        BinaryContent = "binary-content",
        /// A file's content exceeds its limit.
        FileTooLarge = "file-too-large",
        /// All contents together exceed the limit.
        ProposalTooLarge = "proposal-too-large",
    }
}

/// Reads a proposal. A syntax error ends reading; all other errors are reported together.
pub fn parse<'t>(bytes: &'t [u8], limits: &Limits) -> Result<Proposal<'t>, Errors<ProposalCode>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Errors::invalid_utf8(ProposalCode::InvalidUtf8, bytes, error))?;
    read::whole(text, limits)
}

impl Wording for ProposalCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::InvalidUtf8 => "the proposal is not valid UTF-8".to_owned(),
            Self::MarkdownFence => "the proposal is wrapped in a Markdown fence".to_owned(),
            Self::Syntax => format!("`{subject}` is not JSON here"),
            Self::CutOff => "the proposal ends too early".to_owned(),
            Self::TrailingData => "there is something behind the proposal".to_owned(),
            Self::NotANumber => format!("`{subject}` is not a value of JSON"),
            Self::BadString => format!("`{subject}` may not stand in a string"),
            Self::WrongType => format!("the value of `{subject}` has the wrong type"),
            Self::UnknownKey => format!("{subject} is not a key of a proposal"),
            Self::MissingKey => format!("`{subject}` is missing"),
            Self::DuplicateKey => format!("{subject} stands twice in one object"),
            Self::EmptyWrites => "`writes` is empty".to_owned(),
            Self::EmptyPath => "a file has no path".to_owned(),
            Self::DuplicatePath => format!("`{subject}` is written twice"),
            Self::BinaryContent => format!("the content of `{subject}` holds a NUL character"),
            Self::FileTooLarge => format!("the content of `{subject}` is too large"),
            Self::ProposalTooLarge => "the contents are too large together".to_owned(),
        }
    }

    fn advice(self, _: &str) -> String {
        let advice = match self {
            Self::InvalidUtf8 => "write plain UTF-8 text",
            Self::MarkdownFence => "begin with `{` and end with `}`, without lines of backquotes",
            Self::Syntax | Self::NotANumber => "write one JSON object and nothing else",
            Self::CutOff => "write the whole object, or fewer files",
            Self::TrailingData => "end with the `}` of the object",
            Self::BadString => "escape control characters, as in `\\n`, and write surrogates in pairs",
            Self::WrongType => "`writes` is a list of objects, every other value is a string",
            Self::UnknownKey | Self::MissingKey | Self::DuplicateKey => {
                "give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`"
            }
            Self::EmptyWrites => "propose one file at least",
            Self::EmptyPath => "give the path relative to the root of the repository",
            Self::DuplicatePath => "give each file once, with its final content",
            Self::BinaryContent => "propose files of text only",
            Self::FileTooLarge | Self::ProposalTooLarge => "propose less at once",
        };
        advice.to_owned()
    }
}

/// Without `.` components and doubled slashes, which mean nothing (S2 §6.2). `..` stays, to be
/// refused.
pub fn normalized_path(path: &str) -> String {
    let rooted = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{rooted}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalized_and_never_made_harmless() {
        let cases =
            [("./a.py", "a.py"), ("a//b", "a/b"), ("a/./b/", "a/b"), ("../a", "../a"), ("/etc", "/etc")];
        for (given, normal) in cases {
            assert_eq!(normalized_path(given), normal);
        }
    }
}
