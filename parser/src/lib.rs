#![doc = include_str!("../README.md")]

mod code;
mod diagnostic;
pub mod edit;
pub mod fence;
mod foreign;
pub mod habits;
mod line;
pub mod marker;
mod need;
pub mod partial;
pub mod proposal;
mod reply;
mod scan;
mod span;
mod walk;
pub mod words;

pub use code::{ErrorCode, WarningCode, Wording};
pub use diagnostic::{Diagnostic, Errors, MOST_KEPT, Related};
pub use foreign::in_place_of_a_file;
pub use need::needed;
pub use reply::{Ask, Block, FileAction, FileBlock, Reply};
pub use span::Span;

/// Reads a complete reply by the grammar of S0 and S1.
///
/// Returns either the whole reply, or every error in it; a reply with an error must not be used,
/// not even in part.
pub fn parse(text: &str) -> Result<Reply<'_>, Errors> {
    let mut walk = walk::Walk::new(text);
    walk.run();
    if walk.errors.is_empty() {
        let warnings = diagnostic::locate(text, walk.warnings);
        Ok(Reply {
            text,
            blocks: walk.blocks,
            thinking: walk.thinking,
            warnings,
        })
    } else {
        Err(Errors::new(text, walk.errors, walk.blocks))
    }
}

/// Like [`parse`], for bytes that may not be UTF-8. Invalid bytes are an error; they are never
/// replaced.
pub fn parse_bytes(bytes: &[u8]) -> Result<Reply<'_>, Errors> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => Err(Errors::invalid_utf8(bytes, error)),
    }
}
