//! The documentation against the program: every command that a page shows is run, every test that a table names is there, every list of
//! codes is whole.
//!
//! `DOCS_UPDATE=1 cargo test -p code-commit-cli --test end_to_end docs::` writes what the program prints into the pages. Read the difference, and put
//! `…` where the next run would print something else.

mod codes;
mod coming_from;
mod commands;
mod conformance;
mod contributing;
mod crates;
mod helps;
mod links;
mod page;
mod reference;
mod schema;
mod units;
mod world;
