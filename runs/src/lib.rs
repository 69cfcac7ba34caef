#![doc = include_str!("../README.md")]

mod agents;
mod caches;
pub mod changes;
pub mod check;
pub mod chronicle;
pub mod clean;
pub mod commit;
pub mod config;
mod deciders;
mod estimate;
mod exit;
mod host;
pub mod interrupt;
pub mod lock;
pub mod model;
mod observer;
pub mod order;
pub mod phase;
pub mod place;
pub mod preflight;
pub mod records;
pub mod registry;
pub mod replay;
pub mod resume;
pub mod rollup;
pub mod sandbox;
pub mod spec;
mod staging;
pub mod text;
pub mod travel;
pub mod trusted;
pub mod undo;
mod verdict;
pub mod why;

pub use exit::{Exit, Failure, Product};
pub use host::Host;
