#![doc = include_str!("../README.md")]

mod attributes;
mod change;
mod file;
mod folder;
mod found;
mod interrupt;
mod list;
pub mod obstacle;
mod open;
mod own;
pub mod reach;
mod replace;
mod twin;

pub use attributes::{Attributes, inherit_list};
pub use change::is_one_file_system;
pub use file::{Links, append, append_once, open_regular, read};
pub use folder::Folder;
pub use found::{Found, Inode};
pub use interrupt::{Interrupt, Interruptible, NEVER};
pub use list::{Entry, List, list};
pub use own::{OwnChild, own_children};
pub use replace::{remove, replace, replace_with, sweep};
/// The type of an [`Entry`].
pub use rustix::fs::FileType;
pub use twin::{copy_all, link_or_copy};
