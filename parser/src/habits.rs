//! What models do wrong that only shows beside the old file: signs to warn of, never grounds to guess.

use std::collections::HashSet;

/// A line that stands for code it does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// The line in the new content, counted from 1.
    pub line: usize,
    /// The line without the blanks around it.
    pub text: &'t str,
}

/// The lines of `new` that say "rest of the code unchanged" or the like and that `old` has not.
pub fn placeholders<'t>(old: &str, new: &'t str) -> Vec<Placeholder<'t>> {
    let numbered =
        new.lines().enumerate().map(|(index, text)| Placeholder { line: index + 1, text: text.trim() });
    let suspects: Vec<_> = numbered.filter(|line| is_placeholder(line.text)).collect();
    if suspects.is_empty() {
        return suspects;
    }
    let known: HashSet<&str> = old.lines().map(str::trim).collect();
    suspects.into_iter().filter(|line| !known.contains(line.text)).collect()
}

/// Words that say it alone.
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
/// Words that say it beside an ellipsis.
const ELLIPTIC_WORDS: [&str; 9] =
    ["existing", "unchanged", "remain", "rest of", "previous", "same", "omitted", "other", "as before"];
/// How a comment begins in the languages that there are.
const COMMENTS: [&str; 10] = ["//", "#", "--", "/*", "*", "<!--", ";", "%", "{/*", "\"\"\""];

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

/// A file that lost most of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrink {
    /// Bytes before.
    pub before: usize,
    /// Bytes after.
    pub after: usize,
}

/// Says by how much a file shrinks, if by more than 80 % of its bytes.
pub fn shrink(old: &[u8], new: &[u8]) -> Option<Shrink> {
    let (before, after) = (old.len(), new.len());
    (after.saturating_mul(5) < before).then_some(Shrink { before, after })
}

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// With a line feed.
    Lf,
    /// With a carriage return and a line feed.
    CrLf,
    /// Some so, some so.
    Mixed,
}

impl LineEnds {
    /// None of a text without a line end.
    pub fn of(text: &[u8]) -> Option<Self> {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let is_crlf = |line: &[u8]| line.ends_with(b"\r\n");
        let first = is_crlf(lines.next()?);
        let all_alike = lines.all(|line| is_crlf(line) == first);
        Some(match (all_alike, first) {
            (false, _) => Self::Mixed,
            (true, true) => Self::CrLf,
            (true, false) => Self::Lf,
        })
    }

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
            Self::Mixed => "some LF, some CRLF",
        }
    }
}

/// How the lines of a file ended and how they do now, where that is not the same. What was mixed before has no style to keep.
pub fn line_ends_changed(old: &[u8], new: &[u8]) -> Option<(LineEnds, LineEnds)> {
    let (before, after) = (LineEnds::of(old)?, LineEnds::of(new)?);
    (before != LineEnds::Mixed && before != after).then_some((before, after))
}

/// The mark at the beginning of some files in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a file that began with a byte order mark does so no more.
pub fn loses_byte_order_mark(old: &[u8], new: &[u8]) -> bool {
    old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK)
}

/// The path without the `a/` or `b/` that diffs put in front, where the project has no such folder. `is_folder`
/// says whether a name is one there.
pub fn diff_prefix(path: &str, is_folder: impl Fn(&str) -> bool) -> Option<&str> {
    ["a", "b"].into_iter().find_map(|folder| {
        let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
        (!rest.is_empty() && !is_folder(folder)).then_some(rest)
    })
}
