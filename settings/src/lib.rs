#![doc = include_str!("../README.md")]

mod bases;
mod choice;
mod environment;
mod files;
mod force;
pub mod keys;
mod layer;
pub mod phase;
mod read;
mod rows;
mod schema;
pub mod spec;
mod trust;
mod values;
mod weaken;

pub use bases::Bases;
pub use choice::{AnswerSchema, CommitScope, OutputLimit, Sandbox, SystemRole};
pub use environment::Environment;
pub use files::{Files, Loaded, trust_of};
pub use force::{Origin, Setting, Settings, Variable};
pub use keys::Keys;
pub use layer::{Build, Dialect, Layer, Limits, Model, Reserved, Spec, Walls};
pub use read::{File, ReadError};
pub use rows::Row;
pub use schema::schema;
pub use trust::{PinError, Standing, Trust};
pub use values::{
    Address, CommandLine, Count, Dollars, ModelName, Pattern, Place, Size, Temperature, Time, VariableName,
    duration,
};

#[cfg(test)]
mod tests;
