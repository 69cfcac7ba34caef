//! Texts of models, builds and users, as a page may show them.

use std::borrow::Cow;
use std::cell::Cell;

use code_commit_report::phrases;

use crate::ansi::{Span, spans};

/// The beginning and the end of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The beginning, or all of it.
    pub head: String,
    /// The end; empty if `head` is all of it.
    pub tail: String,
    /// The length of the whole file in bytes.
    pub bytes: u64,
}

/// Reads the beginning and the end of a file of the record by its name, each up to this many bytes. `None` if there
/// is no such file.
pub type Read<'r> = dyn Fn(&str, u64) -> Option<Excerpt> + 'r;

/// The most that is shown of the beginning of a text, and of its end.
const MOST: u64 = 64 << 10;
/// The most that one page shows of all texts together.
const BUDGET: usize = 8 << 20;

/// Reads texts as long as the page has room.
pub(crate) struct Texts<'r> {
    read: &'r Read<'r>,
    left: Cell<usize>,
}

/// A text under its name, folded.
pub(crate) struct Folded {
    pub(crate) label: String,
    /// Its file and its length.
    pub(crate) about: String,
    pub(crate) is_open: bool,
    pub(crate) head: Vec<Span>,
    /// How much is left out between the beginning and the end, and where all of it is.
    pub(crate) gap: Option<String>,
    pub(crate) tail: Vec<Span>,
}

impl<'r> Texts<'r> {
    pub(crate) fn new(read: &'r Read<'r>) -> Self {
        Self {
            read,
            left: Cell::new(BUDGET),
        }
    }

    /// A file of the record; `None` if it is empty.
    pub(crate) fn folded(&self, label: &str, file: &str, is_open: bool) -> Option<Folded> {
        let Some(excerpt) = (self.read)(file, MOST) else {
            let about = format!("{}: not in this record", plain(file));
            return Some(Folded {
                about,
                ..Folded::empty(label)
            });
        };
        if excerpt.bytes == 0 {
            return None;
        }
        let file = plain(file);
        let about = format!("{file}, {}", phrases::bytes(excerpt.bytes));
        let wanted = excerpt.head.len() + excerpt.tail.len();
        let Some(left) = self.left.get().checked_sub(wanted) else {
            let gap = Some("not shown: this page is full; read the file".to_owned());
            return Some(Folded {
                about,
                gap,
                ..Folded::empty(label)
            });
        };
        self.left.set(left);
        let shown = wanted as u64;
        let gap = (!excerpt.tail.is_empty()).then(|| {
            let left_out = phrases::bytes(excerpt.bytes.saturating_sub(shown));
            format!("{left_out} left out here; all of it is in {file}")
        });
        let (head, tail) = (spans(&excerpt.head), spans(&excerpt.tail));
        Some(Folded {
            label: label.to_owned(),
            about,
            is_open,
            head,
            gap,
            tail,
        })
    }

    /// The text itself, for places where it has no file of its own.
    pub(crate) fn take(&self, text: &str) -> bool {
        let left = self.left.get().checked_sub(text.len());
        left.inspect(|left| self.left.set(*left)).is_some()
    }
}

impl Folded {
    fn empty(label: &str) -> Self {
        let (head, tail) = (Vec::new(), Vec::new());
        Self {
            label: label.to_owned(),
            about: String::new(),
            is_open: false,
            head,
            gap: None,
            tail,
        }
    }
}

/// Shows as escapes what nobody would see: control characters, invisible ones, and those that turn the direction of
/// writing, with which a file name could pass for another.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || code_commit_names::is_bidi(c)
            || code_commit_names::is_invisible(c)
    };
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_odd(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}
