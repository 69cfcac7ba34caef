#![doc = include_str!("../README.md")]

pub mod commit;
pub mod implement;
pub mod order;
pub mod phase;
pub mod rollup;
pub mod spec;

/// A part of a prompt with a blank line behind it. A part that does not end its last line has it ended, so that what follows
/// begins a line; otherwise parts are copied as they are.
fn push_part(text: &mut String, part: &str) {
    push_last_part(text, part);
    text.push('\n');
}

/// The last part of a prompt: nothing behind it but the end of its last line.
fn push_last_part(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}
