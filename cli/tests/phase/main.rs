//! `code-commit phase`, from init to a phase that has passed.
//!
//! Most tests drive a scripted stand-in for Gemini CLI, a shell script that speaks its events. The real one is driven where
//! `CODE_COMMIT_TEST_GEMINI` names it, and containers where a Docker daemon can be started.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "helpers of tests"
)]

mod clean;
mod docker;
mod ends;
#[path = "../full_disk/mod.rs"]
mod full_disk;
mod happy;
#[path = "../json_schema/mod.rs"]
#[expect(
    dead_code,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "one definition after the other is asked for"
)]
mod json_schema;
mod models;
mod odd;
mod real;
mod resume;
mod scene;
mod schema;
mod settings;
mod walls;
