//! Texts of models, builds and users, as a page may show them.

use std::cell::Cell;

use code_commit_report::phrases::{self, last_lines};
use code_commit_report::printable;

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
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) label: &'static str,
    /// Its file and its length.
    pub(crate) about: String,
    pub(crate) is_open: bool,
    pub(crate) head: String,
    /// How much is left out between the beginning and the end, and where all of it is.
    pub(crate) gap: Option<String>,
    pub(crate) tail: String,
}

impl<'r> Texts<'r> {
    pub(crate) fn new(read: &'r Read<'r>) -> Self {
        Self {
            read,
            left: Cell::new(BUDGET),
        }
    }

    /// A file of the record; `None` if it is empty.
    pub(crate) fn folded(&self, label: &'static str, file: &str, is_open: bool) -> Option<Folded> {
        let mut folded = Folded {
            label,
            about: format!("{file}: not in this record"),
            ..Folded::default()
        };
        let Some(excerpt) = (self.read)(file, MOST) else {
            return Some(folded);
        };
        if excerpt.bytes == 0 {
            return None;
        }
        folded.about = format!("{file}, {}", phrases::bytes(excerpt.bytes));
        let shown = excerpt.head.len() + excerpt.tail.len();
        if !self.take(shown) {
            folded.gap = Some("not shown: this page is full; read the file".to_owned());
            return Some(folded);
        }
        folded.gap = (!excerpt.tail.is_empty()).then(|| {
            let left_out = phrases::bytes(excerpt.bytes.saturating_sub(shown as u64));
            format!("{left_out} left out here; all of it is in {file}")
        });
        folded.is_open = is_open;
        folded.head = on_a_terminal(&excerpt.head);
        folded.tail = on_a_terminal(&excerpt.tail);
        Some(folded)
    }

    /// A file of the record, as much of it as a page shows.
    pub(crate) fn whole(&self, file: &str) -> Option<String> {
        let excerpt = (self.read)(file, MOST)?;
        Some(excerpt.head + &excerpt.tail)
    }

    /// Whether the page has room for this many bytes more.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        left.inspect(|left| self.left.set(*left)).is_some()
    }
}

impl Folded {
    /// The lines of an output that say why the command failed.
    pub(crate) fn why(&self) -> String {
        let both = self.head.lines().chain(self.tail.lines());
        let lines: Vec<&str> = both.filter(|line| !line.trim().is_empty()).collect();
        let (mut shown, last) = last_lines(&lines);
        if lines.len() > shown.len() + last.len() {
            shown.push("…");
        }
        shown.extend(last);
        shown.join("\n")
    }
}

/// As a terminal shows it in the end: a carriage return begins its line again, so that a progress bar shows its last
/// state. Colours and other sequences are left out.
fn on_a_terminal(text: &str) -> String {
    let last = |line: &str| {
        let line = line.trim_end_matches(['\r', '\n']);
        line.rsplit('\r').next().unwrap_or_default().to_owned() + "\n"
    };
    printable(&text.split_inclusive('\n').map(last).collect::<String>())
}
