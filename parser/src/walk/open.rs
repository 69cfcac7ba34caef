//! The block that is being read, and what is needed to explain a missing end marker.

use crate::Span;
use crate::code::ErrorCode;
use crate::line::{MarkerLine, Role};

/// The block that is being read.
#[derive(Debug)]
pub(super) struct Open<'t> {
    pub(super) opening: MarkerLine<'t>,
    pub(super) name: &'t str,
    /// Where the content begins: a thought may begin on the line of its opening.
    pub(super) content: usize,
    /// The content consists of hunks.
    pub(super) is_edit: bool,
    /// The block has an invalid name or position: it is read, but not salvaged.
    pub(super) faulty: bool,
    /// The first line that was probably meant to close the block.
    pub(super) near_end: Option<(ErrorCode, Span)>,
    /// In a thought: the last line that would open a file elsewhere. The end marker of a file shows
    /// that it was meant to.
    pub(super) inner: Option<MarkerLine<'t>>,
}

impl Open<'_> {
    pub(super) fn name_span(&self) -> Span {
        let end = self.opening.span.end;
        end - self.name.len()..end
    }

    pub(super) fn note_near_end(&mut self, line: &MarkerLine<'_>) {
        let (own, marker) = (self.opening.marker, line.marker);
        let code = match marker.role {
            _ if marker.kind != own.kind => return,
            Role::End if line.glued && marker.length == own.length => ErrorCode::GluedEnd,
            Role::End if !line.glued => ErrorCode::EndLength,
            Role::Bare if marker.length == own.length => ErrorCode::BareEnd,
            Role::Crowded { ends: true } if marker.length == own.length => {
                ErrorCode::TextAfterMarker
            }
            Role::Open(_)
            | Role::End
            | Role::Delete
            | Role::Bare
            | Role::Whole(_)
            | Role::Crowded { .. }
            | Role::Tag(_) => return,
        };
        let weaker = self
            .near_end
            .as_ref()
            .is_none_or(|(noted, _)| *noted == ErrorCode::BareEnd);
        if weaker && (code != ErrorCode::BareEnd || self.near_end.is_none()) {
            self.near_end = Some((code, line.span.clone()));
        }
    }
}

/// Whether the whole content is between two lines of backquotes. Allowed for Markdown files.
pub(super) fn is_in_markdown_fence(name: &str, content: &str) -> bool {
    if !content.trim_start().starts_with("```") {
        return false;
    }
    let is_markdown = [".md", ".mdx", ".markdown"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let content = content.trim();
    let first = content.split('\n').next().unwrap_or_default();
    let last = content.rsplit('\n').next().unwrap_or_default();
    !is_markdown && last.trim() == "```" && first.len() < content.len()
}
