//! The fences: their characters and words, and [`print()`], the inverse of [`parse`](crate::parse).

use crate::edit::{self, EDIT, Hunk};
use crate::line::{MarkerLines, Role};

/// The word that opens a thought.
pub const START: &str = "start";
/// The word that closes any block.
pub const END: &str = "end";
/// The word that ends a file's block by deleting the file (S1).
pub const DELETE: &str = "delete";
/// The length of a plain fence. Longer fences are for content that itself contains fence lines.
pub const PLAIN: usize = 3;

/// A reminder of the required form, for a model that replied without it.
pub const FORM: &str = "\
Answer in this form, each fence on a line of its own:

^^^path/of/the/file
the whole new content of the file
^^^end

If no file needs to change, answer in this one instead:

$$$start
the reason
$$$end
";

/// The four kinds of blocks in S0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `^^^PATH` … `^^^end` replaces a file, `^^^PATH` then `^^^delete` deletes it.
    File,
    /// `&&&start` … `&&&end` is shown to the user.
    User,
    /// `%%%start` … `%%%end` is kept for the next prompt.
    Debug,
    /// `$$$start` … `$$$end` says why nothing needs to change.
    NoChange,
}

impl Kind {
    /// All four, in the order of S0.
    pub const ALL: [Self; 4] = [Self::User, Self::Debug, Self::File, Self::NoChange];

    /// The character that this kind's fences consist of.
    pub const fn sigil(self) -> char {
        match self {
            Self::File => '^',
            Self::User => '&',
            Self::Debug => '%',
            Self::NoChange => '$',
        }
    }

    /// The fence of this kind with its plain length, such as `^^^`.
    pub fn fence(self) -> String {
        self.sigil().to_string().repeat(PLAIN)
    }
}

/// A block to be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`path` is the file's")]
pub enum Draft<'a> {
    /// Replace the file at `path`.
    Write {
        path: &'a str,
        /// Its new content: empty, or ending in a newline.
        content: &'a str,
    },
    /// Replace lines of the file at `path`.
    Edit {
        path: &'a str,
        /// At least one.
        hunks: &'a [Hunk<'a>],
    },
    /// Delete the file at `path`.
    Delete { path: &'a str },
    /// Show this to the user.
    User(&'a str),
    /// Keep this for the next prompt.
    Debug(&'a str),
    /// Say why nothing needs to change.
    NoChange(&'a str),
}

/// Why a [`Draft`] cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unprintable {
    /// End markers are on lines of their own, so non-empty content must end in a newline.
    #[error("the content does not end in a newline")]
    NoFinalNewline,
    /// An edit needs a hunk, and each hunk old lines.
    #[error("the edit has no hunk, or one without old lines")]
    NoHunk,
    /// The name would not be read back as itself.
    #[error("the name is {0}")]
    Name(#[from] NameFault),
}

/// Prints `blocks` so that [`parse`](crate::parse) reads back the same names and contents.
pub fn print<'a>(blocks: impl IntoIterator<Item = Draft<'a>>) -> Result<String, Unprintable> {
    let mut out = String::new();
    for block in blocks {
        print_block(&mut out, block)?;
    }
    Ok(out)
}

fn print_block(out: &mut String, block: Draft<'_>) -> Result<(), Unprintable> {
    let edited;
    let (kind, name, content, close) = match block {
        Draft::Edit { path, hunks } => {
            edited = edit::print(hunks)?;
            (Kind::File, path, edited.as_str(), END)
        }
        Draft::Write { path, content } => (Kind::File, path, content, END),
        Draft::Delete { path } => (Kind::File, path, "", DELETE),
        Draft::User(content) => (Kind::User, START, content, END),
        Draft::Debug(content) => (Kind::Debug, START, content, END),
        Draft::NoChange(content) => (Kind::NoChange, START, content, END),
    };
    if kind == Kind::File {
        check_name(name)?;
    }
    if !content.is_empty() && !content.ends_with('\n') {
        return Err(Unprintable::NoFinalNewline);
    }
    let fence = kind.sigil().to_string().repeat(length_for(kind, content));
    let word = if matches!(block, Draft::Edit { .. }) { [EDIT, " "] } else { ["", ""] };
    out.push_str(&fence);
    out.extend(word);
    out.extend([name, "\n", content, fence.as_str(), close, "\n"]);
    Ok(())
}

/// The shortest fence of `kind` that cannot be confused with a line of `content`.
pub fn length_for(kind: Kind, content: &str) -> usize {
    let mut plain = true;
    let mut taken = Vec::new();
    for line in MarkerLines::new(content).filter(|line| !line.glued) {
        let (is_content, closes) = match line.marker.role {
            Role::End | Role::Delete => (false, true),
            Role::Open(name) => (false, check_name(name) == Err(NameFault::Reserved)),
            Role::Bare => (true, false),
            Role::Crowded { whole_word, .. } => (!whole_word, false),
        };
        plain &= is_content || line.marker.length != PLAIN;
        if closes && line.marker.kind == kind {
            taken.push(line.marker.length);
        }
    }
    if plain {
        return PLAIN;
    }
    taken.sort_unstable();
    taken.iter().fold(PLAIN + 1, |free, &length| if length == free { free + 1 } else { free })
}

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
    } else if without_remark(name).is_some() {
        Err(NameFault::Remark)
    } else {
        Ok(())
    }
}

/// A quick check that most names pass: they contain nothing that any of the rules looks for.
fn is_plain(name: &str) -> bool {
    let begins = |first: u8| first.is_ascii_alphanumeric() && !matches!(first, b'd' | b'D' | b'e' | b'E');
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    name.bytes().next().is_some_and(begins) && name.bytes().all(goes_on)
}

/// Whether `name` begins with something that was probably meant as `end` or `delete`: `END`,
/// `end.`, `delete src/old.rs`.
fn is_like_a_word(name: &str) -> bool {
    let is_punctuation = |c: char| c.is_ascii_punctuation();
    let name = name.trim_start_matches(is_punctuation);
    let ends =
        |tail: &str| tail.trim_start_matches(is_punctuation).chars().next().is_none_or(char::is_whitespace);
    let begins_with = |word: &str| {
        let parts = name.split_at_checked(word.len());
        parts.is_some_and(|(head, tail)| head.eq_ignore_ascii_case(word) && ends(tail))
    };
    begins_with(END) || begins_with(DELETE)
}

fn is_quoted(name: &str) -> bool {
    [("`", "`"), ("\"", "\""), ("'", "'"), ("**", "**"), ("[", "]"), ("<", ">")]
        .iter()
        .any(|(open, close)| name.strip_prefix(open).is_some_and(|rest| rest.ends_with(close)))
}

/// The name without what was probably not meant to be part of it: a remark after it, or `edit`
/// before it (a reserved word). `None` if the name has neither.
pub(crate) fn without_remark(name: &str) -> Option<&str> {
    if let Some(edited) = edit::path(name) {
        return Some(edited);
    }
    let ends_as_a_file = has_extension(name);
    let blanks = name.match_indices(char::is_whitespace);
    let parts = blanks.filter_map(|(at, blank)| Some((name.get(..at)?, name.get(at + blank.len()..)?)));
    let remark = |(head, tail): &(&str, &str)| is_remark(head, tail, ends_as_a_file);
    parts.into_iter().find(remark).map(|(head, _)| head.trim_end())
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
        || begins(&["-", "\u{2013}", "\u{2014}"]) && !ends_as_a_file && has_extension(head.trim_end())
}

/// Whether the last word of `text` ends like a file name.
fn has_extension(text: &str) -> bool {
    let last = text.rsplit(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    let extension = last.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|letters| letters.starts_with(char::is_alphanumeric))
}
