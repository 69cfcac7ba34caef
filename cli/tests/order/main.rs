//! `code-commit order` end to end: the built program, a real git repository, a real HTTP service on loopback, real commands.
//!
//! The environment is built from nothing but PATH, so that no setting of the user who runs the tests plays a part.

#![expect(unreachable_pub, reason = "a test program has no outside")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests"
)]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod artifacts;
mod batch;
mod commands;
mod corpus;
#[path = "../full_disk/mod.rs"]
mod full_disk;
mod harness;
#[path = "../json_schema/mod.rs"]
mod json_schema;
mod kills;
mod left;
mod orders;
mod record;
mod repositories;
mod rollbacks;
mod schemas;
mod seal;
mod stages;
mod walls;
