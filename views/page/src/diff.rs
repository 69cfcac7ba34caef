//! Diffs.

use std::ops::Range;
use std::time::Duration;

use code_commit_timeline::{Contents, FileEdit};
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

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

#[derive(Default)]
pub(crate) struct Row {
    /// ` `, `+`, `−`, or `…` for lines that are left out.
    pub(crate) sign: char,
    pub(crate) class: &'static str,
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
    /// Its text in pieces, and whether each is what differs.
    pub(crate) pieces: Vec<(bool, String)>,
}

impl Diff {
    pub(crate) fn of(edit: &FileEdit<'_>, contents: &Contents) -> Self {
        let mut diff = Self {
            letter: edit.letter(),
            path: edit.path.to_owned(),
            by_command: edit.by_command,
            added: String::new(),
            removed: String::new(),
            note: None,
            rows: Vec::new(),
        };
        match texts(edit, contents) {
            Ok((before, after)) if before.len().max(after.len()) > LONGEST => {
                diff.note = Some("too long to be compared here".to_owned());
            }
            Ok((before, after)) => diff.compare(before, after),
            Err(why) => diff.note = Some(why.to_owned()),
        }
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
                self.rows.push(Row {
                    sign: '…',
                    class: "gap",
                    ..Row::default()
                });
            }
            for op in group {
                // One more than fits, to see whether there are more.
                let room = MOST_ROWS + 1 - self.rows.len();
                let rows = compared.iter_inline_changes(op).take(room).map(|change| {
                    let (sign, class) = match change.tag() {
                        ChangeTag::Equal => (' ', "same"),
                        ChangeTag::Delete => ('−', "del"),
                        ChangeTag::Insert => ('+', "ins"),
                    };
                    let pieces = change.iter_strings_lossy();
                    Row {
                        sign,
                        class,
                        old: change.old_index().map(|index| index + 1),
                        new: change.new_index().map(|index| index + 1),
                        pieces: pieces
                            .map(|(strong, text)| {
                                (strong, text.trim_end_matches(['\n', '\r']).to_owned())
                            })
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

/// Both contents of a file, or why they cannot be compared.
pub(crate) fn texts<'c>(
    edit: &FileEdit<'_>,
    contents: &'c Contents,
) -> Result<(&'c str, &'c str), &'static str> {
    let both = contents.both(edit.before, edit.after);
    let (before, after) = both.ok_or("its content is not in the record")?;
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "not text");
    Ok((text(before)?, text(after)?))
}
