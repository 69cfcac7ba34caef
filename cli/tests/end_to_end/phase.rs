//! `code-commit phase`, from init to a phase that has passed.
//!
//! Most tests drive a scripted stand-in for Gemini CLI, a shell script that speaks its events. The real one is driven where
//! `CODE_COMMIT_TEST_GEMINI` names it, and containers where a Docker daemon can be started.

mod commands;
mod docker;
mod earned;
mod ends;
mod happy;
mod holds;
mod keys;
mod models;
mod odd;
mod real;
mod resume;
mod sandbox;
mod schema;
mod settings;
