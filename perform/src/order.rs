//! The world of work orders (S2).

mod accounted;
mod baseline;
mod command;
mod world;

pub use baseline::{BASELINE, Baseline};
pub use world::OrderWorld;
