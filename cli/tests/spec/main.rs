//! The built program with a scripted agent: a shell script that plays Claude Code. One binary, so that it links once.
//! With `CODE_COMMIT_TEST_CLAUDE` set to the real program, `real` drives that against a scripted service.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    unreachable_pub,
    reason = "tests"
)]

#[path = "../hermetic/mod.rs"]
mod hermetic;

mod harness;
mod keyboard;
mod loops;
mod real;
#[path = "../terminal/screen.rs"]
#[expect(dead_code, reason = "the tests of colours need the rest")]
mod screen;
mod touch;
mod waiting;
