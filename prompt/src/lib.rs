#![doc = include_str!("../README.md")]

pub mod again;
pub mod commit;
pub mod edits;
mod header;
pub mod implement;
pub mod order;
pub mod phase;
pub mod rollup;
pub mod select;
pub mod spec;

/// Appends a part and a blank line. Parts are copied as they are, except that a missing newline at
/// the end is added.
fn push_part(text: &mut String, part: &str) {
    push_last_part(text, part);
    text.push('\n');
}

/// Appends the last part, with a newline at its end and no blank line.
fn push_last_part(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}
