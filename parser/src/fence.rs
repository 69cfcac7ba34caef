//! The fences: their characters and words, and [`print()`], the inverse of [`parse`](crate::parse).

use crate::line::{MarkerLines, Role};

/// The word that opens a thought.
pub const START: &str = "start";
/// The word that closes any block.
pub const END: &str = "end";
/// The word that closes a file's block by asking for the file's deletion (S1).
pub const DELETE: &str = "delete";
/// The length of a plain fence; a longer one holds text that itself has fence lines.
pub const PLAIN: usize = 3;

/// The form of an answer, for a model that has answered without it.
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

/// The four syntaxes of S0.
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
    /// All four, in the order in which S0 introduces them.
    pub const ALL: [Self; 4] = [Self::User, Self::Debug, Self::File, Self::NoChange];

    /// The character of which this kind's fences are made.
    pub const fn sigil(self) -> char {
        match self {
            Self::File => '^',
            Self::User => '&',
            Self::Debug => '%',
            Self::NoChange => '$',
        }
    }

    /// The fence of this kind in its plain length, such as `^^^`.
    pub fn fence(self) -> String {
        self.sigil().to_string().repeat(PLAIN)
    }
}

/// A block to be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draft<'a> {
    /// Replace the file at `path`.
    Write {
        /// The file's path.
        path: &'a str,
        /// Its new content: empty, or ending in a newline.
        content: &'a str,
    },
    /// Delete the file at `path`.
    Delete {
        /// The file's path.
        path: &'a str,
    },
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
    /// Markers stand on lines of their own, so content that is not empty ends in a newline.
    #[error("the content does not end in a newline")]
    NoFinalNewline,
    /// The name would not be read back as itself.
    #[error("the name is {0}")]
    Name(#[from] NameFault),
}

/// Prints `blocks` so that [`parse`](crate::parse) reads the same names and contents back.
pub fn print<'a>(blocks: impl IntoIterator<Item = Draft<'a>>) -> Result<String, Unprintable> {
    let mut out = String::new();
    for block in blocks {
        print_block(&mut out, block)?;
    }
    Ok(out)
}

fn print_block(out: &mut String, block: Draft<'_>) -> Result<(), Unprintable> {
    let (kind, name, content, close) = match block {
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
    out.extend([fence.as_str(), name, "\n", content, fence.as_str(), close, "\n"]);
    Ok(())
}

/// The shortest fence of `kind` that `content` cannot be confused with.
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

/// What keeps a string from being a file's name in a marker line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// There is nothing but blanks.
    #[error("empty")]
    Empty,
    /// A character below U+0020, U+007F, or one from U+0080 to U+009F.
    #[error("not free of control characters")]
    Control,
    /// In backquotes, quotes or brackets, as in Markdown.
    #[error("in quotes or brackets")]
    Quoted,
    /// `end` or `delete` with more around it or in capitals, a caret in front, or blanks at an end.
    #[error("not to be told from a word of the fences")]
    Reserved,
    /// `start`, which opens the other fences.
    #[error("the word that opens a thought")]
    Start,
    /// A remark behind the name, such as `(new file)` or `# new`, or `edit` in front of it.
    #[error("not free of remarks")]
    Remark,
}

/// Says whether `name` can be written after a `^^^` and be read back.
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

/// Most names: nothing in them that one of the rules looks for, which spares asking each of them.
fn is_plain(name: &str) -> bool {
    let begins = |first: u8| first.is_ascii_alphanumeric() && !matches!(first, b'd' | b'D' | b'e' | b'E');
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    name.bytes().next().is_some_and(begins) && name.bytes().all(goes_on)
}

/// Whether `name` begins with what was probably meant as `end` or `delete`: `END`, `end.`, `delete src/old.rs`.
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

/// The name without what was probably not meant as a part of it: a remark behind it, `edit` in front of it (DESIGN reserves that
/// word). None where it is a name as it stands.
pub(crate) fn without_remark(name: &str) -> Option<&str> {
    if let Some(edited) = name.strip_prefix("edit").filter(|rest| rest.starts_with(char::is_whitespace)) {
        return Some(edited.trim_start());
    }
    let ends_as_a_file = has_extension(name);
    let blanks = name.match_indices(char::is_whitespace);
    let parts = blanks.filter_map(|(at, blank)| Some((name.get(..at)?, name.get(at + blank.len()..)?)));
    let remark = |(head, tail): &(&str, &str)| is_remark(head, tail, ends_as_a_file);
    parts.into_iter().find(remark).map(|(head, _)| head.trim_end())
}

/// Whether `tail`, which stands behind a blank, says something about the file `head`. Names may have blanks, brackets and dashes
/// in them (`Report (1).txt`, `Artist - Song.mp3`), so most signs count only where they do not lead to an extension.
fn is_remark(head: &str, tail: &str, ends_as_a_file: bool) -> bool {
    let begins = |signs: &[&str]| signs.iter().any(|sign| tail.starts_with(sign));
    let is_bracketed = |open, close| tail.starts_with(open) && tail.ends_with(close);
    is_bracketed('(', ')')
        || is_bracketed('[', ']')
        || begins(&["//", "/*", "<!--", "<-", "->", "=>", "^^^"])
        || begins(&["#"]) && (!ends_as_a_file || has_extension(head.trim_end()))
        || begins(&["-", "\u{2013}", "\u{2014}"]) && !ends_as_a_file && has_extension(head.trim_end())
}

/// Whether the last word of `text` looks like the end of a file's name.
fn has_extension(text: &str) -> bool {
    let last = text.rsplit(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    let extension = last.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|letters| letters.starts_with(char::is_alphanumeric))
}
