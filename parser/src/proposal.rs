//! The strict JSON write proposal of S2 §4.2: one object with `summary` and `writes`, with nothing
//! before or after it.

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;

use crate::code::codes;
use crate::diagnostic::{MOST_KEPT, MOST_QUOTED, quote};
use crate::edit::Hunk;
use crate::scan::count_newlines;

/// The files that a model proposes to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The model's own description of the change.
    pub summary: String,
    /// At least one file; no path occurs twice.
    pub writes: Vec<FileWrite>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The path as the model wrote it: not checked yet.
    pub path: String,
    /// The hash of the content that the model wants to replace, as it wrote it. An invalid hash
    /// counts as the hash of an empty file (S2 §6.4).
    pub base_sha256: String,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The whole new content.
    Content(String),
    /// Lines that are replaced, in place of the whole content; at least one edit.
    Edits(Vec<Edit>),
}

/// A hunk of an edit block, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Whole lines to find, exactly once; never empty.
    pub search: String,
    /// The lines that take their place.
    pub replace: String,
}

impl Edit {
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
        /// Not JSON: `NaN`, half a surrogate pair and raw control characters in strings included.
        Syntax = "syntax",
        /// The text ends before the object does.
        CutOff = "cut-off",
        /// Text after the object.
        TrailingData = "trailing-data",
        /// A key that is unknown, missing or given twice, or a value of the wrong type.
        Schema = "schema",
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

impl ProposalCode {
    /// What to write instead: a lower-case imperative, for the model.
    fn advice(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "write plain UTF-8 text",
            Self::MarkdownFence => "begin with `{` and end with `}`, without lines of backquotes",
            Self::Syntax => {
                "write one JSON object and nothing else; in strings, escape control characters, as in `\\n`, and write \
                 surrogates in pairs"
            }
            Self::CutOff => "write the whole object, or fewer files",
            Self::TrailingData => "end with the `}` of the object",
            Self::Schema | Self::NoContent => {
                "give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`"
            }
            Self::ContentAndEdits => "give the whole new content, or edits, but not both",
            Self::EmptyEdits => "give at least one edit, or the whole new content",
            Self::EmptySearch => {
                "repeat the lines that the new ones go next to, or give the whole new content"
            }
            Self::EmptyWrites => "propose at least one file",
            Self::EmptyPath => "give the path relative to the root of the repository",
            Self::DuplicatePath => "give each file once, with its final content",
            Self::BinaryContent => "propose files of text only",
            Self::FileTooLarge | Self::ProposalTooLarge => "propose less at once",
        }
    }
}

/// One reason why a proposal cannot be used, and where. Displayed as `writes[2].content: …`, with
/// what to write instead, in one line for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}{what}; {}", code.advice())]
#[non_exhaustive]
pub struct Fault {
    /// What is wrong.
    pub code: ProposalCode,
    /// The line, counted from 1, on which reading stopped; `None` if the whole text could be read.
    pub line: Option<usize>,
    /// The path of the value and a colon, or nothing.
    at: String,
    what: String,
}

/// How many characters of a path in the JSON, and of serde's message, are kept: both quote the
/// reply, in which a key may have any length.
const MOST_TOLD: usize = 200;

impl Fault {
    fn new(code: ProposalCode, path: &str, what: &str) -> Self {
        // serde's sign for the root, and for a key that could not be read.
        let at = match path.trim_end_matches(['.', '?']) {
            "" => String::new(),
            path => quote(path, MOST_TOLD) + ": ",
        };
        Self {
            code,
            line: None,
            at,
            what: quote(&what.replace('\n', "\\n"), MOST_TOLD),
        }
    }

    fn of_json(code: ProposalCode, path: &str, error: &serde_json::Error) -> Self {
        Self {
            line: Some(error.line().max(1)),
            ..Self::new(code, path, &error.to_string())
        }
    }
}

/// Reads a proposal. Reading stops at the first fault of syntax or schema; what is wrong with the
/// files of a readable proposal is reported together, at most [`MOST_KEPT`] faults and never none.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Proposal, Vec<Fault>> {
    let schema = read(bytes).map_err(|fault| vec![fault])?;
    let faults = schema.faults(limits);
    if faults.is_empty() {
        Ok(Proposal {
            summary: schema.summary,
            writes: schema
                .writes
                .into_iter()
                .map(|Object(write)| write.into())
                .collect(),
        })
    } else {
        Err(faults)
    }
}

fn read(bytes: &[u8]) -> Result<Schema, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        Fault {
            line: Some(count_newlines(valid) + 1),
            ..Fault::new(
                ProposalCode::InvalidUtf8,
                "",
                "the proposal is not valid UTF-8",
            )
        }
    })?;
    if text.trim_start().starts_with("```") {
        let what = "the proposal is wrapped in a Markdown fence";
        return Err(Fault::new(ProposalCode::MarkdownFence, "", what));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let Object(schema) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let code = match error.inner().classify() {
            Category::Eof => ProposalCode::CutOff,
            Category::Data => ProposalCode::Schema,
            Category::Syntax | Category::Io => ProposalCode::Syntax,
        };
        Fault::of_json(code, &error.path().to_string(), error.inner())
    })?;
    json.end()
        .map_err(|error| Fault::of_json(ProposalCode::TrailingData, "", &error))?;
    Ok(schema)
}

/// A proposal as it stands in the JSON. The derived code refuses keys that are unknown, missing or
/// given twice, and does not descend into what it refuses.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    summary: String,
    writes: Vec<Object<Write>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    base_sha256: String,
    #[serde(default, deserialize_with = "given")]
    content: Option<String>,
    #[serde(default, deserialize_with = "given")]
    edits: Option<Vec<Object<Edit>>>,
}

/// `null` is a value of the wrong type; only a missing key means none.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// A value that is an object in the JSON: serde alone would also take a list of its fields.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl Schema {
    /// What S2 §4.2 forbids although it has the right form.
    fn faults(&self, limits: &Limits) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.writes.is_empty() {
            let what = "there is no file";
            faults.push(Fault::new(ProposalCode::EmptyWrites, "writes", what));
        }
        let mut paths = HashSet::new();
        for (index, Object(write)) in self.writes.iter().enumerate() {
            let is_new = paths.insert(&write.path);
            faults.extend(write.faults(index, is_new, limits));
            if faults.len() >= MOST_KEPT {
                break;
            }
        }
        let bytes: usize = self.writes.iter().map(|Object(write)| write.bytes()).sum();
        if bytes > limits.total_bytes {
            let what = "the contents are too large together";
            faults.push(Fault::new(ProposalCode::ProposalTooLarge, "writes", what));
        }
        faults.truncate(MOST_KEPT);
        faults
    }
}

impl Write {
    fn faults(&self, index: usize, is_new: bool, limits: &Limits) -> impl Iterator<Item = Fault> {
        use ProposalCode as Code;
        let searches = || self.edits.iter().flatten().map(|Object(edit)| &edit.search);
        let (has_content, has_edits) = (self.content.is_some(), self.edits.is_some());
        let key = if has_edits { ".edits" } else { ".content" };
        let path = quote(&self.path, MOST_QUOTED);
        let check = |is_fault: bool, code, key, what| {
            let at = format!("writes[{index}]{key}");
            is_fault.then(|| Fault::new(code, &at, &format!("`{path}` {what}")))
        };
        let (is_empty, is_vague) = (
            searches().next().is_none(),
            searches().any(String::is_empty),
        );
        let is_binary = self.texts().any(|text| text.contains('\0'));
        let is_large = self.bytes() > limits.file_bytes;
        let (both, none) = (has_content && has_edits, !has_content && !has_edits);
        let vague = "has an edit with no lines to search for";
        let binary = "has a NUL character in its content";
        [
            check(
                self.path.is_empty(),
                Code::EmptyPath,
                ".path",
                "is not a path",
            ),
            check(!is_new, Code::DuplicatePath, ".path", "is written twice"),
            check(
                both,
                Code::ContentAndEdits,
                "",
                "has both `content` and `edits`",
            ),
            check(none, Code::NoContent, "", "has no `content`"),
            check(has_edits && is_empty, Code::EmptyEdits, key, "has no edits"),
            check(is_vague, Code::EmptySearch, key, vague),
            check(is_binary, Code::BinaryContent, key, binary),
            check(is_large, Code::FileTooLarge, key, "is too large"),
        ]
        .into_iter()
        .flatten()
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let edits = self.edits.iter().flatten();
        let edits = edits.flat_map(|Object(edit)| [&edit.search, &edit.replace]);
        self.content.iter().chain(edits)
    }

    fn bytes(&self) -> usize {
        self.texts().map(String::len).sum()
    }
}

impl From<Write> for FileWrite {
    /// Of `content` and `edits`, exactly one is given: the others are faults.
    fn from(write: Write) -> Self {
        let edits = write.edits.into_iter().flatten();
        let change = match write.content {
            Some(content) => Change::Content(content),
            None => Change::Edits(edits.map(|Object(edit)| edit).collect()),
        };
        Self {
            path: write.path,
            base_sha256: write.base_sha256,
            change,
        }
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
