//! A record leaves this machine as one file, is checked anywhere, and comes into another clone.
//!
//! What comes in was written by somebody else. It can be shown and replayed; its plan and its verdicts count
//! only if it is believed: signed by somebody whom the user trusts, or imported with `--trust`.

mod about;
mod export;
mod import;
pub(crate) mod signature;
mod verify;

pub use export::{Request as Export, run as export};
pub use import::{Request as Import, run as import};
pub use verify::{Request as Verify, run as verify};
