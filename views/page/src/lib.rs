#![doc = include_str!("../README.md")]

mod all;
mod diff;
mod frame;
mod markdown;
mod run;
mod step;
mod text;

pub use all::all;
pub use frame::{SCRIPT, STYLE, policy};
pub use markdown::markdown;
pub use run::run;
pub use text::{Excerpt, Read};

#[cfg(test)]
mod tests;
