#![doc = include_str!("../README.md")]

mod choice;
mod environment;
mod files;
mod key;
pub mod keys;
mod layers;
pub mod phase;
mod provider;
mod read;
mod schema;
mod setting;
mod slot;
pub mod spec;
mod table;
mod trust;
mod values;

pub use choice::{Byproducts, CommitScope, OutputLimit, Sandbox, SystemRole};
pub use environment::Environment;
pub use files::{Files, Loaded, trust_of};
pub use key::{Flag, Key, Row, Takes};
pub use keys::Keys;
pub use layers::Patience;
pub use provider::{OwnProvider, OwnProviders, ProviderName};
pub use read::{File, ReadError};
pub use schema::schema;
pub use setting::{Origin, Setting, Variable};
pub use slot::Bases;
pub use table::{Build, Dialect, Isolation, KEYS, Layer, Limits, Model, Reserved, Settings, Spec};
pub use trust::{PinError, Standing, Trust};
pub use values::{
    Address, CommandLine, Count, Dollars, HostName, ModelNames, Models, Pattern, Place, Size,
    Temperature, Time, VariableName, duration,
};

#[cfg(test)]
mod tests;
