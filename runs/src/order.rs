//! Work orders (S2).

mod access;
mod act;
mod files;
mod folder;
mod plan;
pub mod preflight;
mod prepare;
mod unfinished;
mod work;

pub use act::{Request, run};
pub use files::{read as read_files, unfit, warn_of_verification};
pub use plan::{Terms, summary};

pub(crate) use access::commands_to_check;
pub(crate) use work::Order;
