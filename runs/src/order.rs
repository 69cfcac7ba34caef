//! Work orders (S2).

mod access;
mod act;
mod check;
mod files;
mod folder;
mod plan;
pub mod preflight;
mod prepare;
pub(crate) mod recorded;
mod resume;
mod setting;
mod settle;
mod unfinished;
mod work;

pub use act::{Request, run};
pub use files::{read as read_files, unfit, warn_of_verification};
pub use plan::Terms;
pub use recorded::{Recorded, summary};

pub(crate) use check::commands as commands_to_check;
pub(crate) use folder::in_tree;
pub(crate) use resume::run as resume;
pub(crate) use setting::Order;
