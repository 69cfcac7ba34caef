//! The real CLIs against a scripted service on loopback.
//!
//! `CODE_COMMIT_TEST_GEMINI` and `CODE_COMMIT_TEST_CLAUDE` name the programs; tests without their
//! program say so and pass.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod claude;
mod codex;
mod every;
mod gemini;
mod support;
mod user;
