//! A valid reply.

use std::collections::HashMap;

use crate::code::WarningCode;
use crate::diagnostic::Diagnostic;
use crate::edit::Hunks;
use crate::fence::kind::Kind;
use crate::span::{Span, slice};

/// One block of a reply, as positions in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What the block asks for.
    pub ask: Ask,
    /// The whole block: from the start of its first line to the end of its last, newline included.
    pub span: Span,
    /// Everything between the two marker lines, byte for byte.
    pub content: Span,
}

/// What a [`Block`] asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Replace the file with the content. The range is that of its path.
    Write(Span),
    /// Replace lines of the file, by the hunks in the content. The range is that of its path.
    Edit(Span),
    /// Delete the file. The range is that of its path.
    Delete(Span),
    /// Show the content to the user (`&&&`).
    User,
    /// Keep the content for the next prompt (`%%%`).
    Debug,
    /// Nothing needs to change, for this reason (`$$$`).
    NoChange,
}

impl Ask {
    /// The kind of block that asks for this.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Write(_) | Self::Edit(_) | Self::Delete(_) => Kind::File,
            Self::User => Kind::User,
            Self::Debug => Kind::Debug,
            Self::NoChange => Kind::NoChange,
        }
    }
}

/// A reply that follows the grammar from beginning to end. It borrows the text and copies none of
/// it.
#[derive(Debug, Clone)]
pub struct Reply<'t> {
    pub(crate) text: &'t str,
    pub(crate) blocks: Vec<Block>,
    pub(crate) thinking: Vec<Span>,
    pub(crate) warnings: Vec<Diagnostic<WarningCode>>,
}

/// A file to replace, edit or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBlock<'t> {
    /// The path as the model wrote it: not checked, and not safe to use.
    pub path: &'t str,
    /// What to do with the file.
    pub action: FileAction<'t>,
    /// The whole block in the reply, markers included; the first one if several edit the file.
    pub span: Span,
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction<'t> {
    /// Replace the whole content with this.
    Write(&'t str),
    /// Replace lines of it.
    Edit(Hunks<'t>),
    /// Delete it.
    Delete,
}

impl<'t> Reply<'t> {
    /// The text that was parsed.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The files to replace, edit or delete; no path occurs twice. A file that several blocks edit has the hunks of all.
    pub fn files(&self) -> impl Iterator<Item = FileBlock<'t>> {
        let content = |block: &Block| slice(self.text, &block.content);
        let mut edits = HashMap::<&str, Vec<&str>>::new();
        for block in &self.blocks {
            if let Ask::Edit(path) = &block.ask {
                let hunks = edits.entry(slice(self.text, path)).or_default();
                hunks.push(content(block));
            }
        }
        self.blocks.iter().filter_map(move |block| {
            let (path, action) = match &block.ask {
                Ask::Write(path) => (path, FileAction::Write(content(block))),
                Ask::Edit(path) => {
                    let contents = edits.remove(slice(self.text, path))?;
                    (path, FileAction::Edit(Hunks::of(contents)))
                }
                Ask::Delete(path) => (path, FileAction::Delete),
                Ask::User | Ask::Debug | Ask::NoChange => return None,
            };
            Some(FileBlock {
                path: slice(self.text, path),
                action,
                span: block.span.clone(),
            })
        })
    }

    /// Text for the user (S0: printed at once, and appended to a file).
    pub fn user(&self) -> impl Iterator<Item = &'t str> {
        thoughts(self.text, &self.blocks, Kind::User)
    }

    /// Text that the model wants to see again if the build fails.
    pub fn debug(&self) -> impl Iterator<Item = &'t str> {
        thoughts(self.text, &self.blocks, Kind::Debug)
    }

    /// What the model thought before or between its blocks, where its server left that in the
    /// answer: the texts between `<think>` and `</think>` and the like.
    pub fn thinking(&self) -> impl Iterator<Item = &'t str> {
        self.thinking.iter().map(|span| slice(self.text, span))
    }

    /// Why nothing needs to change. If there is any, [`Reply::files`] is empty.
    pub fn no_change(&self) -> impl Iterator<Item = &'t str> {
        thoughts(self.text, &self.blocks, Kind::NoChange)
    }

    /// Problems that are allowed but probably mistakes.
    pub fn warnings(&self) -> &[Diagnostic<WarningCode>] {
        &self.warnings
    }
}

/// The contents of the blocks of one kind.
pub(crate) fn thoughts<'t>(
    text: &'t str,
    blocks: &[Block],
    kind: Kind,
) -> impl Iterator<Item = &'t str> {
    blocks
        .iter()
        .filter(move |block| block.ask.kind() == kind)
        .map(|block| slice(text, &block.content))
}
