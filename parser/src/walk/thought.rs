//! Thoughts: between tags, on one line, and with text on the lines of their markers.

use nom::Offset as _;

use super::Walk;
use crate::code::{ErrorCode, WarningCode};
use crate::fence::Kind;
use crate::fence::tag::Tag;
use crate::line::{MarkerLine, MarkerLines, Role, is_blank};
use crate::reply::{Ask, Block};
use crate::span::{Span, slice};

impl<'t> Walk<'t> {
    /// A tag outside blocks. One at the beginning of a line opens a thought. An end without an
    /// opening ends the thought that the reply began with: the template has opened it in the prompt.
    pub(super) fn tag(&mut self, tag: Tag, span: Span, glued: bool) {
        match (tag.ends, glued) {
            (false, false) => {
                let (end, fence) = self.lines.skip_thought(tag);
                if let (None, Some(fence)) = (end, &fence) {
                    self.error(ErrorCode::InThought, fence.clone(), Some(span.clone()));
                }
                self.keep_thought(span.end..end.unwrap_or(self.text.len()), fence, span);
            }
            (true, false) => {
                self.lines.begin_line();
                if self.thinking.is_empty() {
                    let mut before = MarkerLines::new(slice(self.text, &(0..span.start)));
                    let fence = before.find(MarkerLine::is_fence).map(|line| line.span);
                    *self = Self {
                        lines: self.lines.clone(),
                        ..Self::new(self.text)
                    };
                    self.keep_thought(0..span.start, fence, span);
                }
            }
            // In doubt whether it ends a thought that holds the blocks before it.
            (true, true) if self.thinking.is_empty() && self.in_thought.is_none() => {
                let behind =
                    slice(self.text, &(span.end..self.text.len())).trim_start_matches(is_blank);
                if let Some(block) = self.blocks.first()
                    && (behind.is_empty() || behind.starts_with('\n'))
                {
                    let fence = self.opening_of(block);
                    self.error(ErrorCode::InThought, fence.clone(), Some(span.clone()));
                    self.in_thought = Some((fence, span));
                }
            }
            (_, true) => {}
        }
    }

    fn keep_thought(&mut self, content: Span, fence: Option<Span>, tag: Span) {
        self.thinking.push(content);
        if let Some(fence) = fence {
            self.warnings
                .push(WarningCode::IgnoredFence, fence.clone(), Some(tag.clone()));
            self.in_thought.get_or_insert((fence, tag));
        }
    }

    /// Whether the next marker is the end marker of a thought that seems to have ended behind text.
    pub(super) fn goes_on(&self, line: &MarkerLine<'t>) -> bool {
        let next = self.lines.clone().next();
        next.is_some_and(|next| next.fence() == line.fence() && next.marker.role == Role::End)
    }

    pub(super) fn whole_thought(&mut self, text: &'t str, line: &MarkerLine<'t>) {
        let start = self.text.offset(text);
        let content = start..start + text.len();
        self.blocks.push(Block {
            ask: ask_of_thought(line.marker.kind),
            span: line.line.clone(),
            content,
        });
        self.unopened = None;
    }
}

pub(super) fn ask_of_thought(kind: Kind) -> Ask {
    match kind {
        Kind::User => Ask::User,
        Kind::NoChange => Ask::NoChange,
        Kind::Debug | Kind::File => Ask::Debug,
    }
}
