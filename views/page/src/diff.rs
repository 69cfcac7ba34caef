//! Diffs, inline and side by side.

use std::ops::Range;
use std::time::Duration;

use code_commit_timeline::{Contents, FileEdit};
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

use crate::text::plain;

/// Longer files are not compared.
const LONGEST: usize = 1 << 20;
/// Lines of a diff that are shown.
const MOST_ROWS: usize = 2_000;
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
    /// The rows of the side-by-side view: old and new beside each other.
    pub(crate) pairs: Vec<Pair>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// ` `, `+`, `−`, or `…` for lines that are left out.
    pub(crate) sign: char,
    pub(crate) class: &'static str,
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether it is what differs.
    pub(crate) is_strong: bool,
    pub(crate) text: String,
}

/// Old and new beside each other.
pub(crate) struct Pair {
    pub(crate) old: Option<Row>,
    pub(crate) new: Option<Row>,
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
            pairs: Vec::new(),
        };
        let Some((before, after)) = contents.both(edit.before, edit.after) else {
            diff.note = Some("the record does not hold its content".to_owned());
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
                self.push(vec![Row::gap()]);
            }
            for op in group {
                // One more than fits, to see whether there are more.
                let room = MOST_ROWS + 1 - self.rows.len();
                let rows = compared
                    .iter_inline_changes(op)
                    .take(room)
                    .map(|change| Row {
                        sign: sign(change.tag()),
                        class: class(change.tag()),
                        old: change.old_index().map(|index| index + 1),
                        new: change.new_index().map(|index| index + 1),
                        pieces: change
                            .iter_strings_lossy()
                            .map(|(strong, text)| Piece::new(strong, &text))
                            .collect(),
                    });
                self.push(rows.collect());
                if self.rows.len() > MOST_ROWS {
                    self.rows.truncate(MOST_ROWS);
                    self.pairs.truncate(MOST_ROWS);
                    self.note = Some(format!(
                        "only the first {MOST_ROWS} lines of the diff are shown"
                    ));
                    return;
                }
            }
        }
    }

    /// Adds the rows of one operation. In a replacement, the old lines come first.
    fn push(&mut self, rows: Vec<Row>) {
        let is = |sign: char| rows.iter().filter(move |row| row.sign == sign).cloned();
        let (mut old, mut new) = (is('−'), is('+'));
        loop {
            let pair = Pair {
                old: old.next(),
                new: new.next(),
            };
            if pair.old.is_none() && pair.new.is_none() {
                break;
            }
            self.pairs.push(pair);
        }
        let both = rows.iter().filter(|row| !matches!(row.sign, '+' | '−'));
        self.pairs.extend(both.map(|row| Pair {
            old: Some(row.clone()),
            new: Some(row.clone()),
        }));
        self.rows.extend(rows);
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

fn sign(tag: ChangeTag) -> char {
    match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '−',
        ChangeTag::Insert => '+',
    }
}

fn class(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Equal => "same",
        ChangeTag::Delete => "del",
        ChangeTag::Insert => "ins",
    }
}
