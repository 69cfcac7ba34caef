#![doc = include_str!("../README.md")]

mod call;
mod command;
mod lost;
mod read;
mod reason;
mod run;
mod step;

pub use lost::Lost;
pub use read::condition;
pub use reason::{ReadFile, Reason, names_failure};
pub use run::{Contents, FileEdit, Run, title};
pub use step::{Call, Change, Command, Remark, RunView, Step, Tone, What, day, total};

#[cfg(test)]
mod tests;
