//! The forms in which other tools take changes. None is ever guessed at: each is refused by its name.

use std::collections::HashSet;

use memchr::memmem;

use crate::Span;
use crate::code::ErrorCode;
use crate::edit::mark::{Mark, next_mark};

/// The first line of a change in the form of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Which form: `search-replace`, `apply-patch` or `unified-diff`.
    pub code: ErrorCode,
    /// Where its first line is.
    pub span: Span,
}

/// How `apply_patch` begins, for a model that leaves out the first line too.
const PATCH: [&str; 4] = [
    "*** Begin Patch",
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
];
/// The first mark of a hunk in the form of Cline.
const DASHED_SEARCH: &str = "------- SEARCH";

/// Anywhere in `text`, the first one that is whole enough to be meant.
pub(crate) fn anywhere(text: &str) -> Option<Foreign> {
    unmistakable(text).or_else(|| {
        let found = |span: &Span| is_diff(text.get(span.start..).unwrap_or_default());
        lines(text).find(found).map(|span| Foreign {
            code: ErrorCode::UnifiedDiff,
            span,
        })
    })
}

/// A form that nobody quotes in prose, other than a diff.
pub(crate) fn unmistakable(text: &str) -> Option<Foreign> {
    let hunk = hunk(text).map(|span| Foreign {
        code: ErrorCode::SearchReplace,
        span,
    });
    let patch = line_of(text, PATCH.first()?).map(|span| Foreign {
        code: ErrorCode::ApplyPatch,
        span,
    });
    [hunk, patch]
        .into_iter()
        .flatten()
        .min_by_key(|found| found.span.start)
}

/// The form of another tool that the new content of a whole file has. `old` gives its present content, which is read only
/// in doubt: a file that has such lines already may have others.
pub fn in_place_of_a_file(path: &str, new: &str, old: impl FnOnce() -> String) -> Option<Foreign> {
    let extension = path
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_of_diffs = ["diff", "patch", "rej"].contains(&&*extension);
    let quotes = ["md", "mdx", "markdown", "rst", "txt", "adoc"].contains(&&*extension);
    let begins = |text: &str| {
        let first =
            lines(text).find(|span| !is_around(text.get(span.clone()).unwrap_or_default()))?;
        let rest = text.get(first.start..).unwrap_or_default();
        let is_patch = PATCH.iter().any(|patch| rest.starts_with(patch));
        let code = match hunk(rest) {
            Some(hunk) if hunk.start == 0 => ErrorCode::SearchReplace,
            Some(_) | None if is_patch => ErrorCode::ApplyPatch,
            Some(_) | None => is_diff(rest).then_some(ErrorCode::UnifiedDiff)?,
        };
        Some(Foreign { code, span: first })
    };
    let holds = |text: &str| {
        let span = hunk(text).filter(|_| !quotes)?;
        Some(Foreign {
            code: ErrorCode::SearchReplace,
            span,
        })
    };
    let of = |text: &str| begins(text).or_else(|| holds(text));
    if is_of_diffs {
        return None;
    }
    match of(new) {
        Some(found) => of(&old()).is_none().then_some(found),
        None => {
            let is_bare = new
                .lines()
                .all(|line| line.is_empty() || line.starts_with([' ', '+', '-']));
            let first = lines(new)
                .next()
                .filter(|_| is_bare && is_diff_of(&old(), new))?;
            Some(Foreign {
                code: ErrorCode::UnifiedDiff,
                span: first,
            })
        }
    }
}

/// An empty line, or one of a Markdown fence.
pub(crate) fn is_around(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("```")
}

/// Each line without the white space at its end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Span> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..start + line.trim_end().len()
    })
}

/// The line that begins with this, if there is one.
fn line_of(text: &str, begins: &str) -> Option<Span> {
    let at = memmem::find_iter(text.as_bytes(), begins)
        .find(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'))?;
    let line = text.get(at..)?.lines().next()?;
    Some(at..at + line.trim_end().len())
}

/// The first mark of a hunk that has all three.
fn hunk(text: &str) -> Option<Span> {
    let mut at = 0;
    let (mut opening, mut wanted) = (None, Mark::Search);
    while let Some(found) = next_mark(text, at) {
        at = found.line.end;
        (opening, wanted) = match (found.mark, wanted) {
            (Mark::Search, _) => (Some(found.span), Mark::Divider),
            (Mark::Divider, Mark::Divider) => (opening, Mark::Replace),
            (Mark::Replace, Mark::Replace) => return opening,
            (Mark::Divider | Mark::Replace, _) => (opening, wanted),
        };
    }
    line_of(text, DASHED_SEARCH)
}

/// Whether a text begins with a header of a diff.
fn is_diff(text: &str) -> bool {
    let mut lines = text.lines();
    let (first, second) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let is_range = first
        .strip_prefix("@@ -")
        .is_some_and(|range| range.starts_with(|c: char| c.is_ascii_digit()));
    first.starts_with("diff --git ")
        || first.starts_with("--- ") && second.starts_with("+++ ")
        || is_range && first.split(' ').skip(2).any(|word| word == "@@")
}

/// Whether the lines with a minus are lines of the old file without it, and none is one with it.
fn is_diff_of(old: &str, new: &str) -> bool {
    let old: HashSet<&str> = old.lines().collect();
    let mut goes = new.lines().filter(|line| line.starts_with('-')).peekable();
    let is_old =
        |line: &str| !old.contains(line) && line.get(1..).is_some_and(|line| old.contains(line));
    goes.peek().is_some() && goes.all(is_old)
}
