//! What a person sees: on terminals of three widths, with and without colour, and every error message.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod errors;
#[path = "../hermetic/mod.rs"]
mod hermetic;
mod records;
mod scene;
#[expect(dead_code, reason = "nobody types here; the tests of specs do")]
mod screen;
mod widths;
