#![doc = include_str!("../README.md")]

mod command;
mod read;
mod run;
mod step;

pub use run::{Contents, FileEdit, Run};
pub use step::{Call, Change, Command, Event, Problems, Step, Steps, Tone, What, total};

#[cfg(test)]
mod tests;
