//! Diffs.

use std::ops::Range;
use std::time::Duration;

use code_commit_timeline::{Contents, FileEdit};
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

use crate::text::plain;

/// Longer files are not compared.
const LONGEST: usize = 1 << 20;
/// Lines of a diff that are shown.
const MOST_ROWS: usize = 2_000;
/// Longer diffs are folded.
const LONG: usize = 40;
/// Unchanged lines around a change.
const AROUND: usize = 3;
/// After this time, a diff may be longer than it needs to be.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) struct Diff {
    pub(crate) letter: char,
    pub(crate) path: String,
    pub(crate) by_command: bool,
    /// `+3 −1`; empty if it is not known.
    pub(crate) added: String,
    pub(crate) removed: String,
    /// Why it is not shown, or not all of it.
    pub(crate) note: Option<String>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    /// ` `, `+`, `−`, or `…` for lines that are left out.
    pub(crate) sign: char,
    pub(crate) class: &'static str,
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
    pub(crate) pieces: Vec<Piece>,
}

pub(crate) struct Piece {
    /// Whether it is what differs.
    pub(crate) is_strong: bool,
    pub(crate) text: String,
}

impl Diff {
    pub(crate) fn of(edit: &FileEdit<'_>, contents: &Contents) -> Self {
        let mut diff = Self {
            letter: edit.letter(),
            path: plain(edit.path).into_owned(),
            by_command: edit.by_command,
            added: String::new(),
            removed: String::new(),
            note: None,
            rows: Vec::new(),
        };
        let Some((before, after)) = contents.both(edit.before, edit.after) else {
            diff.note = Some("its content is not in the record".to_owned());
            return diff;
        };
        let (Ok(before), Ok(after)) = (std::str::from_utf8(before), std::str::from_utf8(after))
        else {
            diff.note = Some("not text".to_owned());
            return diff;
        };
        if before.len().max(after.len()) > LONGEST {
            diff.note = Some("too long to be compared here".to_owned());
            return diff;
        }
        diff.compare(before, after);
        diff
    }

    fn compare(&mut self, before: &str, after: &str) {
        let compared = TextDiff::configure()
            .algorithm(Algorithm::Patience)
            .timeout(PATIENCE)
            .diff_lines(before, after);
        let lines = |range: fn(&DiffOp) -> Range<usize>, tag: DiffTag| {
            let ops = compared
                .ops()
                .iter()
                .filter(move |op| op.tag() == tag || op.tag() == DiffTag::Replace);
            ops.map(|op| range(op).len()).sum::<usize>()
        };
        self.added = format!("+{}", lines(DiffOp::new_range, DiffTag::Insert));
        self.removed = format!("−{}", lines(DiffOp::old_range, DiffTag::Delete));
        for (number, group) in compared.grouped_ops(AROUND).iter().enumerate() {
            if number > 0 && self.rows.len() < MOST_ROWS {
                self.rows.push(Row::gap());
            }
            for op in group {
                // One more than fits, to see whether there are more.
                let room = MOST_ROWS + 1 - self.rows.len();
                let rows = compared.iter_inline_changes(op).take(room).map(|change| {
                    let (sign, class) = sign_and_class(change.tag());
                    let pieces = change.iter_strings_lossy();
                    Row {
                        sign,
                        class,
                        old: change.old_index().map(|index| index + 1),
                        new: change.new_index().map(|index| index + 1),
                        pieces: pieces
                            .map(|(strong, text)| Piece::new(strong, &text))
                            .collect(),
                    }
                });
                self.rows.extend(rows);
                if self.rows.len() > MOST_ROWS {
                    self.rows.truncate(MOST_ROWS);
                    self.note = Some(format!(
                        "only the first {MOST_ROWS} lines of the diff are shown"
                    ));
                    return;
                }
            }
        }
    }

    /// Whether it is so long that it is folded.
    pub(crate) fn is_long(&self) -> bool {
        self.rows.len() > LONG
    }
}

impl Row {
    fn gap() -> Self {
        Self {
            sign: '…',
            class: "gap",
            old: None,
            new: None,
            pieces: Vec::new(),
        }
    }
}

impl Piece {
    fn new(is_strong: bool, text: &str) -> Self {
        Self {
            is_strong,
            text: plain(text.trim_end_matches(['\n', '\r'])).into_owned(),
        }
    }
}

fn sign_and_class(tag: ChangeTag) -> (char, &'static str) {
    match tag {
        ChangeTag::Equal => (' ', "same"),
        ChangeTag::Delete => ('−', "del"),
        ChangeTag::Insert => ('+', "ins"),
    }
}
