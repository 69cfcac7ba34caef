//! The world of work orders (S2).

mod accounted;
mod baseline;
mod command;
mod ignored;
mod world;

pub use baseline::Baseline;
pub use command::CommandSettings;
pub use ignored::Ignored;
pub use world::OrderWorld;
