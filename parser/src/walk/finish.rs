//! The errors that show only at the end of a reply.

use super::Walk;
use crate::code::ErrorCode;
use crate::fence::Kind;
use crate::foreign::{self, Foreign};
use crate::reply::{Ask, Block};
use crate::span::{Span, slice};

impl Walk<'_> {
    /// Finishes reading. Reports an open block, and errors that concern the reply as a whole.
    pub(super) fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            match open.near_end {
                Some((code, span)) => self.errors.push(code, span, Some(open.opening.span)),
                None => self
                    .errors
                    .push(ErrorCode::Unterminated, open.opening.span, None),
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
            (Some((fence, tag)), _) => self.errors.push(ErrorCode::InThought, fence, Some(tag)),
            (None, Some(Foreign { code, span })) => self.errors.push(code, span, None),
            (None, None) => self.errors.push(ErrorCode::NothingActionable, 0..0, None),
        }
    }

    /// A change between the blocks that nobody would read is not left out silently.
    fn check_prose(&mut self) {
        let ends = self.blocks.iter().map(|block| block.span.end);
        let starts = self
            .blocks
            .iter()
            .map(|block| block.span.start)
            .chain([self.text.len()]);
        for prose in std::iter::once(0)
            .chain(ends)
            .zip(starts)
            .map(|(end, start)| end..start)
        {
            if self
                .thinking
                .iter()
                .any(|thought| thought.start < prose.end && prose.start < thought.end)
            {
                continue;
            }
            if let Some(Foreign { code, span }) = foreign::unmistakable(slice(self.text, &prose)) {
                self.errors
                    .push(code, prose.start + span.start..prose.start + span.end, None);
            }
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.blocks.iter().any(|block| block.ask.kind() == kind)
    }

    fn check_no_change(&mut self) {
        if let Some(file) = self
            .blocks
            .iter()
            .find(|block| block.ask.kind() == Kind::File)
        {
            for block in self
                .blocks
                .iter()
                .filter(|block| block.ask == Ask::NoChange)
            {
                let opening = self.opening_of(block);
                self.errors.push(
                    ErrorCode::NoChangeWithFiles,
                    opening,
                    Some(file.span.clone()),
                );
            }
        }
    }

    pub(super) fn opening_of(&self, block: &Block) -> Span {
        let line = block.span.start..block.content.start;
        let start = line.start + (line.len() - slice(self.text, &line).trim_start().len());
        start..start + slice(self.text, &line).trim().len()
    }
}
