//! The documentation against the program: every command that a page shows is run, every test that a table names is there, every list of
//! codes is whole.
//!
//! `DOCS_UPDATE=1 cargo test -p code-commit-cli --test docs` writes what the program prints into the pages. Read the difference, and put
//! `…` where the next run would print something else.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    unreachable_pub,
    reason = "tests"
)]

mod codes;
mod commands;
mod conformance;
mod crates;
#[path = "../hermetic/mod.rs"]
#[expect(dead_code, reason = "pages are run by a shell, not by `program`")]
mod hermetic;
#[path = "../json_schema/mod.rs"]
mod json_schema;
mod links;
mod matching;
mod page;
mod reference;
mod schema;
mod world;
