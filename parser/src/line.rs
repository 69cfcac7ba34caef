//! Marker lines: the grammar of a single line, and a forward scan that finds all of them.

use memchr::{memchr, memmem};
use nom::branch::alt;
use nom::bytes::complete::{tag, tag_no_case, take_while, take_while1};
use nom::combinator::{eof, rest, verify};
use nom::error::Error;
use nom::sequence::preceded;
use nom::{IResult, Parser};

use crate::Span;
use crate::edit::mark;
use crate::fence::kind::{DELETE, END, Kind, PLAIN, START};
use crate::fence::name::{NameFault, check_name};
use crate::fence::tag::{self, TURN_ENDS, Tag};
use crate::scan::{next_mark, next_run};
use crate::span::slice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker<'t> {
    pub(crate) kind: Kind,
    /// How many sigils the fence has.
    pub(crate) length: usize,
    pub(crate) role: Role<'t>,
    /// Not the word of a thought in another case, or with a letter behind it. Only in thoughts of
    /// its own kind is such a line an end.
    pub(crate) exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role<'t> {
    /// A path after carets; after the other fences the text behind `start`.
    Open(&'t str),
    End,
    Delete,
    /// Carets and nothing else.
    Bare,
    /// A thought on one line: the text between `start` and its own end marker.
    Whole(&'t str),
    /// `start` or `end` of a thought with another fence on its line, or `end` in a longer word.
    Crowded {
        ends: bool,
    },
    /// `<think>`, or the end of such a thought; only outside blocks.
    Tag(Tag),
}

/// A line from its first sigil on, without trailing white space:
///
/// marker = file-marker / user-marker / debug-marker / no-change-marker
fn marker(line: &str) -> IResult<&str, Marker<'_>> {
    alt((
        file_marker,
        thought_marker(Kind::User),
        thought_marker(Kind::Debug),
        thought_marker(Kind::NoChange),
    ))
    .parse(line)
}

/// file-marker = fence blanks (`end` / `delete` / more carets / path)?
fn file_marker(line: &str) -> IResult<&str, Marker<'_>> {
    let role = rest.map(|word: &str| match word {
        END => Role::End,
        DELETE => Role::Delete,
        carets
            if carets
                .chars()
                .all(|c| c == Kind::File.sigil() || is_blank(c)) =>
        {
            Role::Bare
        }
        path => Role::Open(path),
    });
    (fence(Kind::File), preceded(blanks, role))
        .map(|(length, role)| Marker {
            kind: Kind::File,
            length,
            role,
            exact: true,
        })
        .parse(line)
}

/// thought-marker = fence blanks (`start` / `end`) text? glued-end?, the words in any case
fn thought_marker<'t>(
    kind: Kind,
) -> impl Parser<&'t str, Output = Marker<'t>, Error = Error<&'t str>> {
    let word = alt((tag_no_case(START), tag_no_case(END)));
    (fence(kind), preceded(blanks, word), rest).map(move |(length, word, text): (_, &str, &str)| {
        let ends = word.eq_ignore_ascii_case(END);
        let is_word = !text.chars().next().is_some_and(is_of_word);
        let mark = next_run(text.as_bytes(), 0).and_then(|at| text.split_at_checked(at));
        let role = match mark {
            None if !ends => Role::Open(text.trim()),
            None if is_word => Role::End,
            Some((said, tail)) if !ends && glued_end(tail) == Ok(("", (kind, length))) => {
                Role::Whole(said.trim())
            }
            None | Some(_) => Role::Crowded { ends },
        };
        Marker {
            kind,
            length,
            role,
            exact: is_word && [START, END].contains(&word),
        }
    })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// glued-end = fence blanks `end` blanks (newline / end of text), the word of a thought in any case
fn glued_end(input: &str) -> IResult<&str, (Kind, usize)> {
    let kind = |kind: Kind| fence(kind).map(move |length| (kind, length));
    let kinds = alt((
        kind(Kind::File),
        kind(Kind::User),
        kind(Kind::Debug),
        kind(Kind::NoChange),
    ));
    let end = (
        kinds,
        preceded(blanks, tag_no_case(END)),
        blanks,
        alt((eof, tag("\n"))),
    );
    verify(end, |((kind, _), word, ..)| {
        *kind != Kind::File || *word == END
    })
    .map(|(fence, ..)| fence)
    .parse(input)
}

/// fence = 3*`^` / 3*`&` / 3*`%` / 3*`$`
fn fence<'t>(kind: Kind) -> impl Parser<&'t str, Output = usize, Error = Error<&'t str>> {
    let run = take_while1(move |c| c == kind.sigil());
    verify(run.map(str::len), |&length| length >= PLAIN)
}

/// blanks = any Unicode white space except the newline, or nothing
fn blanks(input: &str) -> IResult<&str, &str> {
    take_while(is_blank).parse(input)
}

pub(crate) fn is_blank(c: char) -> bool {
    c != '\n' && c.is_whitespace()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkerLine<'t> {
    pub(crate) marker: Marker<'t>,
    /// From the first sigil to the end of the word.
    pub(crate) span: Span,
    /// The whole line, including leading white space and the newline.
    pub(crate) line: Span,
    /// There is text before it on its line, so it is content, whatever it says.
    pub(crate) glued: bool,
}

impl MarkerLine<'_> {
    /// Outside blocks, such a line underlines something, as compilers do: carets alone, or indented
    /// carets followed by two or more words.
    ///
    /// Carets with a single word always open a block, and neither `^^^edit src/a.rs` nor
    /// `^^^delete src/old.rs` is ever prose:
    /// otherwise half of a reply could pass for prose that surrounds the rest.
    pub(crate) fn is_underline(&self) -> bool {
        match self.marker.role {
            Role::Bare => true,
            Role::Open(text) if self.marker.kind == Kind::File => {
                let is_indented = self.span.start > self.line.start;
                let is_attached = self.span.len() == self.marker.length + text.len();
                let is_word = mark::path(text).is_some()
                    || matches!(
                        check_name(text),
                        Err(NameFault::Reserved | NameFault::Operation)
                    );
                let is_word_of_fences = is_attached && is_word;
                is_indented && text.contains(is_blank) && !is_word_of_fences
            }
            Role::Open(_)
            | Role::End
            | Role::Delete
            | Role::Whole(_)
            | Role::Crowded { .. }
            | Role::Tag(_) => false,
        }
    }

    pub(crate) fn fence(&self) -> (Kind, usize) {
        (self.marker.kind, self.marker.length)
    }

    /// Whether it means something outside blocks.
    pub(crate) fn is_fence(&self) -> bool {
        !self.glued && !self.is_underline()
    }

    /// Whether a token that ended the turn of a model was left out.
    pub(crate) fn has_turn_end(&self, text: &str) -> bool {
        let said = slice(text, &self.line).trim_end();
        !self.glued && self.span.end < self.line.start + said.len()
    }
}

/// Every marker line of a text in order, found in one pass. Includes lines that end in `^^^end`,
/// marked as `glued`.
#[derive(Debug, Clone)]
pub(crate) struct MarkerLines<'t> {
    text: &'t str,
    at: usize,
    /// The end of a thought between tags: what follows on its line is at the beginning of a line.
    first_line: usize,
}

impl<'t> MarkerLines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self::starting(text, 0)
    }

    /// Starts at `at`, which must be the beginning of a line.
    pub(crate) fn starting(text: &'t str, at: usize) -> Self {
        Self {
            text,
            at,
            first_line: at,
        }
    }

    /// The next marker line or tag. Inside blocks nobody asks for tags.
    pub(crate) fn next_outside(&mut self) -> Option<MarkerLine<'t>> {
        loop {
            let at = next_mark(self.text.as_bytes(), self.at)?;
            let tag = self.text.as_bytes().get(at..).and_then(tag::at);
            let found = match tag {
                Some((tag, length)) => Some(self.read_tag(at, tag, length)),
                None => self.read(at),
            };
            if found.is_some() {
                return found;
            }
        }
    }

    /// Goes on behind the tag that was read last, where a line begins.
    pub(crate) fn begin_line(&mut self) {
        self.first_line = self.at;
    }

    /// Moves past the end of the thought whose opening tag was read last. Returns the end, if there
    /// is one, and the first fence in the thought.
    pub(crate) fn skip_thought(&mut self, opening: Tag) -> (Option<usize>, Option<Span>) {
        let from = self.at;
        let rest = slice(self.text, &(from..self.text.len()));
        let end = memmem::find(rest.as_bytes(), opening.end.as_bytes()).map(|at| from + at);
        let content = slice(self.text, &(0..end.unwrap_or(self.text.len())));
        let fence = Self::starting(content, from)
            .find(MarkerLine::is_fence)
            .map(|line| line.span);
        self.at = end.map_or(self.text.len(), |end| end + opening.end.len());
        self.begin_line();
        (end, fence)
    }
}

impl<'t> Iterator for MarkerLines<'t> {
    type Item = MarkerLine<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = next_run(self.text.as_bytes(), self.at)?;
            let found = self.read(at);
            if found.is_some() {
                return found;
            }
        }
    }
}

impl<'t> MarkerLines<'t> {
    fn read(&mut self, at: usize) -> Option<MarkerLine<'t>> {
        match self.line_start(at) {
            Some(start) => self.read_line(start, at),
            None => self.read_glued(at),
        }
    }

    fn read_tag(&mut self, at: usize, tag: Tag, length: usize) -> MarkerLine<'t> {
        self.at = at + length;
        // The fence of no block.
        let marker = Marker {
            kind: Kind::Debug,
            length: 0,
            role: Role::Tag(tag),
            exact: true,
        };
        let glued = self.line_start(at).is_none();
        MarkerLine {
            marker,
            span: at..self.at,
            line: at..self.at,
            glued,
        }
    }

    /// Reads the line whose first sigil is at `at`, and moves past it.
    fn read_line(&mut self, start: usize, at: usize) -> Option<MarkerLine<'t>> {
        let tail = self.text.get(at..)?;
        let length = memchr(b'\n', tail.as_bytes()).map_or(tail.len(), |newline| newline + 1);
        self.at = at + length;
        let said = self.without_turn_end(tail.get(..length)?.trim_end());
        let (_, marker) = marker(said).ok()?;
        Some(MarkerLine {
            marker,
            span: at..at + said.len(),
            line: start..self.at,
            glued: false,
        })
    }

    /// An end marker without the token that ended the turn of the model, if it is the last line.
    fn without_turn_end(&self, said: &'t str) -> &'t str {
        let is_last = || {
            slice(self.text, &(self.at..self.text.len()))
                .trim()
                .is_empty()
        };
        let ends = |said: &&str| {
            let marker = marker(said).map(|(_, marker)| marker.role);
            matches!(marker, Ok(Role::End | Role::Delete))
        };
        let without = |token| said.strip_suffix(token).map(str::trim_end);
        let tokens = said.ends_with('>').then(|| TURN_ENDS.split(' '));
        let bare = tokens.into_iter().flatten().find_map(without);
        bare.filter(ends).filter(|_| is_last()).unwrap_or(said)
    }

    /// Reads a run of sigils with text before it and moves past it. Does not search for the end of
    /// the line, because many runs may be on the same line.
    fn read_glued(&mut self, at: usize) -> Option<MarkerLine<'t>> {
        let tail = self.text.get(at..)?;
        let Ok((left, (kind, length))) = glued_end(tail) else {
            let run = tail
                .bytes()
                .take_while(|&byte| Some(&byte) == tail.as_bytes().first())
                .count();
            self.at = at + run;
            return None;
        };
        self.at = self.text.len() - left.len();
        let said = self.text.get(at..self.at)?.trim_end().len();
        let marker = Marker {
            kind,
            length,
            role: Role::End,
            exact: true,
        };
        Some(MarkerLine {
            marker,
            span: at..at + said,
            line: at..self.at,
            glued: true,
        })
    }

    /// The beginning of the line, if there is only white space before the marker at `at`. A byte
    /// order mark at the start of the text counts as white space.
    fn line_start(&self, at: usize) -> Option<usize> {
        let head = self.text.get(self.first_line..at)?;
        let head = if head.ends_with('\n') {
            head
        } else {
            head.trim_end_matches(is_blank)
        };
        let is_mark = self.first_line == 0 && head == "\u{feff}";
        (head.is_empty() || head.ends_with('\n') || is_mark).then_some(self.first_line + head.len())
    }
}

#[cfg(test)]
mod tests;
