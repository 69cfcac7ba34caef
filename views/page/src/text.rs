//! Texts of models, builds and users, as a page may show them.

use std::borrow::Cow;
use std::cell::Cell;

use code_commit_report::{phrases, printable};
use code_commit_timeline::names_failure;

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
/// Of a failed command, the page shows first this many lines at the end of its output.
const LAST_LINES: usize = 12;
/// Of the lines above them, it shows this many that name a failure: a test runner's end is only a count.
const NAMED_LINES: usize = 3;
/// Lines of a reply without files.
const REPLY_LINES: usize = 10;

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
        let name = plain(file);
        let folded = |about, gap| Folded {
            label,
            about,
            gap,
            ..Folded::default()
        };
        let Some(excerpt) = (self.read)(file, MOST) else {
            return Some(folded(format!("{name}: not in this record"), None));
        };
        if excerpt.bytes == 0 {
            return None;
        }
        let about = format!("{name}, {}", phrases::bytes(excerpt.bytes));
        let shown = excerpt.head.len() + excerpt.tail.len();
        let Some(left) = self.left.get().checked_sub(shown) else {
            let gap = "not shown: this page is full; read the file".to_owned();
            return Some(folded(about, Some(gap)));
        };
        self.left.set(left);
        let gap = (!excerpt.tail.is_empty()).then(|| {
            let left_out = phrases::bytes(excerpt.bytes.saturating_sub(shown as u64));
            format!("{left_out} left out here; all of it is in {name}")
        });
        Some(Folded {
            is_open,
            head: on_a_terminal(&excerpt.head),
            tail: on_a_terminal(&excerpt.tail),
            ..folded(about, gap)
        })
    }

    /// The text itself, for places where it has no file of its own.
    pub(crate) fn take(&self, text: &str) -> bool {
        let left = self.left.get().checked_sub(text.len());
        left.inspect(|left| self.left.set(*left)).is_some()
    }
}

impl Folded {
    fn lines(&self) -> Vec<&str> {
        let both = self.head.lines().chain(self.tail.lines());
        both.filter(|line| !line.trim().is_empty()).collect()
    }

    /// The lines of an output that say why the command failed: its last ones, and above them the first that name a failure.
    pub(crate) fn why(&self) -> String {
        let lines = self.lines();
        let (above, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
        let named = above.iter().filter(|line| names_failure(line));
        let mut shown: Vec<&str> = named.take(NAMED_LINES).copied().collect();
        if above.len() > shown.len() {
            shown.push("…");
        }
        shown.extend(last);
        shown.join("\n")
    }

    /// Its first lines.
    pub(crate) fn beginning(&self) -> String {
        let lines = self.lines();
        lines.get(..REPLY_LINES).unwrap_or(&lines).join("\n")
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

/// Shows as escapes what nobody would see: control characters, invisible ones, and those that turn the direction of
/// writing, with which a file name could pass for another.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || code_commit_names::is_bidi(c)
            || code_commit_names::is_invisible(c)
    };
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| {
        if is_odd(c) {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(shown).collect()
}
