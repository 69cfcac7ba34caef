//! The built program with a scripted agent: a shell script that plays Claude Code.
//! With `CODE_COMMIT_TEST_CLAUDE`, `CODE_COMMIT_TEST_GEMINI` and `CODE_COMMIT_TEST_CODEX` set to the real programs, `real` and `real_others`
//! drive those against a scripted service.

mod goes_on;
mod holds;
mod hostile;
mod keyboard;
mod keys;
mod loops;
mod reach;
mod real;
mod real_others;
pub mod schema;
mod touch;
mod waiting;
