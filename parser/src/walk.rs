//! From marker lines to blocks: the rules of S0 and S1, in one pass.

use std::collections::HashMap;

use crate::Span;
use crate::code::{ErrorCode, WarningCode};
use crate::diagnostic::Findings;
use crate::fence::{Kind, NameFault, PLAIN, START, check_name};
use crate::line::{MarkerLine, Role};
use crate::reply::{Ask, Block, slice};

/// Room is made for as many names as there are blocks if they have this length; more names take more room.
const BYTES_A_BLOCK: usize = 8192;

/// A reply as far as it has been read.
#[derive(Debug)]
pub(crate) struct Walk<'t> {
    text: &'t str,
    pub(crate) blocks: Vec<Block>,
    pub(crate) errors: Findings<ErrorCode>,
    pub(crate) warnings: Findings<WarningCode>,
    /// Where each file is named first. Filled as the names are read: later they would have to be fetched from memory again.
    first_named: HashMap<&'t str, usize>,
    open: Option<Open<'t>>,
    /// The kind of a block that could not be read to its end: the end is still to come, and is no further error.
    cut_short: Option<Kind>,
    /// Where a `^^^delete` line ended, as long as nothing but blanks has followed.
    deleted: Option<usize>,
}

/// The block that is being read.
#[derive(Debug)]
struct Open<'t> {
    opening: MarkerLine<'t>,
    name: &'t str,
    /// A name or place that cannot stand: the block is read, but is not salvaged.
    faulty: bool,
    /// The first line that was probably meant to close the block.
    near_end: Option<(ErrorCode, Span)>,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let (errors, warnings) = (Findings::default(), Findings::default());
        let first_named = HashMap::with_capacity(text.len() / BYTES_A_BLOCK);
        Self {
            text,
            blocks: Vec::new(),
            errors,
            warnings,
            first_named,
            open: None,
            cut_short: None,
            deleted: None,
        }
    }

    pub(crate) fn step(&mut self, line: MarkerLine<'t>) {
        match self.open.take() {
            Some(open) => self.inside(open, line),
            None if !line.glued => self.outside(line),
            None => {}
        }
    }

    fn outside(&mut self, line: MarkerLine<'t>) {
        let marker = line.marker;
        match marker.role {
            Role::Open(name) => self.open(line, name),
            Role::End if self.cut_short == Some(marker.kind) => self.cut_short = None,
            Role::End if self.is_behind_delete(&line) => {
                self.errors.push(ErrorCode::EndAfterDelete, line.span, None);
            }
            Role::End => self.errors.push(ErrorCode::StrayEnd, line.span, None),
            Role::Delete => self.errors.push(ErrorCode::StrayDelete, line.span, None),
            Role::Bare if marker.length == PLAIN => {
                self.errors.push(ErrorCode::MissingName, line.span, None);
                self.cut_short = Some(Kind::File);
            }
            // A longer row of carets underlines something.
            Role::Bare => {}
        }
    }

    /// Asked once for each deletion, since what lies between may be long.
    fn is_behind_delete(&mut self, line: &MarkerLine<'_>) -> bool {
        let between = self.deleted.take().and_then(|end| self.text.get(end..line.line.start));
        line.marker.kind == Kind::File && between.is_some_and(|between| between.trim().is_empty())
    }

    fn open(&mut self, opening: MarkerLine<'t>, name: &'t str) {
        let fault = match opening.marker.kind {
            Kind::File => check_name(name).err(),
            Kind::User | Kind::Debug | Kind::NoChange => None,
        };
        let code = fault.map(|fault| match fault {
            NameFault::Control => ErrorCode::ControlInName,
            NameFault::Quoted => ErrorCode::QuotedName,
            NameFault::Reserved => ErrorCode::ReservedName,
            NameFault::Empty => ErrorCode::MissingName,
        });
        if let Some(code) = code {
            self.errors.push(code, opening.span.clone(), None);
        }
        if fault == Some(NameFault::Reserved) {
            return;
        }
        if opening.marker.kind == Kind::File && name == START {
            self.warnings.push(WarningCode::NamedStart, opening.span.clone(), None);
        }
        self.open = Some(Open { opening, name, faulty: code.is_some(), near_end: None });
    }

    /// Inside a block a line of its own length counts; in a plain block any other marker of that length is an error.
    fn inside(&mut self, mut open: Open<'t>, line: MarkerLine<'t>) {
        let (own, marker) = (open.opening.marker, line.marker);
        let same = (marker.kind, marker.length) == (own.kind, own.length);
        match marker.role {
            Role::End if same && !line.glued => return self.close(&open, &line),
            Role::Delete if same => return self.delete(open, &line),
            Role::Open(name)
                if same && own.kind == Kind::File && check_name(name) == Err(NameFault::Reserved) =>
            {
                return self.errors.push(ErrorCode::ReservedName, line.span, Some(open.opening.span));
            }
            Role::Open(name) if marker.length == PLAIN && own.length == PLAIN => {
                return self.nest(&open, line, name);
            }
            Role::End | Role::Delete if marker.length == PLAIN && own.length == PLAIN && !line.glued => {
                self.foreign_end(&open, line);
            }
            Role::Open(_) if same => {
                self.warnings.push(WarningCode::OpeningInside, line.span, Some(open.opening.span.clone()));
            }
            Role::End | Role::Bare => open.note_near_end(&line),
            Role::Open(_) | Role::Delete => {}
        }
        self.open = Some(open);
    }

    fn close(&mut self, open: &Open<'t>, line: &MarkerLine<'t>) {
        let content = open.opening.line.end..line.line.start;
        let ask = match open.opening.marker.kind {
            Kind::File => Ask::Write(open.name_span()),
            Kind::User => Ask::User,
            Kind::Debug => Ask::Debug,
            Kind::NoChange => Ask::NoChange,
        };
        if matches!(ask, Ask::Write(_)) && is_in_markdown_fence(open.name, slice(self.text, &content)) {
            self.warnings.push(WarningCode::MarkdownFence, open.opening.span.clone(), None);
        }
        self.finish_block(open, Block { ask, span: open.opening.line.start..line.line.end, content });
    }

    fn delete(&mut self, mut open: Open<'t>, line: &MarkerLine<'t>) {
        let content = open.opening.line.end..line.line.start;
        if !slice(self.text, &content).trim().is_empty() {
            self.errors.push(
                ErrorCode::ContentBeforeDelete,
                line.span.clone(),
                Some(open.opening.span.clone()),
            );
            open.faulty = true;
        }
        self.deleted = Some(line.line.end);
        let span = open.opening.line.start..line.line.end;
        let block = Block { ask: Ask::Delete(open.name_span()), span, content };
        self.finish_block(&open, block);
    }

    fn finish_block(&mut self, open: &Open<'t>, block: Block) {
        if open.faulty {
            return;
        }
        if let Ask::Write(path) | Ask::Delete(path) = &block.ask {
            let first = *self.first_named.entry(open.name).or_insert(path.start);
            if first != path.start {
                let first = first..first + path.len();
                self.errors.push(ErrorCode::DuplicateFile, path.clone(), Some(first));
            }
        }
        self.blocks.push(block);
    }

    /// An opening inside a plain block ends that block; what follows is read as the new one.
    fn nest(&mut self, outer: &Open<'t>, line: MarkerLine<'t>, name: &'t str) {
        let opening = Some(outer.opening.span.clone());
        if let Some((code, span)) = &outer.near_end {
            self.errors.push(*code, span.clone(), opening);
        } else {
            self.errors.push(ErrorCode::Nested, line.span.clone(), opening);
            self.cut_short = Some(outer.opening.marker.kind);
        }
        self.open(line, name);
    }

    /// The end of a block of another kind.
    fn foreign_end(&mut self, open: &Open<'t>, line: MarkerLine<'t>) {
        if line.marker.role == Role::End && self.cut_short == Some(line.marker.kind) {
            self.cut_short = None;
            return;
        }
        self.errors.push(ErrorCode::Nested, line.span, Some(open.opening.span.clone()));
    }

    /// Ends the reading: an open block is an error, and so is what the blocks say together.
    pub(crate) fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            match open.near_end {
                Some((code, span)) => self.errors.push(code, span, Some(open.opening.span)),
                None => self.errors.push(ErrorCode::Unterminated, open.opening.span, None),
            }
        }
        self.check_no_change();
        if self.errors.is_empty() && !self.has(Kind::File) && !self.has(Kind::NoChange) {
            self.errors.push(ErrorCode::NothingActionable, 0..0, None);
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.blocks.iter().any(|block| block.ask.kind() == kind)
    }

    fn check_no_change(&mut self) {
        if let Some(file) = self.blocks.iter().find(|block| block.ask.kind() == Kind::File) {
            for block in self.blocks.iter().filter(|block| block.ask == Ask::NoChange) {
                let line = block.span.start..block.content.start;
                let start = line.start + (line.len() - slice(self.text, &line).trim_start().len());
                let opening = start..start + slice(self.text, &line).trim().len();
                self.errors.push(ErrorCode::NoChangeWithFiles, opening, Some(file.span.clone()));
            }
        }
    }
}

impl Open<'_> {
    fn name_span(&self) -> Span {
        let end = self.opening.span.end;
        end - self.name.len()..end
    }

    fn note_near_end(&mut self, line: &MarkerLine<'_>) {
        let (own, marker) = (self.opening.marker, line.marker);
        let code = match marker.role {
            _ if marker.kind != own.kind => return,
            Role::End if line.glued && marker.length == own.length => ErrorCode::GluedEnd,
            Role::End if !line.glued => ErrorCode::EndLength,
            Role::Bare if marker.length == own.length => ErrorCode::BareEnd,
            Role::Open(_) | Role::End | Role::Delete | Role::Bare => return,
        };
        let weaker = self.near_end.as_ref().is_none_or(|(noted, _)| *noted == ErrorCode::BareEnd);
        if weaker && (code != ErrorCode::BareEnd || self.near_end.is_none()) {
            self.near_end = Some((code, line.span.clone()));
        }
    }
}

/// Whether the whole content stands between two lines of backquotes. Markdown files may.
fn is_in_markdown_fence(name: &str, content: &str) -> bool {
    if !content.trim_start().starts_with("```") {
        return false;
    }
    let is_markdown = [".md", ".mdx", ".markdown"].iter().any(|ending| name.ends_with(ending));
    let content = content.trim();
    let first = content.split('\n').next().unwrap_or_default();
    let last = content.rsplit('\n').next().unwrap_or_default();
    !is_markdown && last.trim() == "```" && first.len() < content.len()
}
