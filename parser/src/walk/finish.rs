//! The errors that show only at the end of a reply.

use super::Walk;
use crate::code::ErrorCode;
use crate::fence::Kind;
use crate::foreign;
use crate::reply::{Ask, Block};
use crate::span::{Span, slice};

impl Walk<'_> {
    /// Finishes reading. Reports an open block, and errors that concern the reply as a whole.
    pub(super) fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            match open.near_end {
                Some((code, span)) => self.error(code, span, Some(open.opening.span)),
                None => self.error(ErrorCode::Unterminated, open.opening.span, None),
            }
        }
        self.check_no_change();
        if !self.errors.is_empty() {
            return;
        }
        if self.has(Kind::File) || self.has(Kind::NoChange) {
            return self.check_prose();
        }
        match (self.in_thought.take(), foreign::anywhere(self.text)) {
            (Some((fence, tag)), _) => self.error(ErrorCode::InThought, fence, Some(tag)),
            (None, Some(span)) => self.errors.push(ErrorCode::OtherForm, span, None),
            (None, None) => self.error(ErrorCode::NothingActionable, 0..0, None),
        }
    }

    /// A change between the blocks that nobody would read is not left out silently.
    fn check_prose(&mut self) {
        let mut start = 0;
        let behind_all = std::iter::once(self.text.len()..self.text.len());
        for block in self
            .blocks
            .iter()
            .map(|block| block.span.clone())
            .chain(behind_all)
        {
            let prose = start..block.start;
            start = block.end;
            let is_thought =
                |thought: &Span| thought.start < prose.end && prose.start < thought.end;
            let change = foreign::unmistakable(slice(self.text, &prose))
                .filter(|_| !self.thinking.iter().any(is_thought));
            if let Some(line) = change {
                let line = prose.start + line.start..prose.start + line.end;
                self.errors.push(ErrorCode::OtherForm, line, None);
            }
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.blocks.iter().any(|block| block.ask.kind() == kind)
    }

    fn check_no_change(&mut self) {
        let is_file = |block: &&Block| block.ask.kind() == Kind::File;
        let Some(file) = self
            .blocks
            .iter()
            .find(is_file)
            .map(|file| file.span.clone())
        else {
            return;
        };
        for block in self
            .blocks
            .iter()
            .filter(|block| block.ask == Ask::NoChange)
        {
            let (opening, file) = (self.opening_of(block), Some(file.clone()));
            self.errors
                .push(ErrorCode::NoChangeWithFiles, opening, file);
        }
    }

    pub(super) fn opening_of(&self, block: &Block) -> Span {
        let line = block.span.start..block.content.start;
        let start = line.start + (line.len() - slice(self.text, &line).trim_start().len());
        start..start + slice(self.text, &line).trim().len()
    }
}
