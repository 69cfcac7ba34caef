//! Errors and warnings with their positions.

use std::fmt;

use crate::code::{ErrorCode, Wording};
use crate::fence::kind::Kind;
use crate::reply::{Block, thoughts};
use crate::scan::count_newlines;
use crate::span::{Span, slice};

/// Further errors are counted but not stored: a hostile reply must not cost more memory than its
/// own size.
pub const MOST_KEPT: usize = 1000;
/// How many errors a model is shown at once.
const MOST_FOR_MODEL: usize = 10;
/// How many characters of a marker are quoted.
pub(crate) const MOST_QUOTED: usize = 80;

/// One problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic<C = ErrorCode> {
    /// What is wrong.
    pub code: C,
    /// The byte range in the reply, on character boundaries (unless the code is
    /// [`ErrorCode::InvalidUtf8`]).
    pub span: Span,
    /// The line on which the span begins, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// A second position that explains the problem: the opening of the block, or the first block of
    /// the same file.
    pub related: Option<Related>,
    /// The marker as the model wrote it, shortened, with control characters escaped.
    subject: String,
}

/// A second position, such as that of the block that is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// The byte range in the reply.
    pub span: Span,
    /// Its line, counted from 1.
    pub line: usize,
}

impl<C: Wording> Diagnostic<C> {
    /// What is wrong, as a lower-case fragment.
    pub fn message(&self) -> String {
        let message = self.code.message(&self.subject);
        match &self.related {
            Some(related) => format!("{message} (see line {})", related.line),
            None => message,
        }
    }

    /// What to write instead, as a lower-case imperative.
    pub fn advice(&self) -> String {
        self.code.advice(&self.subject)
    }

    /// What is wrong and what to write instead, in one line.
    pub fn in_full(&self) -> String {
        format!("{}; {}", self.message(), self.advice())
    }

    /// [`Diagnostic::in_full`] with the line number in front.
    pub fn for_model(&self) -> String {
        format!("line {}: {}", self.line, self.in_full())
    }
}

impl<C: Wording> fmt::Display for Diagnostic<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message())
    }
}

/// Why a text cannot be used: at least one error, ordered by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    kept: Vec<Diagnostic>,
    not_kept: usize,
    salvage: Vec<Block>,
}

impl Errors {
    pub(crate) fn new(text: &str, found: Findings<ErrorCode>, salvage: Vec<Block>) -> Self {
        let not_kept = found.total - found.kept.len();
        Self {
            kept: locate(text, found),
            not_kept,
            salvage,
        }
    }

    pub(crate) fn invalid_utf8(bytes: &[u8], error: std::str::Utf8Error) -> Self {
        let start = error.valid_up_to();
        let end = error.error_len().map_or(bytes.len(), |len| start + len);
        let valid = bytes.utf8_chunks().next().map_or("", |first| first.valid());
        let mut findings = Findings::default();
        findings.push(ErrorCode::InvalidUtf8, start..end, None);
        Self::new(valid, findings, Vec::new())
    }

    /// The errors, ordered by position; at most [`MOST_KEPT`].
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// The number of errors, including those that were counted but not stored.
    pub fn total(&self) -> usize {
        self.kept.len() + self.not_kept
    }

    /// The blocks that are well-formed on their own. They may be shown or quoted, but never
    /// applied. (S0 shows the thoughts even of a reply that it refuses.)
    pub fn salvage(&self) -> &[Block] {
        &self.salvage
    }

    /// The contents of all salvaged blocks of one kind; `text` must be the reply that was parsed.
    pub fn salvaged<'t>(&self, text: &'t str, kind: Kind) -> impl Iterator<Item = &'t str> {
        thoughts(text, &self.salvage, kind)
    }

    /// The message for the model: one line per error, at most ten, and how many more there are.
    pub fn for_model(&self) -> String {
        let told = self
            .kept
            .iter()
            .take(MOST_FOR_MODEL)
            .map(Diagnostic::for_model);
        let mut lines: Vec<String> = told.collect();
        let more = self.total() - lines.len();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }
}

impl<'e> IntoIterator for &'e Errors {
    type Item = &'e Diagnostic;
    type IntoIter = std::slice::Iter<'e, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.kept.first() {
            first.fmt(f)?;
        }
        match self.total() {
            0 | 1 => Ok(()),
            total => write!(f, ", and {} more", total - 1),
        }
    }
}

impl std::error::Error for Errors {}

/// Problems as they were found, without lines and columns.
#[derive(Debug)]
pub(crate) struct Findings<C> {
    kept: Vec<Finding<C>>,
    total: usize,
}

#[derive(Debug)]
struct Finding<C> {
    code: C,
    span: Span,
    related: Option<Span>,
}

impl<C> Default for Findings<C> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            total: 0,
        }
    }
}

impl<C> Findings<C> {
    pub(crate) fn push(&mut self, code: C, span: Span, related: Option<Span>) {
        self.total += 1;
        if self.kept.len() < MOST_KEPT {
            self.kept.push(Finding {
                code,
                span,
                related,
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Adds lines and columns, in a single pass over the text, and sorts by position.
pub(crate) fn locate<C: Copy>(text: &str, findings: Findings<C>) -> Vec<Diagnostic<C>> {
    let mut found = findings.kept;
    found.sort_by_key(|finding| (finding.span.start, finding.span.end));
    let places = Places::find(text, &found);
    let diagnose = |found: Finding<C>| {
        let (line, column) = places.of(found.span.start);
        Diagnostic {
            code: found.code,
            line,
            column,
            related: found.related.map(|span| Related {
                line: places.of(span.start).0,
                span,
            }),
            subject: quote(slice(text, &found.span), MOST_QUOTED),
            span: found.span,
        }
    };
    found.into_iter().map(diagnose).collect()
}

/// Line and column of each requested byte position.
struct Places(Vec<(usize, (usize, usize))>);

impl Places {
    /// Counts each part of the text only once, even if many positions are on the same line.
    fn find<C>(text: &str, found: &[Finding<C>]) -> Self {
        let spans = found
            .iter()
            .flat_map(|finding| [Some(&finding.span), finding.related.as_ref()]);
        let mut places: Vec<usize> = spans.flatten().map(|span| span.start).collect();
        places.sort_unstable();
        let (mut line, mut column, mut counted) = (1, 1, 0);
        let number = |place| {
            let stretch = slice(text, &(counted..place));
            let last_line = match stretch.rsplit_once('\n') {
                Some((_, last_line)) => {
                    column = 1;
                    last_line
                }
                None => stretch,
            };
            line += count_newlines(stretch.as_bytes());
            column += last_line.chars().count();
            counted = place;
            (place, (line, column))
        };
        Self(places.into_iter().map(number).collect())
    }

    fn of(&self, place: usize) -> (usize, usize) {
        let index = self.0.partition_point(|&(other, _)| other < place);
        self.0.get(index).map_or((1, 1), |&(_, numbers)| numbers)
    }
}

/// The beginning of `text`, made safe to quote in a message.
pub(crate) fn quote(text: &str, most: usize) -> String {
    let mut quoted = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            '\n' if index > 0 => break,
            _ if index == most => {
                quoted.push('…');
                break;
            }
            _ if c.is_control() => quoted.extend(c.escape_default()),
            _ => quoted.push(c),
        }
    }
    quoted
}
