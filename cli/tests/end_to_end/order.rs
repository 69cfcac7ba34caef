//! `code-commit order` end to end: the built program, a real git repository, a real HTTP service on loopback, real commands.

mod artifacts;
mod batch;
mod commands;
mod corpus;
mod kills;
mod left;
mod orders;
mod record;
mod repositories;
mod rollbacks;
mod sandbox;
pub mod schemas;
mod seal;
mod stages;
