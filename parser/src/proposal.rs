//! The strict JSON write proposal of S2 §4.2: one object with `summary` and `writes`, with nothing
//! before or after it.

mod json;
mod read;

use std::borrow::Cow;

use crate::code::{Wording, codes};
use crate::diagnostic::Errors;
use crate::edit::Hunk;

/// The files that a model proposes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal<'t> {
    /// The model's own description of the change.
    pub summary: Cow<'t, str>,
    /// At least one file; no path occurs twice.
    pub writes: Vec<FileWrite<'t>>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite<'t> {
    /// The path as the model wrote it: not checked yet.
    pub path: Cow<'t, str>,
    /// The hash of the content that the model wants to replace, as it wrote it. An invalid hash
    /// counts as the hash of an empty file (S2 §6.4).
    pub base_sha256: Cow<'t, str>,
    /// What becomes of it.
    pub change: Change<'t>,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'t> {
    /// The whole new content.
    Content(Cow<'t, str>),
    /// Lines that are replaced, in place of the whole content; at least one edit.
    Edits(Vec<Edit<'t>>),
}

impl Change<'_> {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let (content, edits) = match self {
            Self::Content(content) => (Some(&**content), [].as_slice()),
            Self::Edits(edits) => (None, edits.as_slice()),
        };
        content.into_iter().chain(
            edits
                .iter()
                .flat_map(|edit| [&*edit.search, &*edit.replace]),
        )
    }

    fn bytes(&self) -> usize {
        self.texts().map(str::len).fold(0, usize::saturating_add)
    }
}

/// A hunk of an edit block, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'t> {
    /// Whole lines to find, exactly once; never empty.
    pub search: Cow<'t, str>,
    /// The lines that take their place.
    pub replace: Cow<'t, str>,
}

impl Edit<'_> {
    /// As [`edit::apply`](crate::edit::apply) takes it.
    pub fn hunk(&self) -> Hunk<'_> {
        Hunk {
            search: &self.search,
            replace: &self.replace,
        }
    }
}

/// Size limits of a proposal (S2 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of one file's content, or of all its edits, in bytes.
    pub file_bytes: usize,
    /// Maximum size of all contents and edits together, in bytes.
    pub total_bytes: usize,
}

impl Default for Limits {
    /// 200 KB per file and 500 KB in total, where a KB is 1,024 bytes.
    fn default() -> Self {
        Self {
            file_bytes: 200 * 1024,
            total_bytes: 500 * 1024,
        }
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
        /// A file with both `content` and `edits`.
        ContentAndEdits = "content-and-edits",
        /// A file with neither `content` nor `edits`.
        NoContent = "no-content",
        /// `edits` without an edit.
        EmptyEdits = "empty-edits",
        /// An edit that searches for nothing.
        EmptySearch = "empty-search",
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
            Self::TrailingData => "there is text after the proposal".to_owned(),
            Self::NotANumber => format!("`{subject}` is not a JSON value"),
            Self::BadString => format!("`{subject}` is not allowed in a string"),
            Self::WrongType => format!("the value of `{subject}` has the wrong type"),
            Self::UnknownKey => format!("{subject} is not a key of a proposal"),
            Self::MissingKey => format!("`{subject}` is missing"),
            Self::DuplicateKey => format!("{subject} appears twice in one object"),
            Self::ContentAndEdits => format!("`{subject}` has both `content` and `edits`"),
            Self::NoContent => format!("`{subject}` has no `content`"),
            Self::EmptyEdits => format!("the `edits` of `{subject}` are empty"),
            Self::EmptySearch => format!("an edit of `{subject}` has no lines to search for"),
            Self::EmptyWrites => "`writes` is empty".to_owned(),
            Self::EmptyPath => "a file has no path".to_owned(),
            Self::DuplicatePath => format!("`{subject}` is written twice"),
            Self::BinaryContent => format!("the content of `{subject}` contains a NUL character"),
            Self::FileTooLarge => format!("the content of `{subject}` is too large"),
            Self::ProposalTooLarge => "the contents are too large together".to_owned(),
        }
    }

    fn advice(self, subject: &str) -> String {
        let advice = match self {
            Self::WrongType | Self::MissingKey
                if ["edits", "search", "replace"].contains(&subject) =>
            {
                "`edits` is a list of objects, each with `search` and `replace`, which are strings"
            }
            Self::InvalidUtf8 => "write plain UTF-8 text",
            Self::MarkdownFence => "begin with `{` and end with `}`, without lines of backquotes",
            Self::Syntax | Self::NotANumber => "write one JSON object and nothing else",
            Self::CutOff => "write the whole object, or fewer files",
            Self::TrailingData => "end with the `}` of the object",
            Self::BadString => {
                "escape control characters, as in `\\n`, and write surrogates in pairs"
            }
            Self::WrongType => "`writes` is a list of objects, every other value is a string",
            Self::ContentAndEdits => "give the whole new content, or edits, but not both",
            Self::EmptyEdits => "give at least one edit, or the whole new content",
            Self::EmptySearch => {
                "repeat the lines that the new ones go next to, or give the whole new content"
            }
            Self::UnknownKey | Self::MissingKey | Self::DuplicateKey | Self::NoContent => {
                "give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`"
            }
            Self::EmptyWrites => "propose at least one file",
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
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    format!("{rooted}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalized_and_never_made_harmless() {
        let cases = [
            ("./a.py", "a.py"),
            ("a//b", "a/b"),
            ("a/./b/", "a/b"),
            ("../a", "../a"),
            ("/etc", "/etc"),
        ];
        for (given, normal) in cases {
            assert_eq!(normalized_path(given), normal);
        }
    }
}
