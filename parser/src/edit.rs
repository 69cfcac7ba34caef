//! Edit blocks (`^^^edit PATH`): hunks that replace lines of a file, in place of its whole content.
//!
//! A hunk is `<<<<<<< SEARCH`, old lines, `=======`, new lines, `>>>>>>> REPLACE`, each mark alone on
//! its line. All marks of a block have as many characters as its first one: seven, or more if the
//! content holds such marks itself. What models write instead is read where it cannot mean anything
//! else: five signs or more, text behind SEARCH and REPLACE, a Markdown fence around hunks.

mod apply;
mod loose;
pub(crate) mod mark;
mod misfit;

pub use apply::{Landed, apply, land};
pub use mark::{EDIT, marks};
pub use misfit::{Misfit, Rule, Why};

use crate::code::ErrorCode;
use crate::foreign::{is_around, lines};
use crate::span::{Span, slice};
use mark::{Mark, MarkLine, next_mark};

/// Whole lines to find, exactly once, and the lines that take their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hunk<'t> {
    /// At least one line; the last may lack its newline.
    pub search: &'t str,
    /// Any number of lines; the last may lack its newline.
    pub replace: &'t str,
}

/// The hunks of a file's edit blocks, in their order; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunks<'t> {
    contents: Vec<&'t str>,
}

impl<'t> Hunks<'t> {
    /// Those of blocks that have been read without an error.
    pub(crate) fn of(contents: Vec<&'t str>) -> Self {
        Self { contents }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Hunk<'t>> {
        self.contents.iter().flat_map(|content| {
            let mut reader = Reader::new(content);
            std::iter::from_fn(move || reader.hunk().ok().flatten())
        })
    }

    /// What the blocks hold between their fences.
    pub fn text(&self) -> String {
        self.contents.concat()
    }
}

/// What is wrong with the block whose content is at `content`, if anything.
///
/// content = blanks hunk *(blanks hunk) blanks
pub(crate) fn check(text: &str, content: &Span, opening: &Span) -> Option<(ErrorCode, Span)> {
    let mut reader = Reader::new(slice(text, content));
    loop {
        match reader.hunk() {
            Ok(Some(_)) => {}
            Ok(None) if reader.length.is_some() => return None,
            Err((code, span)) if reader.length.is_some() => {
                return Some((code, content.start + span.start..content.start + span.end));
            }
            Ok(None) | Err(_) => return Some((ErrorCode::NoHunks, opening.clone())),
        }
    }
}

struct Reader<'t> {
    content: &'t str,
    at: usize,
    /// That of the first mark, which all others share.
    length: Option<usize>,
}

impl<'t> Reader<'t> {
    fn new(content: &'t str) -> Self {
        Self {
            content,
            at: 0,
            length: None,
        }
    }

    /// hunk = search-mark 1*line divider *line replace-mark
    ///
    /// `None` if only white space follows.
    fn hunk(&mut self) -> Result<Option<Hunk<'t>>, (ErrorCode, Span)> {
        let first = next_mark(self.content, self.at);
        self.length = self.length.or(first.as_ref().map(|mark| mark.length));
        let between = self.at
            ..first
                .as_ref()
                .map_or(self.content.len(), |mark| mark.line.start);
        if let Some(text) = first_text(self.content, &between) {
            return Err((ErrorCode::TextOutsideHunk, text));
        }
        let Some(opening) = first else {
            return Ok(None);
        };
        if opening.mark != Mark::Search || Some(opening.length) != self.length {
            return Err((ErrorCode::HunkMark, opening.span));
        }
        let divider = self.expect(&opening, Mark::Divider, opening.line.end)?;
        let end = self.expect(&opening, Mark::Replace, divider.line.end)?;
        self.at = end.line.end;
        let search = slice(self.content, &(opening.line.end..divider.line.start));
        if search.is_empty() {
            return Err((ErrorCode::EmptySearch, opening.span));
        }
        let replace = slice(self.content, &(divider.line.end..end.line.start));
        Ok(Some(Hunk { search, replace }))
    }

    /// The next mark of the block's length, which must be this one.
    fn expect(
        &self,
        opening: &MarkLine,
        wanted: Mark,
        from: usize,
    ) -> Result<MarkLine, (ErrorCode, Span)> {
        let mut at = from;
        while let Some(found) = next_mark(self.content, at) {
            at = found.line.end;
            if found.length == opening.length {
                let is_wanted = found.mark == wanted;
                return if is_wanted {
                    Ok(found)
                } else {
                    Err((ErrorCode::HunkMark, found.span))
                };
            }
        }
        Err((ErrorCode::UnterminatedHunk, opening.span.clone()))
    }
}

/// The first line that is neither blank nor a Markdown fence.
fn first_text(content: &str, span: &Span) -> Option<Span> {
    let text = slice(content, span);
    let line = lines(text).find(|line| !is_around(slice(text, line)))?;
    let indent = slice(text, &line).len() - slice(text, &line).trim_start().len();
    Some(span.start + line.start + indent..span.start + line.end)
}
