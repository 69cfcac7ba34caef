//! The built program against real git, scripted models on loopback and scripted agents. One binary, so that it links once.
//!
//! The environment is built from nothing but PATH, so that no setting of the user who runs the tests plays a part.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests panic, lay out files, start programs, and say loudly what they skip"
)]

mod account;
mod acp;
mod action;
mod again;
mod as_git_says;
mod ask;
mod attacks;
mod caches;
mod clean;
mod commit;
mod committed;
mod config;
mod conversation;
mod costs;
mod daily;
mod disk_errors;
mod docs;
mod doctor;
mod downloads;
mod durable;
mod edits;
mod elsewhere;
mod estimate;
mod every_dialect;
mod file_systems;
mod hostile;
mod house;
mod implement;
mod interrupt;
mod limits;
mod mcp;
mod metadata;
mod models;
mod order;
mod outlined;
mod pace;
mod page;
mod phase;
mod portable;
mod projects;
mod promises;
mod record;
mod recovery;
mod resume;
mod runs_later;
mod scenes;
#[path = "../seeds/mod.rs"]
mod seeds;
mod spec;
mod terminal;
mod tls;
mod toolchains;
mod tools;
mod touched;
mod traces;
mod tree_model;
mod typed;
mod unfit;
mod unlucky;
mod word_index;
