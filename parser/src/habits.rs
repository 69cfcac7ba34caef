//! Typical mistakes of models that only show in comparison with the old file. They lead to
//! warnings, never to guesses.

use std::collections::HashSet;

/// A line that stands for omitted code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// The line in the new content, counted from 1.
    pub line: usize,
    /// The line without surrounding white space.
    pub text: &'t str,
}

/// The lines of `new` that say "rest of the code unchanged" or the like and do not occur in `old`.
pub fn placeholders<'t>(old: &str, new: &'t str) -> Vec<Placeholder<'t>> {
    let numbered = new.lines().enumerate().map(|(index, text)| Placeholder {
        line: index + 1,
        text: text.trim(),
    });
    let suspects: Vec<_> = numbered.filter(|line| is_placeholder(line.text)).collect();
    if suspects.is_empty() {
        return suspects;
    }
    let known: HashSet<&str> = old.lines().map(str::trim).collect();
    suspects
        .into_iter()
        .filter(|line| !known.contains(line.text))
        .collect()
}

/// Phrases that are sufficient on their own.
const PLAIN_WORDS: [&str; 12] = [
    "rest of the code",
    "rest of the file",
    "rest of the function",
    "rest of the implementation",
    "rest of the class",
    "rest of the module",
    "rest of file",
    "rest unchanged",
    "code unchanged",
    "omitted for brevity",
    "unchanged from the original",
    "same as before",
];
/// Phrases that count only together with an ellipsis.
const ELLIPTIC_WORDS: [&str; 9] = [
    "existing",
    "unchanged",
    "remain",
    "rest of",
    "previous",
    "same",
    "omitted",
    "other",
    "as before",
];
/// How comments begin in common languages.
const COMMENTS: [&str; 10] = [
    "//", "#", "--", "/*", "*", "<!--", ";", "%", "{/*", "\"\"\"",
];

fn is_placeholder(line: &str) -> bool {
    let comment = COMMENTS.iter().find_map(|leader| line.strip_prefix(leader));
    let said = comment.unwrap_or(line).trim_start();
    let is_elliptic = said.contains("...") || said.contains('…');
    let is_bare_ellipsis = said.starts_with("...") || said.starts_with('…');
    if comment.is_none() && !is_bare_ellipsis && !said.starts_with(['[', '(']) {
        return false;
    }
    let said = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    says(&PLAIN_WORDS) || is_elliptic && says(&ELLIPTIC_WORDS)
}

/// A file that lost most of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrink {
    /// Bytes before.
    pub before: usize,
    /// Bytes after.
    pub after: usize,
}

/// Reports a file that shrinks by more than 80 % of its bytes.
pub fn shrink(old: &[u8], new: &[u8]) -> Option<Shrink> {
    let (before, after) = (old.len(), new.len());
    (after.saturating_mul(5) < before).then_some(Shrink { before, after })
}

/// The line endings of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// With a line feed.
    Lf,
    /// With a carriage return and a line feed.
    CrLf,
    /// Both.
    Mixed,
}

impl LineEnds {
    /// `None` for a text without a line ending.
    pub fn of(text: &[u8]) -> Option<Self> {
        let mut lines = text
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.ends_with(b"\n"));
        let is_crlf = |line: &[u8]| line.ends_with(b"\r\n");
        let first = is_crlf(lines.next()?);
        let all_alike = lines.all(|line| is_crlf(line) == first);
        Some(match (all_alike, first) {
            (false, _) => Self::Mixed,
            (true, true) => Self::CrLf,
            (true, false) => Self::Lf,
        })
    }

    /// For messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
            Self::Mixed => "some LF, some CRLF",
        }
    }
}

/// The old and the new line endings of a file if they differ. A file with mixed line endings has no
/// style to preserve.
pub fn line_ends_changed(old: &[u8], new: &[u8]) -> Option<(LineEnds, LineEnds)> {
    let (before, after) = (LineEnds::of(old)?, LineEnds::of(new)?);
    (before != LineEnds::Mixed && before != after).then_some((before, after))
}

/// The mark at the beginning of some UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a file had a byte order mark and loses it.
pub fn loses_byte_order_mark(old: &[u8], new: &[u8]) -> bool {
    old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK)
}

/// The path without the `a/` or `b/` of a diff, unless the project has a folder of that name.
/// `is_folder` answers that question.
pub fn diff_prefix(path: &str, is_folder: impl Fn(&str) -> bool) -> Option<&str> {
    ["a", "b"].into_iter().find_map(|folder| {
        let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
        (!rest.is_empty() && !is_folder(folder)).then_some(rest)
    })
}
