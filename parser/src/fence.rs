//! The fences: their characters and words.

pub(crate) mod kind;
pub(crate) mod name;
pub(crate) mod tag;

pub use kind::{DELETE, END, FORM, Kind, NEED, PLAIN, START};
pub use name::{NameFault, check_name};
