//! The built program with a scripted agent: a shell script that plays Claude Code. One binary, so that it links once.
//! With `CODE_COMMIT_TEST_CLAUDE`, `CODE_COMMIT_TEST_GEMINI` and `CODE_COMMIT_TEST_CODEX` set to the real programs, `real` and `real_others`
//! drive those against a scripted service.

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

#[path = "../full_disk/mod.rs"]
#[expect(clippy::print_stderr, reason = "a test says why it is skipped")]
mod full_disk;
#[path = "../json_schema/mod.rs"]
#[expect(dead_code, reason = "one definition after the other is asked for")]
mod json_schema;

mod clean;
mod goes_on;
mod harness;
mod hostile;
mod keyboard;
mod loops;
mod reach;
mod real;
mod real_others;
mod schema;
#[path = "../terminal/screen.rs"]
#[expect(dead_code, reason = "the tests of colours need the rest")]
mod screen;
mod touch;
mod waiting;
