//! Builds blocks from marker lines by the rules of S0 and S1, in a single pass.

mod finish;
mod open;
mod thought;

use std::collections::HashMap;

use nom::Offset as _;

use crate::code::{ErrorCode, WarningCode};
use crate::diagnostic::Findings;
use crate::edit::{check, mark};
use crate::fence::{Kind, NameFault, PLAIN, check_name};
use crate::line::{MarkerLine, MarkerLines, Role};
use crate::reply::{Ask, Block};
use crate::span::{Span, slice};
use open::{Open, is_in_markdown_fence};
use thought::ask_of_thought;

/// The blocks and the table of names are allocated for blocks of this average size; they grow if there are more.
const BYTES_A_BLOCK: usize = 8192;

/// The part of a reply that has been read.
#[derive(Debug)]
pub(crate) struct Walk<'t> {
    text: &'t str,
    lines: MarkerLines<'t>,
    pub(crate) blocks: Vec<Block>,
    /// Thoughts between tags.
    pub(crate) thinking: Vec<Span>,
    pub(crate) errors: Findings<ErrorCode>,
    pub(crate) warnings: Findings<WarningCode>,
    /// Where each file is first named, and whether that is an edit. Filled while names are read: fetching them again later would be slow.
    first_named: HashMap<&'t str, (usize, bool)>,
    open: Option<Open<'t>>,
    /// The kind of a block that was abandoned because of an error. Its end marker is still to come,
    /// and is not another error.
    cut_short: Option<Kind>,
    /// The end of a `^^^delete` line, as long as only white space follows.
    deleted: Option<usize>,
    /// The last line of carets since the previous block that did not open a file. A stray end
    /// marker shows that it was meant to.
    unopened: Option<Unopened<'t>>,
    /// The first fence in a thought between tags, and the tag.
    in_thought: Option<(Span, Span)>,
}

/// A line of carets that was taken for prose, or for the content of a thought.
#[derive(Debug)]
struct Unopened<'t> {
    line: MarkerLine<'t>,
    /// The opening of the surrounding thought.
    thought: Option<Span>,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let first_named = HashMap::with_capacity(text.len() / BYTES_A_BLOCK);
        Self {
            text,
            lines: MarkerLines::new(text),
            thinking: Vec::new(),
            blocks: Vec::with_capacity(text.len() / BYTES_A_BLOCK),
            errors: Findings::default(),
            warnings: Findings::default(),
            first_named,
            open: None,
            cut_short: None,
            deleted: None,
            unopened: None,
            in_thought: None,
        }
    }

    pub(crate) fn run(&mut self) {
        while let Some(line) = if self.open.is_some() {
            self.lines.next()
        } else {
            self.lines.next_outside()
        } {
            self.step(line);
        }
        self.finish();
    }

    fn error(&mut self, code: ErrorCode, span: Span, related: Option<Span>) {
        self.errors.push(code, span, related);
    }

    fn step(&mut self, line: MarkerLine<'t>) {
        match (self.open.take(), line.marker.role) {
            (Some(open), _) => self.inside(open, line),
            (None, Role::Tag(tag)) => self.tag(tag, line.span, line.glued),
            (None, _) if line.glued => {
                self.warnings
                    .push(WarningCode::IgnoredFence, line.span, None);
            }
            (None, _) => self.outside(line),
        }
    }

    fn outside(&mut self, line: MarkerLine<'t>) {
        let marker = line.marker;
        match marker.role {
            Role::Open(_) | Role::Bare if line.is_underline() => {
                self.unopened = Some(Unopened {
                    line,
                    thought: None,
                });
            }
            Role::Open(name) => self.open(line, name),
            Role::Whole(text) if self.goes_on(&line) => self.open(line, text),
            Role::Whole(text) => self.whole_thought(text, &line),
            Role::End if self.cut_short == Some(marker.kind) => self.cut_short = None,
            Role::End if self.is_behind_delete(&line) => {
                self.error(ErrorCode::EndAfterDelete, line.span, None);
            }
            Role::End => self.stray_end(line),
            Role::Delete => {
                let opening = self.unopened_for(&line).map(|opening| opening.line.span);
                self.error(ErrorCode::StrayDelete, line.span, opening);
            }
            Role::Crowded { ends } => {
                self.error(ErrorCode::TextAfterMarker, line.span, None);
                self.cut_short = self.cut_short.or((!ends).then_some(marker.kind));
            }
            Role::Bare | Role::Tag(_) => {}
        }
    }

    /// The actual mistake is the line of carets that should have opened the block, not the end marker.
    fn stray_end(&mut self, end: MarkerLine<'t>) {
        match self.unopened_for(&end) {
            Some(Unopened {
                line,
                thought: Some(thought),
            }) => {
                self.error(ErrorCode::Nested, line.span, Some(thought));
            }
            Some(Unopened { line, .. }) if line.marker.role == Role::Bare => {
                self.error(ErrorCode::MissingName, line.span, None);
            }
            opening => {
                self.error(
                    ErrorCode::StrayEnd,
                    end.span,
                    opening.map(|opening| opening.line.span),
                );
            }
        }
    }

    fn unopened_for(&mut self, end: &MarkerLine<'_>) -> Option<Unopened<'t>> {
        self.unopened
            .take()
            .filter(|opening| opening.line.fence() == end.fence())
    }

    /// Called once per deletion, because the text in between may be long.
    fn is_behind_delete(&mut self, line: &MarkerLine<'_>) -> bool {
        let between = self
            .deleted
            .take()
            .and_then(|end| self.text.get(end..line.line.start));
        line.marker.kind == Kind::File && between.is_some_and(|between| between.trim().is_empty())
    }

    fn open(&mut self, opening: MarkerLine<'t>, name: &'t str) {
        let edited = mark::path(name).filter(|_| opening.marker.kind == Kind::File);
        let (is_edit, name) = (edited.is_some(), edited.unwrap_or(name));
        let fault = match opening.marker.kind {
            Kind::File => check_name(name).err(),
            Kind::User | Kind::Debug | Kind::NoChange => None,
        };
        let code = fault.map(|fault| match fault {
            NameFault::Control => ErrorCode::ControlInName,
            NameFault::Quoted => ErrorCode::QuotedName,
            NameFault::Reserved => ErrorCode::ReservedName,
            NameFault::Start => ErrorCode::NamedStart,
            NameFault::Operation | NameFault::Remark => ErrorCode::RemarkInName,
            NameFault::Empty => ErrorCode::MissingName,
        });
        if let Some(code) = code {
            self.error(code, opening.span.clone(), None);
        }
        if fault == Some(NameFault::Reserved) {
            return;
        }
        if fault == Some(NameFault::Operation) {
            // Most operations have no content, and then no end.
            self.cut_short = Some(Kind::File);
            return;
        }
        self.unopened = None;
        let begins_here = opening.marker.kind != Kind::File && !name.is_empty();
        let content = if begins_here {
            self.text.offset(name)
        } else {
            opening.line.end
        };
        let faulty = code.is_some();
        self.open = Some(Open {
            opening,
            name,
            content,
            is_edit,
            faulty,
            near_end: None,
            inner: None,
        });
    }

    /// Inside a block, only markers of the block's own length count. In a plain block, any other
    /// marker of that length is an error, except for lines of carets in a thought: models quote
    /// compiler output.
    fn inside(&mut self, mut open: Open<'t>, line: MarkerLine<'t>) {
        let (own, marker, opening) = (open.opening.marker, line.marker, open.opening.span.clone());
        let same = line.fence() == open.opening.fence();
        let is_plain = (marker.length, own.length) == (PLAIN, PLAIN);
        match marker.role {
            Role::End if same && !line.glued => return self.close(&open, &line),
            Role::End if same && own.kind != Kind::File && !self.goes_on(&line) => {
                return self.close(&open, &line);
            }
            _ if !marker.exact => open.note_near_end(&line),
            Role::Delete if same => return self.delete(open, &line),
            Role::Open(name)
                if same
                    && own.kind == Kind::File
                    && check_name(name) == Err(NameFault::Reserved) =>
            {
                return self.error(ErrorCode::ReservedName, line.span, Some(opening));
            }
            Role::Open(name) if own.kind != Kind::File && marker.kind == Kind::File => {
                if is_plain && !line.is_underline() && check_name(name) != Err(NameFault::Reserved)
                {
                    open.inner = Some(line);
                }
            }
            Role::Open(name) if is_plain => return self.nest(&open, line, name),
            Role::End | Role::Delete if is_plain && !line.glued => {
                return self.foreign_end(open, line);
            }
            Role::Crowded { .. } | Role::Whole(_) if is_plain => {
                self.error(ErrorCode::TextAfterMarker, line.span.clone(), Some(opening));
                if same && marker.role == (Role::Crowded { ends: true }) {
                    return self.close(&open, &line);
                }
            }
            Role::Open(_) if same => {
                self.warnings
                    .push(WarningCode::OpeningInside, line.span, Some(opening));
            }
            Role::End | Role::Bare | Role::Crowded { .. } => open.note_near_end(&line),
            Role::Open(_) | Role::Delete | Role::Whole(_) | Role::Tag(_) => {}
        }
        self.open = Some(open);
    }

    fn close(&mut self, open: &Open<'t>, line: &MarkerLine<'t>) {
        let content = open.content..line.line.start.max(open.content);
        let is_edit = open.is_edit && !open.faulty;
        let fault = is_edit
            .then(|| check(self.text, &content, &open.opening.span))
            .flatten();
        if let Some((code, span)) = fault {
            self.error(code, span, None);
        }
        let ask = match open.opening.marker.kind {
            Kind::File if open.is_edit => Ask::Edit(open.name_span()),
            Kind::File => Ask::Write(open.name_span()),
            kind @ (Kind::User | Kind::Debug | Kind::NoChange) => ask_of_thought(kind),
        };
        if matches!(ask, Ask::Write(_))
            && is_in_markdown_fence(open.name, slice(self.text, &content))
        {
            self.warnings
                .push(WarningCode::MarkdownFence, open.opening.span.clone(), None);
        }
        let inner = open.inner.clone();
        self.unopened = inner.map(|line| Unopened {
            line,
            thought: Some(open.opening.span.clone()),
        });
        self.finish_block(
            open,
            Block {
                ask,
                span: open.opening.line.start..line.line.end,
                content,
            },
        );
    }

    fn delete(&mut self, mut open: Open<'t>, line: &MarkerLine<'t>) {
        let content = open.opening.line.end..line.line.start;
        if open.is_edit {
            self.error(ErrorCode::RemarkInName, open.opening.span.clone(), None);
            open.faulty = true;
        }
        if !slice(self.text, &content).trim().is_empty() {
            self.error(
                ErrorCode::ContentBeforeDelete,
                line.span.clone(),
                Some(open.opening.span.clone()),
            );
            open.faulty = true;
        }
        self.deleted = Some(line.line.end);
        let span = open.opening.line.start..line.line.end;
        let block = Block {
            ask: Ask::Delete(open.name_span()),
            span,
            content,
        };
        self.finish_block(&open, block);
    }

    fn finish_block(&mut self, open: &Open<'t>, block: Block) {
        if open.faulty {
            return;
        }
        if let Ask::Write(path) | Ask::Edit(path) | Ask::Delete(path) = &block.ask {
            let this = (path.start, open.is_edit);
            let first = *self.first_named.entry(open.name).or_insert(this);
            // Further edit blocks of a file add to its hunks.
            if first.0 != this.0 && !(first.1 && this.1) {
                let first = first.0..first.0 + path.len();
                self.error(ErrorCode::DuplicateFile, path.clone(), Some(first));
            }
        }
        self.blocks.push(block);
    }

    /// An opening inside a plain block ends that block; what follows is read as the new block.
    fn nest(&mut self, outer: &Open<'t>, line: MarkerLine<'t>, name: &'t str) {
        let opening = Some(outer.opening.span.clone());
        if let Some((code, span)) = &outer.near_end {
            self.error(*code, span.clone(), opening);
        } else {
            self.error(ErrorCode::Nested, line.span.clone(), opening);
            self.cut_short = Some(outer.opening.marker.kind);
        }
        self.open(line, name);
    }

    /// The end marker of another kind of block.
    fn foreign_end(&mut self, mut open: Open<'t>, line: MarkerLine<'t>) {
        if line.marker.role == Role::End && self.cut_short == Some(line.marker.kind) {
            self.cut_short = None;
        } else if let Some(inner) = open.inner.take_if(|_| line.marker.kind == Kind::File)
            && let Role::Open(name) = inner.marker.role
        {
            // The mistake is the missing end of the thought before the file, not the file's end
            // marker.
            self.nest(&open, inner, name);
            return self.step(line);
        } else {
            self.error(
                ErrorCode::Nested,
                line.span,
                Some(open.opening.span.clone()),
            );
        }
        self.open = Some(open);
    }
}
