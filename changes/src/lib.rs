#![doc = include_str!("../README.md")]

mod account;
mod backup;
mod change;
mod copies;
mod engine;
mod fault;
mod judge;
mod layer;
mod note;
mod overlay;
mod recover;
mod repositories;
mod restore;
mod revert;
mod snapshot;
mod told;
mod tracked;

pub use account::{IsOver, Turned, untidy};
pub use backup::{BACKUP, Backup, has_taken_in};
pub use change::{Change, ChangeSet, Seen};
pub use engine::{ChangeEngine, Scope, forget_copies, has_copies};
pub use fault::Fault;
pub use overlay::Folders;
pub use recover::{Settled, is_settled, settle};
pub use revert::{put_away, undo, undo_past_obstacles, undos, were_undone};
pub use snapshot::Snapshot;
pub use told::{Accounted, named, put_back as put_back_warning};
