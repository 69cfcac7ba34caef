#![doc = include_str!("../README.md")]

mod class;
mod environment;
mod files;
pub mod keys;
mod options;
pub mod phase;
mod provider;
mod read;
mod schema;
mod settings;
pub mod spec;
mod trust;
mod values;

pub use environment::Environment;
pub use files::{Files, Loaded, trust_of};
pub use keys::Keys;
pub use options::{
    BuildOptions, Byproducts, CommitScope, DialectOptions, LimitOptions, ModelOptions, Options,
    OrderOptions, RollUpOptions, Sandbox, SandboxOptions, SpecOptions,
};
pub use provider::{OwnProvider, ProviderName};
pub use read::{File, ReadError};
pub use schema::SCHEMA;
pub use settings::{Bases, Origin, Patience, Row, Settings};
pub use trust::{PinError, Standing, Trust};
pub use values::{
    Address, CommandLine, Count, Dollars, HostName, Models, NO_BUDGET, Pattern, Place, Size,
    Temperature, Time, TokenBudget, VariableName, duration,
};

#[cfg(test)]
mod tests;
