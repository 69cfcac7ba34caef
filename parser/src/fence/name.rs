//! The names of files in marker lines.

use super::kind::{DELETE, END, NEED, START};
use crate::edit::mark;

/// Why a string cannot be a file name in a marker line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// Nothing but white space.
    #[error("empty")]
    Empty,
    /// A control character: below U+0020, U+007F, or U+0080 to U+009F.
    #[error("not free of control characters")]
    Control,
    /// In backquotes, quotes or brackets, as models do in Markdown.
    #[error("in quotes or brackets")]
    Quoted,
    /// `end` or `delete` with additional characters or in upper case, a leading caret, or white
    /// space at either end.
    #[error("not to be told from a word of the fences")]
    Reserved,
    /// `start`, which opens the other kinds of blocks.
    #[error("the word that opens a thought")]
    Start,
    /// A word for an operation before or after it, such as `remove` or `rename`.
    #[error("next to a word for an operation")]
    Operation,
    /// A remark after the name, such as `(new file)` or `# new`, or `edit` before it.
    #[error("not free of remarks")]
    Remark,
}

/// Checks that `name` can be written after `^^^` and read back unchanged.
pub fn check_name(name: &str) -> Result<(), NameFault> {
    if name == START {
        Err(NameFault::Start)
    } else if is_plain(name) {
        Ok(())
    } else if name.trim().is_empty() {
        Err(NameFault::Empty)
    } else if name.contains(char::is_control) {
        Err(NameFault::Control)
    } else if is_quoted(name) {
        Err(NameFault::Quoted)
    } else if name.starts_with('^') || name.trim() != name || is_like_a_word(name) {
        Err(NameFault::Reserved)
    } else if operation(name).is_some() {
        Err(NameFault::Operation)
    } else if without_remark(name).is_some() {
        Err(NameFault::Remark)
    } else {
        Ok(())
    }
}

/// A quick check that most names pass: they contain nothing that any of the rules looks for.
fn is_plain(name: &str) -> bool {
    let begins =
        |first: u8| first.is_ascii_alphanumeric() && !matches!(first, b'd' | b'D' | b'e' | b'E');
    let goes_on =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    name.bytes().next().is_some_and(begins) && name.bytes().all(goes_on)
}

/// Whether `name` begins with something that was probably meant as `end` or `delete`: `END`,
/// `end.`, `delete src/old.rs`.
fn is_like_a_word(name: &str) -> bool {
    let is_punctuation = |c: char| c.is_ascii_punctuation();
    let name = name.trim_start_matches(is_punctuation);
    let ends = |tail: &str| {
        tail.trim_start_matches(is_punctuation)
            .chars()
            .next()
            .is_none_or(char::is_whitespace)
    };
    let begins_with = |word: &str| {
        let parts = name.split_at_checked(word.len());
        parts.is_some_and(|(head, tail)| head.eq_ignore_ascii_case(word) && ends(tail))
    };
    begins_with(END) || begins_with(DELETE)
}

fn is_quoted(name: &str) -> bool {
    let pairs = [
        ("`", "`"),
        ("\"", "\""),
        ("'", "'"),
        ("**", "**"),
        ("[", "]"),
        ("<", ">"),
    ];
    let is_in = |(open, close): &(&str, &str)| {
        let rest = name.strip_prefix(open);
        rest.is_some_and(|rest| rest.ends_with(close))
    };
    pairs.iter().any(is_in)
}

/// The words with which models and other tools ask for an operation.
const OPERATIONS: [(&str, Operation); 25] = [
    ("add", Operation::Write),
    ("append", Operation::Write),
    ("copy", Operation::Move),
    ("cp", Operation::Move),
    ("create", Operation::Write),
    (DELETE, Operation::Delete),
    (mark::EDIT, Operation::Edit),
    ("file", Operation::Write),
    ("insert", Operation::Write),
    ("mkdir", Operation::Write),
    ("modify", Operation::Write),
    ("move", Operation::Move),
    ("mv", Operation::Move),
    (NEED, Operation::Write),
    ("new", Operation::Write),
    ("overwrite", Operation::Write),
    ("path", Operation::Write),
    ("remove", Operation::Delete),
    ("rename", Operation::Move),
    ("replace", Operation::Write),
    ("rm", Operation::Delete),
    ("touch", Operation::Write),
    ("unlink", Operation::Delete),
    ("update", Operation::Write),
    ("write", Operation::Write),
];

/// What a word in [`OPERATIONS`] asks for, by the block that does it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Write,
    Edit,
    Delete,
    /// One block for each of two files.
    Move,
}

/// The operation that a word before or after `name` asks for, and the name without the word.
///
/// A blank parts the two: `new` and `remove.rs` are names like any other.
pub(crate) fn operation(name: &str) -> Option<(Operation, &str)> {
    let is_apart = |c: char| c.is_whitespace() || c == ':';
    let before = name
        .split_once(is_apart)
        .filter(|_| mark::path(name).is_none());
    let after = name
        .rsplit_once(char::is_whitespace)
        .filter(|_| without_remark(name).is_none());
    let words = [before, after.map(|(rest, word)| (word, rest))];
    words.into_iter().flatten().find_map(|(said, rest)| {
        let is_said = |(word, _): &&(&str, Operation)| said.eq_ignore_ascii_case(word);
        let (_, operation) = OPERATIONS.iter().find(is_said)?;
        let rest = rest.trim_matches(is_apart);
        (!rest.is_empty()).then_some((*operation, rest))
    })
}

/// The name without what was probably not meant to be part of it: a remark after it, or `edit`
/// before it (a reserved word). `None` if the name has neither.
pub(crate) fn without_remark(name: &str) -> Option<&str> {
    if let Some(edited) = mark::path(name) {
        return Some(edited);
    }
    let ends_as_a_file = has_extension(name);
    let mut blanks = name.match_indices(char::is_whitespace);
    blanks.find_map(|(at, blank)| {
        let (head, tail) = (name.get(..at)?, name.get(at + blank.len()..)?);
        is_remark(head, tail, ends_as_a_file).then(|| head.trim_end())
    })
}

/// Whether `tail`, the text after a blank, is a remark about the file `head`. Real names may
/// contain blanks, brackets and dashes (`Report (1).txt`, `Artist - Song.mp3`), so most signs count
/// only if no file extension follows.
fn is_remark(head: &str, tail: &str, ends_as_a_file: bool) -> bool {
    let begins = |signs: &[&str]| signs.iter().any(|sign| tail.starts_with(sign));
    let is_bracketed = |open, close| tail.starts_with(open) && tail.ends_with(close);
    is_bracketed('(', ')')
        || is_bracketed('[', ']')
        || begins(&["//", "/*", "<!--", "<-", "->", "=>", "^^^"])
        || begins(&["#"]) && (!ends_as_a_file || has_extension(head.trim_end()))
        || begins(&["-", "\u{2013}", "\u{2014}"])
            && !ends_as_a_file
            && has_extension(head.trim_end())
}

/// Whether the last word of `text` ends like a file name.
fn has_extension(text: &str) -> bool {
    let last = text
        .rsplit(|c: char| c.is_whitespace() || c == '/')
        .next()
        .unwrap_or_default();
    let extension = last.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|letters| letters.starts_with(char::is_alphanumeric))
}
